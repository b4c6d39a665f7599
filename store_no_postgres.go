//go:build rhizodat_no_postgres

package rhizodat

func init() { leaveOut("postgres", "rhizodat_no_postgres") }
