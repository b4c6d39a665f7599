package sqljournal_test

import (
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/sqljournal"
)

// Texts of the compare-and-sets, as the transition table makes them.
const (
	createText  = "INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms, lease, fence, note)"
	prepareText = "SET state = 'PREPARED', dat_tx_time = greatest(coalesce(dat_tx_time, 0), CAST($3 AS bigint)), updated_ms = greatest(updated_ms + 1, CAST($2 AS bigint)) WHERE dat_txn = CAST($1 AS uuid) AND state || '' IN ('ACTIVE')"
	bothText    = "SET state = 'COMMITTED', dat_tx_time = greatest(coalesce(dat_tx_time, 0), CAST($3 AS bigint)), updated_ms = greatest(updated_ms + 1, CAST($2 AS bigint)) WHERE dat_txn = CAST($1 AS uuid) AND state || '' IN ('ACTIVE', 'PREPARED')"
	decideText  = "SET state = 'COMMITTED', updated_ms = greatest(updated_ms + 1, CAST($2 AS bigint)) WHERE dat_txn = CAST($1 AS uuid) AND state || '' IN ('PREPARED')"
	abortText   = "SET state = 'ABORTED', updated_ms = greatest(updated_ms + 1, CAST($2 AS bigint)) WHERE dat_txn = CAST($1 AS uuid) AND state || '' IN ('ACTIVE', 'PREPARED')"
	forbidText  = "SELECT CAST($1 AS uuid), 'ABORTED', 0, '[]'"
	stateText   = "SELECT state FROM dat_journal WHERE dat_txn = CAST($1 AS uuid)"
	finishText  = "SET state = 'DONE', updated_ms = greatest(updated_ms + 1, CAST($2 AS bigint)) WHERE dat_txn IN $1 AND state || '' IN ('COMMITTED')"
	hardenText  = "UPDATE dat_journal_meta SET layout = layout"
)

func TestDecideAnswers(t *testing.T) {
	for _, tc := range []struct {
		name        string
		withPrepare bool
		committed   int64
		found       driver.Value // read after a refusal
		conflict    bool
		ok          bool
	}{
		{name: "one row", committed: 1, ok: true},
		{name: "one row, S6 with S7", withPrepare: true, committed: 1, ok: true},
		{name: "no row", found: "ABORTED", conflict: true},
		{name: "no row, S6 with S7", withPrepare: true, found: "COMMITTED", conflict: true},
		{name: "two rows", committed: 2},
		{name: "two rows, S6 with S7", withPrepare: true, committed: 2},
		{name: "a negative count", committed: -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, mock := mocked(t)
			expectExec(mock, "BEGIN forced")
			text := decideText
			if tc.withPrepare {
				text = bothText
			}
			expectWrite(mock, text, tc.committed)
			expectExec(mock, "COMMIT")
			if tc.found != nil {
				expectRead(mock, stateText, tc.found)
			}
			err := session(t, j).Decide(t.Context(), journal.Decision{Txn: txn, TxTime: 9, WithPrepare: tc.withPrepare})
			conflict, refused := errors.AsType[*journal.Conflict](err)
			if (err == nil) != tc.ok || refused != tc.conflict {
				t.Fatalf("got %v", err)
			}
			if refused && (string(conflict.Found) != tc.found || conflict.To != journal.StateCommitted || conflict.Txn != txn) {
				t.Errorf("got %+v", conflict)
			}
		})
	}
}

