//go:build rhizodat_no_iceberg

package rhizodat

func init() { leaveOut("iceberg", "rhizodat_no_iceberg") }
