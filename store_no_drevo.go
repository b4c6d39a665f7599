//go:build rhizodat_no_drevo

package rhizodat

func init() { leaveOut("drevo", "rhizodat_no_drevo") }
