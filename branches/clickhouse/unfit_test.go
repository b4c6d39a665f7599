package clickhouse_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
)

// Tables that a unit cannot write to are refused at S3, with the way out.
func TestUnfitTables(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	store := p.open(t, chtest.Native, clickhouse.Options{})
	session := connect(t, store)
	const columns = " (k UInt64, dat_txn Nullable(UUID), dat_tx_time Nullable(Int64)"
	for _, c := range []struct{ create, cause, way string }{
		{" (k UInt64) ENGINE = MergeTree ORDER BY k", "has no column dat_txn", "ADD COLUMN dat_txn Nullable(UUID), ADD COLUMN dat_tx_time Nullable(Int64)"},
		{" (k UInt64, dat_txn UUID) ENGINE = MergeTree ORDER BY k", "has no column dat_tx_time", "MODIFY COLUMN dat_txn Nullable(UUID), ADD COLUMN dat_tx_time"},
		{" (k UInt64, dat_txn String, dat_tx_time Int64) ENGINE = MergeTree ORDER BY k", "column dat_txn of type String", "MODIFY COLUMN dat_txn"},
		{columns + ") ENGINE = ReplacingMergeTree ORDER BY k", "merges rows", "dat_replacing=1"},
		{columns + ") ENGINE = SummingMergeTree ORDER BY k", "merges rows", "materialized view"},
		{columns + ") ENGINE = AggregatingMergeTree ORDER BY k", "merges rows", "materialized view"},
		{columns + ") ENGINE = Memory", "engine Memory", "MergeTree"},
		{columns + ") ENGINE = Log", "engine Log", "MergeTree"},
		{columns + ", PROJECTION p (SELECT k ORDER BY k)) ENGINE = MergeTree ORDER BY k", "has a projection", "lightweight_mutation_projection_mode"},
	} {
		p.cluster.Exec(t, "CREATE OR REPLACE TABLE "+p.database+".odd"+c.create)
		u := begin(t, session)
		execute(t, session, "INSERT INTO odd (k) VALUES (1)")
		_, err := u.Stage(t.Context(), branches.Unit{Txn: u.txn, TxTime: txTime, Marker: true})
		if err != nil && strings.Contains(err.Error(), "was changed while the unit ran") {
			_ = u.Rollback(t.Context()) // the store remembered the last one
			u = begin(t, session)
			execute(t, session, "INSERT INTO odd (k) VALUES (1)")
			_, err = u.Stage(t.Context(), branches.Unit{Txn: u.txn, TxTime: txTime, Marker: true})
		}
		if err == nil || !strings.Contains(err.Error(), c.cause) || !strings.Contains(err.Error(), c.way) || branches.Classify(store, err) != branches.Permanent {
			t.Errorf("%s\nerror %v\nwant  %s (%s)", c.create, err, c.cause, c.way)
		}
		if err := u.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	other := p.cluster.Database(t, "other")
	p.cluster.Exec(t, "CREATE TABLE "+other+".t"+columns+") ENGINE = MergeTree ORDER BY k")
	u := begin(t, session)
	execute(t, session, "INSERT INTO "+other+".t (k) VALUES (1)")
	if _, err := u.Stage(t.Context(), branches.Unit{Txn: u.txn, TxTime: txTime, Marker: true}); err == nil || !strings.Contains(err.Error(), "a store of its own") {
		t.Errorf("a table of another database: %v", err)
	}
	if err := u.Commit(t.Context()); err == nil {
		t.Error("commit of what was refused at S3 = nil")
	}
	// The way out is one.
	p.cluster.Exec(t, "CREATE OR REPLACE TABLE "+p.database+".odd (k UInt64) ENGINE = MergeTree ORDER BY k")
	fresh := connect(t, p.open(t, chtest.Native, clickhouse.Options{}))
	u = begin(t, fresh)
	execute(t, fresh, "INSERT INTO odd (k) VALUES (1)")
	_, err := u.Stage(t.Context(), branches.Unit{Txn: u.txn, TxTime: txTime, Marker: true})
	if err == nil {
		t.Fatal("a table without dat_txn is taken")
	}
	_, alter, _ := strings.Cut(err.Error(), "(ALTER")
	p.cluster.Exec(t, "ALTER"+strings.TrimSuffix(alter, ")"))
	if err := u.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh = connect(t, p.open(t, chtest.Native, clickhouse.Options{}))
	u = begin(t, fresh)
	execute(t, fresh, "INSERT INTO odd (k) VALUES (1)")
	u.commit(t)
	p.holds(t, "odd", u.ref(), 1)
}

// With dat_replacing=1 a table that keeps the last of equal rows is taken, and a
// second insert is left to it.
func TestReplacing(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.cluster.Exec(t, "CREATE TABLE "+p.database+".r (k UInt64, s String, dat_txn UUID, dat_tx_time Int64) ENGINE = ReplacingMergeTree ORDER BY k")
	for _, protocol := range chtest.Protocols {
		store, err := clickhouse.Open("s", p.cluster.DSN(protocol, p.database)+"?dat_replacing=1", clickhouse.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		ref := p.staged(t, store, "r", 20)
		ctx, cancel := context.WithCancel(t.Context())
		cut := p.open(t, protocol, clickhouse.Options{Replacing: true})
		clickhouse.Hold(cut, func(m string) {
			if m == clickhouse.Inserted {
				cancel()
			}
		})
		if err := cut.Finish(ctx, ref); err == nil {
			t.Error("finish that was cut off = nil")
		}
		mustFinish(t, store, ref)
		p.cluster.Exec(t, "OPTIMIZE TABLE "+p.database+".r FINAL")
		p.holds(t, "r", ref, 20)
	}
}

// A CHECK is asked before the decision, with the defaults that the insert would use.
func TestConstraintBeforeDecision(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.cluster.Exec(t, "CREATE TABLE "+p.database+`.c (k Int64, s String DEFAULT concat('k', toString(k)), dat_txn UUID, dat_tx_time Int64,
		CONSTRAINT small CHECK (k < 10) AND (length(s) < 4, 1).1, CONSTRAINT known ASSUME k > -100, CONSTRAINT stamped CHECK dat_tx_time > 0) ENGINE = MergeTree ORDER BY k`)
	for _, protocol := range chtest.Protocols {
		store := p.open(t, protocol, clickhouse.Options{})
		session := connect(t, store)
		for _, c := range []struct {
			query string
			bad   bool
		}{
			{"INSERT INTO c (k) VALUES (1), (9)", false},
			{"INSERT INTO c (k) VALUES (1), (10)", true},
			{"INSERT INTO c (k, s) VALUES (1, 'long')", true},
			{"INSERT INTO c (k) VALUES (-100)", true}, // by its default
		} {
			for _, onePhase := range []bool{false, true} {
				u := begin(t, session)
				execute(t, session, c.query)
				var err error
				u.staged, err = u.Stage(t.Context(), branches.Unit{Txn: u.txn, TxTime: txTime, OnePhase: onePhase, Marker: true})
				if onePhase && err == nil {
					err = u.Commit(t.Context())
				}
				if (err != nil) != c.bad || c.bad && (branches.Classify(store, err) != branches.Constraint || branches.IsUnknown(err)) {
					t.Errorf("%s: %s (one phase %t) = %v", protocol, c.query, onePhase, err)
				}
				_ = u.Rollback(t.Context())
			}
		}
	}
}

// A table that is dropped after the decision: the operator is told what happened
// and both ways out, and the first one works.
func TestDroppedTable(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.table(t, "r", 0)
	for _, protocol := range chtest.Protocols {
		store := p.open(t, protocol, clickhouse.Options{})
		ref := p.staged(t, store, "r", 10)
		p.cluster.Exec(t, "DROP TABLE "+p.database+".r SYNC")
		err := store.Finish(t.Context(), ref)
		for _, want := range []string{"was dropped after the unit was staged", "create it again", "rhizorecover resolve " + ref.Txn.String() + " --store s --as skipped"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: finish = %v, want %q", protocol, err, want)
			}
		}
		if err := store.Abort(t.Context(), ref); err != nil {
			t.Errorf("abort of a branch whose table is gone = %v", err)
		}
		p.table(t, "r", 0)
		mustFinish(t, store, ref)
		p.holds(t, "r", ref, 10)
	}
}

// A table that changes while a unit is at work.
func TestChangedTable(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.table(t, "r", 0)
	store := p.open(t, chtest.Native, clickhouse.Options{})
	session := connect(t, store)
	u := begin(t, session)
	execute(t, session, "INSERT INTO r (k) VALUES (1)")
	p.cluster.Exec(t, "ALTER TABLE "+p.database+".r ADD COLUMN more Int8")
	_, err := u.Stage(t.Context(), branches.Unit{Txn: u.txn, TxTime: txTime, Marker: true})
	if err == nil || branches.Classify(store, err) != branches.Transient {
		t.Errorf("stage over a changed table = %v, want transient", err)
	}
	if err := u.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.cluster.Exec(t, "ALTER TABLE "+p.database+".r ADD COLUMN yet Int8")
	u = begin(t, session)
	execute(t, session, "INSERT INTO r (k, yet) VALUES (1, 2)") // not known until now
	u.commit(t)
	p.holds(t, "r", u.ref(), 1)
}

// A unit of many blocks (each savepoint seals one) is one insert, over both
// protocols, with types whose blocks have a head of their own.
func TestManyBlocks(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.cluster.Exec(t, "CREATE TABLE "+p.database+`.blocks (k UInt64, l LowCardinality(Nullable(String)), j JSON, a Array(LowCardinality(String)),
		dat_txn UUID, dat_tx_time Int64) ENGINE = MergeTree ORDER BY k`)
	for _, protocol := range chtest.Protocols {
		store := p.open(t, protocol, clickhouse.Options{})
		session := connect(t, store)
		u := begin(t, session)
		for i := range 50 {
			if err := u.Branch.(branches.Savepointer).Savepoint(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
			text := strings.Repeat("x", i%3)
			execute(t, session, "INSERT INTO blocks (k, l, j, a) VALUES (?, ?, ?, ?), (?, NULL, '{}', [])",
				2*i, text, `{"n":1,"`+text+`y":"z"}`, []string{text, "w"}, 2*i+1)
		}
		u.finish(t, store)
		got := p.cluster.Ask(t, "SELECT count(), uniqExact(k), countIf(l IS NULL), sum(j.n::UInt8), sum(length(a)), countIf(a[2] = 'w')"+
			" FROM "+p.database+".blocks WHERE dat_txn='"+u.txn.String()+"'")
		if got != "100\t100\t50\t50\t100\t50" {
			t.Errorf("%s: %q", protocol, got)
		}
	}
}
