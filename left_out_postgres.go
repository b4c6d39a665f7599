//go:build rhizodat_no_postgres

package rhizodat

func init() { leaveOut(postgresAdapter.name, "rhizodat_no_postgres") }
