package rhizodat

import "database/sql/driver"

// innermost looks through the wrappers that tracing libraries put around a
// driver connection, as far as they let us.
func innermost(c any) any {
	for {
		switch w := c.(type) {
		case *conn:
			return w
		case interface{ Raw() driver.Conn }: // XSAM/otelsql
			c = w.Raw()
		case interface{ Unwrap() driver.Conn }:
			c = w.Unwrap()
		default:
			return c
		}
	}
}