// Whatever fails, and the COMMIT above all, proves nothing and is no conflict.
func TestDecideLosesItsAnswer(t *testing.T) {
	for _, lost := range []string{"BEGIN forced", decideText, "COMMIT"} {
		for _, cause := range []error{io.ErrUnexpectedEOF, driver.ErrBadConn} {
			t.Run(lost+"/"+cause.Error(), func(t *testing.T) {
				j, mock := mocked(t)
				for _, text := range []string{"BEGIN forced", decideText, "COMMIT"} {
					if text == lost {
						mock.ExpectExec(text).WillReturnError(cause)
						break
					}
					expectWrite(mock, text, 1)
				}
				err := session(t, j).Decide(t.Context(), journal.Decision{Txn: txn, TxTime: 9})
				if _, refused := errors.AsType[*journal.Conflict](err); err == nil || refused {
					t.Errorf("got %v, want an error that is no *Conflict", err)
				}
				if errors.Is(err, driver.ErrBadConn) {
					t.Error("driver.ErrBadConn came out: database/sql would send it again")
				}
			})
		}
	}
}

// The answer of a refusal does not depend on whether the state can be read.
func TestRefusalWhoseReadFails(t *testing.T) {
	j, mock := mocked(t)
	expectExec(mock, "BEGIN forced")
	expectWrite(mock, decideText, 0)
	expectExec(mock, "COMMIT")
	mock.ExpectExec("BEGIN read").WillReturnError(io.EOF)
	err := session(t, j).Decide(t.Context(), journal.Decision{Txn: txn})
	if conflict, ok := errors.AsType[*journal.Conflict](err); !ok || conflict.Found != "" {
		t.Errorf("got %v, want a conflict that found nothing", err)
	}
}

func TestAbortAnswers(t *testing.T) {
	type round struct {
		changed, inserted int64
		state             driver.Value
	}
	for _, tc := range []struct {
		name       string
		durability journal.Durability
		rounds     []round
		hardens    bool
		want       journal.State // empty: an error
	}{
		{"changed", journal.Forced, []round{{1, 0, "ABORTED"}}, false, journal.StateAborted},
		{"inserted", journal.Forced, []round{{0, 1, "ABORTED"}}, false, journal.StateAborted},
		{"found, and made durable", journal.Forced, []round{{0, 0, "ABORTED"}}, true, journal.StateAborted},
		{"found", journal.Unforced, []round{{0, 0, "ABORTED"}}, false, journal.StateAborted},
		{"too late, and made durable", journal.Forced, []round{{0, 0, "COMMITTED"}}, true, journal.StateCommitted},
		{"too late", journal.Unforced, []round{{0, 0, "DONE"}}, false, journal.StateDone},
		{"born meanwhile", journal.Forced, []round{{0, 0, "ACTIVE"}, {1, 0, "ABORTED"}}, false, journal.StateAborted},
		{"removed meanwhile", journal.Forced, []round{{0, 0, nil}, {0, 1, "ABORTED"}}, false, journal.StateAborted},
		{"never applied", journal.Forced, []round{{0, 0, "PREPARED"}, {0, 0, "PREPARED"}, {0, 0, "PREPARED"}, {0, 0, "PREPARED"}}, false, ""},
		{"two rows", journal.Forced, []round{{2, 0, "ABORTED"}}, false, ""},
		{"an unknown state", journal.Forced, []round{{0, 0, "HALF"}}, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, mock := mocked(t)
			begin := map[journal.Durability]string{journal.Forced: "BEGIN forced", journal.Unforced: "BEGIN unforced"}[tc.durability]
			for _, r := range tc.rounds {
				expectExec(mock, begin)
				expectWrite(mock, abortText, r.changed)
				expectWrite(mock, forbidText, r.inserted)
				if r.state == nil {
					expectRows(mock, stateText)
				} else {
					expectRows(mock, stateText, r.state)
				}
				expectExec(mock, "COMMIT")
			}
			if tc.hardens {
				expectExec(mock, "BEGIN forced")
				expectWrite(mock, hardenText, 1)
				expectRows(mock, stateText, tc.rounds[0].state)
				expectExec(mock, "COMMIT")
			}
			state, err := session(t, j).Abort(t.Context(), txn, tc.durability)
			if state != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v, want %q", state, err, tc.want)
			}
		})
	}
}

