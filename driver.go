package rhizodat

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// The names under which the driver is registered. The second is for tools that
// pick their SQL dialect by the prefix of a driver's name (ent).
const (
	DriverName         = "rhizodat"
	PostgresDriverName = "postgres-rhizodat"
)

func init() {
	sql.Register(DriverName, &Driver{})
	sql.Register(PostgresDriverName, &Driver{})
}

// Driver is what sql.Open finds under [DriverName].
type Driver struct{}

var (
	_ driver.Driver        = (*Driver)(nil)
	_ driver.DriverContext = (*Driver)(nil)
)

// OpenConnector reads the DSN once. It connects to nothing.
//
// The error of an empty DSN comes with the first connection: tools that wrap
// drivers open a pool without a DSN to get hold of the driver (otelsql.Register).
func (d *Driver) OpenConnector(dsn string) (driver.Connector, error) {
	cfg, err := ParseDSN(dsn)
	if err != nil && dsn == "" {
		return nowhere{driver: d, err: err}, nil
	}
	if err != nil {
		return nil, err
	}
	return NewConnector(cfg)
}

// Open makes one connection, with a connector of its own that closes with it.
// database/sql does not call it.
func (d *Driver) Open(dsn string) (driver.Conn, error) {
	cfg, err := ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	connector, err := NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	//nolint:forbidigo // driver.Driver.Open has no context
	made, err := connector.connect(context.Background())
	if err != nil {
		return nil, errors.Join(err, connector.Close())
	}
	made.owned = connector
	return made, nil
}

// nowhere is the connector of an empty DSN.
type nowhere struct {
	driver *Driver
	err    error
}

func (n nowhere) Connect(context.Context) (driver.Conn, error) { return nil, n.err }
func (n nowhere) Driver() driver.Driver                        { return n.driver }
