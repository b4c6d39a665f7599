package main

import (
	"context"
	"database/sql"
	"sync"

	rhizodat "github.com/rhizodat/rhizodat-go"
)

// fault is how a unit of the leak test goes wrong.
type fault struct {
	name  string
	work  string // a further statement of store a
	point string // where deed is done
	deed  func(ctx context.Context, r *leakRun, u *faulty)
	ends  func(*sql.Tx) error // nil: Commit
	late  bool                // the context ends before the unit begins
	one   bool                // only store a is written
	reads bool                // nothing is
}

// faulty is a unit that has a fault before it.
type faulty struct {
	fault  *fault
	txn    string
	pid    string // of its backend in store a
	cancel context.CancelFunc
	once   sync.Once
}

// allFaults has one or more for every step.
func allFaults() []*fault {
	return []*fault{
		{name: "none"},
		{name: "S1 context over", late: true},
		{name: "S2 statement fails", work: "SELECT 1/0"},
		{name: "S2 backend lost", work: "SELECT pg_terminate_backend(pg_backend_pid())"},
		{name: "rolled back", ends: (*sql.Tx).Rollback},
		{name: "S3 deferred constraint", work: "INSERT INTO child VALUES (1)"},
		{name: "S3 context ends", point: "S3.before", deed: endContext},
		{name: "S4 context ends", point: "S4.before", deed: endContext},
		{name: "S4 the id is taken", point: "S4.before", deed: takeID},
		{name: "S5 cannot be prepared", work: "CREATE TEMPORARY TABLE scratch (n int) ON COMMIT DROP"},
		{name: "S5 backend lost", point: "S5.before:a", deed: loseBackend},
		{name: "S6 recovery was first", point: "S6.before", deed: abortRecord},
		{name: "S7 journal sessions lost", point: "S7.before", deed: loseJournal},
		{name: "S8 backend lost", point: "S8.before:a", deed: loseBackend},
		{name: "S10 journal sessions lost", point: "S10.before", deed: loseJournal},
		{name: "one branch", one: true},
		{name: "one branch, backend lost", one: true, point: "S8.before:a", deed: loseBackend},
		{name: "nothing written", reads: true},
	}
}

func endContext(_ context.Context, _ *leakRun, u *faulty) { u.cancel() }

func takeID(ctx context.Context, r *leakRun, u *faulty) {
	_, err := r.lane.Journal.Exec(ctx, `INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms)
		VALUES ($1::uuid, 'ABORTED', 0, '[]', 0, 0)`, u.txn)
	r.note(err)
}

func abortRecord(ctx context.Context, r *leakRun, u *faulty) {
	_, err := r.lane.Journal.Exec(ctx, `UPDATE dat_journal SET state = 'ABORTED', updated_ms = updated_ms + 1
		WHERE dat_txn = $1::uuid AND state IN ('ACTIVE', 'PREPARED')`, u.txn)
	r.note(err)
}

func loseBackend(ctx context.Context, r *leakRun, u *faulty) {
	_, err := r.lane.Stores["a"].Texts(ctx, `SELECT pg_terminate_backend($1::int)::text`, u.pid)
	r.note(err)
}

func loseJournal(ctx context.Context, r *leakRun, _ *faulty) {
	_, err := r.lane.Journal.Disconnect(ctx)
	r.note(err)
}

// Step does a unit's deed at its point.
func (r *leakRun) Step(ctx context.Context, e rhizodat.StepEvent) {
	found, ok := r.units.Load(e.Txn.String())
	if !ok {
		return
	}
	if u, ok := found.(*faulty); ok && u.fault.point == e.Point() {
		u.once.Do(func() { u.fault.deed(context.WithoutCancel(ctx), r, u) })
	}
}

// Outcome implements rhizodat.Observer.
func (r *leakRun) Outcome(context.Context, rhizodat.OutcomeEvent) {}

// unit runs one unit with a fault, and tells what became of it.
func (r *leakRun) unit(ctx context.Context, f *fault) rhizodat.Outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, handle := rhizodat.Track(ctx)
	if f.late {
		cancel()
	}
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return handle.Outcome()
	}
	u := &faulty{fault: f, txn: handle.Outcome().DatTxn.String(), cancel: cancel}
	r.units.Store(u.txn, u)
	if err := r.work(ctx, tx, u); err != nil {
		_ = tx.Rollback() // a failed unit is given back
		return r.settled(ctx, handle)
	}
	if f.ends != nil {
		_ = f.ends(tx) // the handle tells how it ended
	} else {
		_ = tx.Commit() // the handle tells how it ended
	}
	return r.settled(ctx, handle)
}

func (r *leakRun) work(ctx context.Context, tx *sql.Tx, u *faulty) error {
	a, b := rhizodat.WithStore(ctx, "a"), rhizodat.WithStore(ctx, "b")
	if err := tx.QueryRowContext(a, `SELECT pg_backend_pid()`).Scan(&u.pid); err != nil {
		return err
	}
	stores := 2
	if u.fault.one {
		stores = 1
	}
	const insert = `INSERT INTO ledger VALUES ($1, $2, 1)`
	if !u.fault.reads {
		if _, err := tx.ExecContext(a, insert, u.txn, stores); err != nil {
			return err
		}
	}
	if !u.fault.reads && !u.fault.one {
		if _, err := tx.ExecContext(b, insert, u.txn, stores); err != nil {
			return err
		}
	}
	if u.fault.work == "" {
		return nil
	}
	_, err := tx.ExecContext(a, u.fault.work)
	return err
}
