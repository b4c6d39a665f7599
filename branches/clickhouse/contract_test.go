package clickhouse_test

import (
	"context"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/branchtest"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
)

// place is a database with our tables and one of the application.
type place struct {
	cluster  *chtest.Cluster
	database string
}

const tableOfTests = ` (
    k String, n Int64 DEFAULT 0, dat_txn Nullable(UUID), dat_tx_time Nullable(Int64),
    INDEX dat_txn dat_txn TYPE bloom_filter GRANULARITY 1
) ENGINE = MergeTree ORDER BY k`

func newPlace(t *testing.T, cluster *chtest.Cluster) place {
	t.Helper()
	p := place{cluster, cluster.Database(t, "branch")}
	p.cluster.Exec(t, "CREATE TABLE "+p.database+".t"+tableOfTests)
	if err := p.open(t, chtest.Native, clickhouse.Options{}).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) open(t *testing.T, protocol chtest.Protocol, opts clickhouse.Options) *clickhouse.Store {
	t.Helper()
	store, err := clickhouse.Open("s", p.cluster.DSN(protocol, p.database), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // an item may have closed it
	return store
}

//nolint:contextcheck // chtest has a context of its own, which outlives the test's
func TestContract(t *testing.T) {
	for _, protocol := range chtest.Protocols {
		t.Run(string(protocol), func(t *testing.T) {
			p := newPlace(t, chtest.Server(t))
			branchtest.Exercise(t, branchtest.Harness{
				Open: func(context.Context) (branches.Store, error) {
					return clickhouse.Open("s", p.cluster.DSN(protocol, p.database), clickhouse.Options{})
				},
				Vote:  branches.VoteApply,
				Write: func(key string) string { return "INSERT INTO t (k) VALUES ('" + key + "')" },
				Read:  "SELECT k FROM t",
				Count: func(_ context.Context, key string) (int, error) {
					return p.cluster.Int(t, "SELECT count() FROM "+p.database+".t WHERE k='"+key+"'"), nil
				},
				Table: "t", Column: "k",
			})
		})
	}
}
