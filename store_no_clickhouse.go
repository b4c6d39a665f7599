//go:build rhizodat_no_clickhouse

package rhizodat

func init() { leaveOut("clickhouse", "rhizodat_no_clickhouse") }