// ABORTED that was only found is no answer while it may still be lost.
func TestAbortWhoseHardenFails(t *testing.T) {
	j, mock := mocked(t)
	expectExec(mock, "BEGIN forced")
	expectWrite(mock, abortText, 0)
	expectWrite(mock, forbidText, 0)
	expectRows(mock, stateText, "ABORTED")
	expectExec(mock, "COMMIT")
	expectExec(mock, "BEGIN forced")
	expectWrite(mock, hardenText, 1)
	expectRows(mock, stateText, "ABORTED")
	mock.ExpectExec("COMMIT").WillReturnError(io.EOF)
	if state, err := session(t, j).Abort(t.Context(), txn, journal.Forced); err == nil {
		t.Errorf("got %s, nil", state)
	}
}

// A crash of the server between the two transactions took the ABORTED that was
// found: it is written again, and not vouched for.
func TestAbortTakenBackByACrash(t *testing.T) {
	j, mock := mocked(t)
	for _, inserted := range []int64{0, 1} {
		expectExec(mock, "BEGIN forced")
		expectWrite(mock, abortText, 0)
		expectWrite(mock, forbidText, inserted)
		expectRows(mock, stateText, "ABORTED")
		expectExec(mock, "COMMIT")
		if inserted == 0 {
			expectExec(mock, "BEGIN forced")
			expectWrite(mock, hardenText, 1)
			expectRows(mock, stateText)
			expectExec(mock, "COMMIT")
		}
	}
	if state, err := session(t, j).Abort(t.Context(), txn, journal.Forced); state != journal.StateAborted || err != nil {
		t.Errorf("got %q, %v", state, err)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}

func TestHardenThatWroteNothing(t *testing.T) {
	j, mock := mocked(t)
	expectExec(mock, "BEGIN forced")
	expectWrite(mock, hardenText, 0)
	expectExec(mock, "COMMIT")
	if err := j.Harden(t.Context()); !errors.Is(err, branches.ErrNotInstalled) {
		t.Errorf("got %v, want ErrNotInstalled", err)
	}
}

func TestCreateAnswers(t *testing.T) {
	nowMS := wall.Now().UnixMilli()
	maxMS := journal.DefaultMaxDrift.Milliseconds()
	for _, tc := range []struct {
		name   string
		stamp  driver.Value // returned by the INSERT, nil for no row
		why    []driver.Value
		expect func(error) bool
	}{
		{"stamped", int64(77), nil, func(err error) bool { return err == nil }},
		{"id exists", nil, []driver.Value{nowMS, "ABORTED"}, func(err error) bool {
			c, ok := errors.AsType[*journal.Conflict](err)
			return ok && c.Found == journal.StateAborted && c.To == journal.StateActive
		}},
		{"id exists, and a clock is wrong", nil, []driver.Value{nowMS + 2*maxMS, "ACTIVE"}, func(err error) bool {
			_, ok := errors.AsType[*journal.Conflict](err)
			return ok
		}},
		{"journal's clock ahead", nil, []driver.Value{nowMS + 2*maxMS, nil}, func(err error) bool {
			d, ok := errors.AsType[*journal.Drift](err)
			return ok && d.Caller.UnixMilli() == nowMS && d.Journal.UnixMilli() == nowMS+2*maxMS
		}},
		{"journal's clock behind", nil, []driver.Value{nowMS - 2*maxMS, nil}, func(err error) bool {
			_, ok := errors.AsType[*journal.Drift](err)
			return ok
		}},
		{"no reason", nil, []driver.Value{nowMS, nil}, func(err error) bool {
			_, conflict := errors.AsType[*journal.Conflict](err)
			_, drift := errors.AsType[*journal.Drift](err)
			return err != nil && !conflict && !drift
		}},
		{"a stamp that is no number", "77", nil, func(err error) bool { return err != nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, mock := mocked(t)
			expectExec(mock, "BEGIN unforced")
			if tc.stamp != nil {
				expectRows(mock, createText, tc.stamp)
			} else {
				expectRows(mock, createText)
			}
			expectExec(mock, "COMMIT")
			if tc.why != nil {
				expectRead(mock, "SELECT now_ms(), (SELECT state", tc.why...)
			}
			rec := journal.Record{Txn: txn, TxTime: 5}
			err := session(t, j).Create(t.Context(), &rec)
			if !tc.expect(err) {
				t.Fatalf("got %v", err)
			}
			if err == nil && (rec.TxTime != 77 || rec.CreatedMS != nowMS || rec.State != journal.StateActive) {
				t.Errorf("the record is %+v", rec)
			}
			if err != nil && rec.State != "" {
				t.Errorf("a failed Create left state %s", rec.State)
			}
		})
	}
}

func TestPrepareWrongTransition(t *testing.T) {
	j, mock := mocked(t)
	expectExec(mock, "BEGIN unforced")
	expectWrite(mock, prepareText, 0)
	expectExec(mock, "COMMIT")
	expectRead(mock, stateText, "DONE")
	err := session(t, j).Prepare(t.Context(), journal.Decision{Txn: txn})
	if c, ok := errors.AsType[*journal.Conflict](err); !ok || c.Found != journal.StateDone || c.To != journal.StatePrepared {
		t.Errorf("got %v", err)
	}
}

func TestFinishIsOneUnforcedStatement(t *testing.T) {
	j, mock := mocked(t)
	other := branches.TxnID{0, 1}
	expectExec(mock, "BEGIN unforced")
	mock.ExpectExec(finishText).
		WithArgs(other.String()+","+txn.String(), wall.Now().UnixMilli()).
		WillReturnResult(sqlmock.NewResult(0, 1))
	expectExec(mock, "COMMIT")
	if n, err := j.Finish(t.Context(), []branches.TxnID{txn, other, txn}); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

func TestLayouts(t *testing.T) {
	for _, tc := range []struct {
		name         string
		meta, bare   int64
		layout       driver.Value
		notInstalled bool
		found        int
	}{
		{name: "nothing", notInstalled: true},
		{name: "the seeds' table", bare: 1, found: 1},
		{name: "older", meta: 1, bare: 1, layout: int64(1), found: 1},
		{name: "newer", meta: 1, bare: 1, layout: int64(99), found: 99},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, mock := unexamined(t)
			expectRead(mock, "SELECT tables", tc.meta, tc.bare)
			if tc.layout != nil {
				expectRead(mock, "SELECT layout", tc.layout)
			}
			err := j.Harden(t.Context())
			layout, ok := errors.AsType[*journal.Layout](err)
			if errors.Is(err, branches.ErrNotInstalled) != tc.notInstalled || ok != (tc.found != 0) {
				t.Fatalf("got %v", err)
			}
			if ok && (layout.Found != tc.found || layout.Known != sqljournal.Layout) {
				t.Errorf("got %+v", layout)
			}
		})
	}
}

// One version at a time, in one transaction, from what is found in it.
func TestInstallUpgradesStepByStep(t *testing.T) {
	for name, tc := range map[string]struct {
		meta, bare int64
		layout     driver.Value
		steps      []string
		fails      bool
	}{
		"new":     {steps: []string{"LAYOUT 1", "LAYOUT 2", "LAYOUT 3"}},
		"seeds":   {bare: 1, steps: []string{"LAYOUT 2", "LAYOUT 3"}},
		"current": {meta: 1, bare: 1, layout: int64(sqljournal.Layout)},
		"newer":   {meta: 1, bare: 1, layout: int64(sqljournal.Layout + 1), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			j, mock := unexamined(t)
			expectExec(mock, "BEGIN forced")
			expectRows(mock, "SELECT tables", tc.meta, tc.bare)
			if tc.layout != nil {
				expectRows(mock, "SELECT layout", tc.layout)
			}
			for _, step := range tc.steps {
				expectExec(mock, step)
			}
			if !tc.fails {
				expectExec(mock, "COMMIT")
			}
			if err := j.Install(t.Context()); (err != nil) != tc.fails {
				t.Errorf("got %v", err)
			}
		})
	}
}
