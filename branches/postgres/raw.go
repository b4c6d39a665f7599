package postgres

import (
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// maxWrappers bounds the search through a connection's wrappers.
const maxWrappers = 16

// Conn is the *pgx.Conn on which a driver connection works with a store. It is
// the line that replaces driverConn.(*stdlib.Conn).Conn() inside of
// (*sql.Conn).Raw:
//
//	err := conn.Raw(func(driverConn any) error {
//	    pgxConn, err := postgres.Conn(driverConn, "pg")
//	    ...
//
// It looks through wrappers that hand out what they wrap by Raw, Unwrap or
// WrappedConn, as tracing drivers do.
func Conn(driverConn any, store string) (*pgx.Conn, error) {
	for at, depth := driverConn, 0; at != nil && depth < maxWrappers; depth++ {
		switch v := at.(type) {
		case *pgx.Conn:
			return v, nil
		case interface{ Conn() *pgx.Conn }: // *stdlib.Conn
			return v.Conn(), nil
		case interface{ Store(name string) any }: // rhizodat.Conn
			at = v.Store(store)
			if err, failed := at.(error); failed {
				return nil, err
			}
			if at == nil {
				return nil, fmt.Errorf("rhizodat: find pgx connection: no session with store %s on this connection", store)
			}
		case interface{ Raw() any }:
			at = v.Raw()
		case interface{ Raw() driver.Conn }:
			at = v.Raw()
		case interface{ Unwrap() driver.Conn }:
			at = v.Unwrap()
		case interface{ Unwrap() any }:
			at = v.Unwrap()
		case interface{ WrappedConn() driver.Conn }:
			at = v.WrappedConn()
		default:
			at = nil
		}
	}
	return nil, fmt.Errorf("rhizodat: find pgx connection: %T leads to none", driverConn)
}
