package memory

import (
	"database/sql/driver"
	"io"
)

type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }
func (noRows) Close() error              { return nil }
