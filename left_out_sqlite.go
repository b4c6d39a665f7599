//go:build rhizodat_no_sqlite

package rhizodat

func init() { leaveOut(fileAdapter.name, "rhizodat_no_sqlite") }
