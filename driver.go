package rhizodat

import (
	"context"
	"database/sql"
	"database/sql/driver"
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
func (d *Driver) OpenConnector(dsn string) (driver.Connector, error) {
	cfg, err := ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	return NewConnector(cfg)
}

// Open makes one connection. database/sql does not call it.
func (d *Driver) Open(dsn string) (driver.Conn, error) {
	connector, err := d.OpenConnector(dsn)
	if err != nil {
		return nil, err
	}
	//nolint:forbidigo // driver.Driver.Open has no context; nothing connects yet
	return connector.Connect(context.Background())
}
