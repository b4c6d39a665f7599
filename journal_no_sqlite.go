//go:build rhizodat_no_sqlite

package rhizodat

func init() { leaveOut("sqlite", "rhizodat_no_sqlite") }
