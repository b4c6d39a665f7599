package iceberg_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/branchtest"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
)

func TestContract(t *testing.T) {
	for _, kind := range icetest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			b := newBed(t, kind.Make, "CREATE TABLE t (k string, n long)")
			branchtest.Exercise(t, branchtest.Harness{
				Open: func(context.Context) (branches.Store, error) {
					return iceberg.Open("s", dsn(b.place), iceberg.Options{})
				},
				Vote:  branches.VoteApply,
				Write: func(key string) string { return "INSERT INTO t (k) VALUES ('" + key + "')" },
				Read:  "SELECT k FROM t",
				Count: func(ctx context.Context, key string) (int, error) {
					session, err := b.store.Connect(ctx)
					if err != nil {
						return 0, err
					}
					found, err := tryRows(ctx, session, "SELECT count(*) FROM t WHERE k = ?", key)
					if err != nil {
						return 0, err
					}
					return strconv.Atoi(found[0])
				},
				Table: "t", Column: "k",
			})
		})
	}
}
