package drevo_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

// A conflict is of the whole graph, and proves that nothing was done.
func TestConflict(t *testing.T) {
	g, store := installed(t, drevotest.Server(t))
	session := connect(t, store)
	for _, onePhase := range []bool{true, false} {
		u := begin(t, session).exec("CREATE (:Mine)").staged(onePhase)
		g.Exec(t, "CREATE (:Theirs)")
		var err error
		if onePhase {
			err = u.Commit(t.Context())
		} else {
			err = u.Prepare(t.Context(), u.gid)
		}
		if !bolt.IsOutdated(err) || branches.IsUnknown(err) || store.Classify(err) != branches.Transient {
			t.Errorf("the end of a unit in conflict = %v, want a transient answer", err)
		}
		if !session.Usable() {
			t.Error("the session is not usable after a conflict")
		}
	}
	wantCount(t, g, "Mine", 0)
	if got := g.Prepared(t); len(got) != 0 {
		t.Errorf("prepared: %v", got)
	}
}

// A unit that only read ends though others write beside it, and under the fence.
func TestReaderBesideWriters(t *testing.T) {
	g, store := installed(t, drevotest.Server(t))
	g.Exec(t, "CREATE (:A {v: 1})")
	reader := beginAs(t, connect(t, store), branches.BeginOptions{ReadOnly: true, Isolation: driver.IsolationLevel(sql.LevelSerializable)})
	query(t, reader.session, "MATCH (n:A) RETURN n.v")
	fence := prepared(t, store, "B")
	_, rows := query(t, reader.session, "MATCH (n) WHERE n.v = 1 RETURN count(n)")
	if rows[0][0] != int64(1) {
		t.Errorf("read %v under the fence", rows)
	}
	staged, err := reader.stage(false)
	if err != nil || staged.Vote != branches.VoteReadOnly {
		t.Fatalf("Stage = %v, %v", staged, err)
	}
	if err := errors.Join(reader.Prepare(t.Context(), reader.gid), store.Finish(t.Context(), fence.ref()), reader.Commit(t.Context())); err != nil {
		t.Error(err)
	}
	wantCount(t, g, "B", 1)
	wantFate(t, store, reader.txn, branches.FateAbsent)
}

// Settle meets a graph that others write to all the time: a conflict of its own
// says nothing about the unit.
func TestSettleMeetsWriters(t *testing.T) {
	g, store := installed(t, drevotest.Server(t))
	const writers, each = 4, 40
	var all sync.WaitGroup
	start := make(chan struct{})
	for range writers {
		all.Go(func() {
			<-start
			for range each {
				g.Exec(t, "CREATE (:Theirs)")
			}
		})
	}
	close(start)
	for range 20 {
		txn, err := branches.NewTxnID()
		if err != nil {
			t.Fatal(err)
		}
		if fate, err := store.Settle(t.Context(), txn); err != nil || fate != branches.FateNever {
			t.Errorf("Settle beside writers = %s, %v, want never", fate, err)
		}
	}
	all.Wait()
	wantCount(t, g, "Theirs", writers*each)
}

// What drevo refuses in one graph it does not refuse in another.
func TestFenceIsOfOneGraph(t *testing.T) {
	cluster := drevotest.Server(t)
	one, store := installed(t, cluster)
	other, _ := installed(t, cluster)
	u := prepared(t, store, "A")
	other.Exec(t, "CREATE (:A)")
	if _, err := one.Try(t.Context(), "CREATE (:A)", nil); !bolt.IsFenced(err) {
		t.Errorf("a write under the fence = %v", err)
	}
	if err := store.Abort(t.Context(), u.ref()); err != nil {
		t.Error(err)
	}
	one.Exec(t, "CREATE (:A)")
}

// The answers of drevo and what they ask of the caller.
func TestClassify(t *testing.T) {
	_, store := installed(t, drevotest.Server(t))
	for _, test := range []struct {
		code, message string
		want          branches.Kind
	}{
		{"Neo.TransientError.Transaction.Outdated", "transaction conflict: the graph changed since the transaction began; retry", branches.Transient},
		{"Neo.TransientError.Transaction.LockAcquisitionTimeout", "writes are paused while prepared transaction(s) g await resolution; retry", branches.Transient},
		{"Neo.ClientError.Transaction.LockClientStopped", "an old build's fence, as the driver has it", branches.Transient},
		{"Neo.ClientError.Schema.ConstraintValidationFailed", "constraint on `User` violated: …", branches.Constraint},
		{"Neo.DatabaseError.Statement.ExecutionFailed", "storage error: duplicate title: x", branches.Constraint},
		{"Neo.DatabaseError.Statement.ExecutionFailed", "write-ahead log write failed: io error: durable WAL is broken: a prior group commit failed to persist", branches.Permanent},
		{"Neo.DatabaseError.Statement.ExecutionFailed", "write-ahead log write failed: io error: No space left on device (os error 28)", branches.StoreFull},
		{"Neo.DatabaseError.Statement.ExecutionFailed", "storage error: io error: Disk quota exceeded (os error 122)", branches.StoreFull},
		// Seen a full disk since: the same words now mean it.
		{"Neo.DatabaseError.Statement.ExecutionFailed", "write-ahead log write failed: io error: durable WAL is broken: a prior group commit failed to persist", branches.StoreFull},
		{"Neo.ClientError.Statement.SyntaxError", "syntax error at line 1", branches.Permanent},
		{"Neo.ClientError.Transaction.TransactionTimedOut", "statement exceeded the 5 ms statement timeout", branches.Permanent},
		{"Neo.ClientError.Statement.SemanticError", `a transaction is already prepared as "g"`, branches.Permanent},
	} {
		err := error(&neo4j.Neo4jError{Code: test.code, Msg: test.message})
		store.Notice(err)
		if got := store.Classify(err); got != test.want {
			t.Errorf("%s: %s is %s, want %s", test.code, test.message, got, test.want)
		}
	}
	if got := store.Classify(&neo4j.ConnectivityError{}); got != branches.Transient {
		t.Errorf("a lost connection is %s", got)
	}
	if got := store.Classify(nil); got != branches.Permanent {
		t.Errorf("no error is %s", got)
	}
	findings, err := store.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range findings {
		found = found || f.Check == "server" && f.Severity == branches.SeverityWarning
	}
	if !found {
		t.Errorf("the old build is not found: %+v", findings)
	}
}
