package icesql

import (
	"database/sql/driver"
	"time"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// Travel is where in a table's history a query looks; one of the three is set.
type Travel struct {
	SnapshotID int64
	Ref        string // a branch or a tag
	At         time.Time
}

// Resolve reads the literal or the argument. A version is a snapshot's id, or text
// that names a branch or a tag; a timestamp without a zone is taken as UTC.
func (a *AsOf) Resolve(args []driver.NamedValue) (Travel, error) {
	b := &binder{args: args}
	if a.Version != nil {
		return b.version(a.Version)
	}
	c, _, err := b.constant(a.Timestamp)
	if err != nil {
		return Travel{}, err
	}
	switch v := c.v.(type) {
	case time.Time:
		return Travel{At: v}, nil
	case string:
		t, err := icevalue.ParseTimestamp(v, true)
		if err != nil {
			t, err = icevalue.ParseTimestamp(v, false)
		}
		if err == nil {
			return Travel{At: t}, nil
		}
	}
	return Travel{}, &BindError{Value: c.shown(), Cause: "FOR TIMESTAMP AS OF takes a timestamp"}
}

func (b *binder) version(e Expr) (Travel, error) {
	c, _, err := b.constant(e)
	if err != nil {
		return Travel{}, err
	}
	switch v := c.v.(type) {
	case string:
		if n, err := icevalue.ParseNumber(v); err == nil {
			if id, err := n.Int64(); err == nil && id != 0 {
				return Travel{SnapshotID: id}, nil
			}
		}
		if v != "" {
			return Travel{Ref: v}, nil
		}
	case int64, icevalue.Number:
		if n, err := icevalue.NumberOf(v); err == nil {
			if id, err := n.Int64(); err == nil {
				return Travel{SnapshotID: id}, nil
			}
		}
	}
	return Travel{}, &BindError{Value: c.shown(), Cause: "FOR VERSION AS OF takes a snapshot id, a branch or a tag"}
}
