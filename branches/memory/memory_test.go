package memory_test

import (
	"context"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/branchtest"
	"github.com/rhizodat/rhizodat-go/branches/memory"
)

func TestContract(t *testing.T) {
	db := memory.New()
	branchtest.Exercise(t, branchtest.Harness{
		Open:  func(context.Context) (branches.Store, error) { return db.Open(), nil },
		Vote:  branches.VotePrepare,
		Write: func(key string) string { return "put " + key },
		Read:  "get",
		Count: func(_ context.Context, key string) (int, error) {
			if db.Has(key) {
				return 1, nil
			}
			return 0, nil
		},
	})
}
