package clickhouse_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
)

// tear leaves part of a unit's rows in its table, as a crash inside of an insert
// does: all went in, under the insert's own token, and some are gone.
func (p place) tear(t *testing.T, store *clickhouse.Store, table string, ref branches.Ref) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	clickhouse.Hold(store, func(m string) {
		if m == clickhouse.Inserted {
			cancel()
		}
	})
	if err := store.Finish(ctx, ref); !errors.Is(err, context.Canceled) {
		t.Fatalf("finish that was cut off = %v", err)
	}
	p.cluster.Exec(t, "ALTER TABLE "+p.database+"."+table+" DROP PARTITION 1")
	p.cluster.Exec(t, "ALTER TABLE "+p.database+"."+table+" DROP PARTITION 2")
}

// Section 4, 1: rows of a torn insert are deleted and inserted again. With a
// window the server remembers the blocks of the first try.
func TestTorn(t *testing.T) {
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		ref := p.staged(t, open(), table, 50)
		p.tear(t, open(), table, ref)
		p.holds(t, table, ref, 25)
		mustFinish(t, open(), ref)
		p.holds(t, table, ref, 50)
		mustFinish(t, open(), ref)
		p.holds(t, table, ref, 50)
	})
}

// All rows of a torn insert are gone: none is counted, and the server still
// remembers the token.
func TestTornToNothing(t *testing.T) {
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		ref := p.staged(t, open(), table, 50)
		p.tear(t, open(), table, ref)
		p.cluster.Exec(t, "TRUNCATE TABLE "+p.database+"."+table)
		mustFinish(t, open(), ref)
		p.holds(t, table, ref, 50)
	})
}

// The first attempt of all was acknowledged, and some or all of its rows are not
// there: its marker must not say that they are.
func TestTornBeforeMarker(t *testing.T) {
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		for _, what := range []string{"DROP PARTITION 1", "DELETE WHERE 1"} {
			store, lost := open(), false
			session := connect(t, store)
			u := begin(t, session)
			for i := range 50 {
				execute(t, session, "INSERT INTO "+table+" (k, s) VALUES (?, ?)", i, "x")
			}
			ref := u.stage(t, false).ref()
			clickhouse.Hold(store, func(m string) {
				if m == clickhouse.Inserted && !lost {
					lost = true
					p.cluster.Exec(t, "ALTER TABLE "+p.database+"."+table+" "+what+" SETTINGS mutations_sync=2")
				}
			})
			if err := u.Finish(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
			if !lost {
				t.Error("nothing was lost between the insert and its marker")
			}
			p.holds(t, table, ref, 50)
			p.fate(t, store, ref.Txn, branches.FateApplied)
		}
	})
}

// The same where the unit has one branch: it is given up, whole.
func TestTornBeforeMarkerOfOneBranch(t *testing.T) {
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		store := open()
		session := connect(t, store)
		u := begin(t, session)
		for i := range 50 {
			execute(t, session, "INSERT INTO "+table+" (k, s) VALUES (?, ?)", i, "x")
		}
		u.stage(t, true)
		clickhouse.Hold(store, func(m string) {
			if m == clickhouse.Inserted {
				p.cluster.Exec(t, "ALTER TABLE "+p.database+"."+table+" DROP PARTITION 1")
			}
		})
		if err := u.Commit(t.Context()); !branches.IsUnknown(err) {
			t.Errorf("commit of which rows are missing = %v, want unknown", err)
		}
		if fate, err := open().Settle(t.Context(), u.txn); fate != branches.FateNever || err != nil {
			t.Errorf("settle = %s, %v", fate, err)
		}
		p.holds(t, table, u.ref(), 0)
	})
}
