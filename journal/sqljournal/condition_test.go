package sqljournal_test

import (
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"github.com/rhizodat/rhizodat-go/journal"
)

// The texts of S7 on conditions: the lock is in the same statement.
const (
	grantedText  = `WITH granted AS MATERIALIZED (SELECT 1 AS one FROM dat_lease WHERE name = CAST($4 AS text) AND fence = CAST($5 AS bigint) SHARE) UPDATE dat_journal SET state = 'COMMITTED'`
	claimedText  = `AND value IS NULL HOLD) UPDATE dat_journal SET state = 'COMMITTED'`
	recordedText = `AND EXISTS (SELECT 1 FROM dat_journal WHERE dat_txn = CAST($6 AS uuid) AND state = 'COMMITTED')`
	leaseText    = `FROM dat_lease WHERE name = CAST($1 AS text)`
	stepText     = `value FROM dat_step WHERE execution`
)

// S7 under a lease and with a step: every count of changed rows, and what is read
// after a refusal, has one answer.
func TestDecideUnderConditions(t *testing.T) {
	lease := func(fence int64) []driver.Value { return []driver.Value{"p", "a", "t", fence, int64(1), int64(0)} }
	step := func(token string, recorded int64) []driver.Value {
		return []driver.Value{"e", "l", "0", "a", token, int64(1), int64(0), recorded, int64(1), int64(1), nil}
	}
	for _, tc := range []struct {
		name        string
		lease, step bool
		counts      []int64
		found       driver.Value
		stands      []driver.Value // of the lease, read after a refusal
		claim       []driver.Value // of the step
		want        string
	}{
		{name: "under a lease", lease: true, counts: []int64{1}, want: "applied"},
		{name: "under a lease that is another's", lease: true, counts: []int64{0}, found: "PREPARED", stands: lease(2), want: "fenced by 2"},
		{name: "under a lease that never was", lease: true, counts: []int64{0}, found: "ACTIVE", stands: []driver.Value{}, want: "fenced by 0"},
		{name: "under a lease, aborted", lease: true, counts: []int64{0}, found: "ABORTED", want: "conflict"},
		{name: "under a lease, no record", lease: true, counts: []int64{0}, found: "", want: "conflict"},
		{name: "under a lease, two rows", lease: true, counts: []int64{2}, want: "unknown"},
		{name: "under a lease that is back", lease: true, counts: []int64{0}, found: "PREPARED", stands: lease(1), want: "conflict"},
		{name: "with a step", step: true, counts: []int64{1, 1}, want: "applied"},
		{name: "with a step that is another's", step: true, counts: []int64{0, 0}, found: "PREPARED", claim: step("other", 0), want: "superseded"},
		{name: "with a step that is recorded", step: true, counts: []int64{0, 0}, found: "PREPARED", claim: step("t", 1), want: "superseded"},
		{name: "with a step that is gone", step: true, counts: []int64{0, 0}, found: "PREPARED", claim: []driver.Value{}, want: "superseded"},
		{name: "decided and not recorded", step: true, counts: []int64{1, 0}, want: "unknown"},
		{name: "recorded and not decided", step: true, counts: []int64{0, 1}, want: "unknown"},
		{name: "both", lease: true, step: true, counts: []int64{1, 1}, want: "applied"},
		{name: "both, fenced", lease: true, step: true, counts: []int64{0, 0}, found: "PREPARED", stands: lease(2), want: "fenced by 2"},
		{name: "both, superseded", lease: true, step: true, counts: []int64{0, 0}, found: "PREPARED", stands: lease(1), claim: step("other", 0), want: "superseded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, mock := mocked(t)
			expectExec(mock, "BEGIN forced")
			text, d := grantedText, journal.Decision{Txn: txn, TxTime: 9, WithPrepare: true}
			if tc.lease {
				d.Lease, d.Fence = "p", 1
			}
			if tc.step {
				text = claimedText
				d.Step = &journal.StepRecord{Key: journal.StepKey{Execution: "e", Label: "l", Input: "0"}, Token: "t"}
			}
			expectWrite(mock, text, tc.counts[0])
			if tc.step {
				expectWrite(mock, recordedText, tc.counts[1])
			}
			expectExec(mock, "COMMIT")
			if tc.found == "" {
				expectRead(mock, stateText)
			} else if tc.found != nil {
				expectRead(mock, stateText, tc.found)
			}
			if tc.stands != nil {
				expectRead(mock, leaseText, tc.stands...)
			}
			if tc.claim != nil {
				expectRead(mock, stepText, tc.claim...)
			}
			if got := verdict(session(t, j).Decide(t.Context(), d)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func verdict(err error) string {
	if err == nil {
		return "applied"
	}
	if fenced, ok := errors.AsType[*journal.Fenced](err); ok {
		return "fenced by " + fenced.Current.String()
	}
	if _, ok := errors.AsType[*journal.Superseded](err); ok {
		return "superseded"
	}
	if _, ok := errors.AsType[*journal.Conflict](err); ok {
		return "conflict"
	}
	return "unknown"
}

// Where the look at what stands fails, the refusal is known all the same.
func TestRefusalUnderALeaseWhoseReadFails(t *testing.T) {
	j, mock := mocked(t)
	expectExec(mock, "BEGIN forced")
	expectWrite(mock, grantedText, 0)
	expectExec(mock, "COMMIT")
	mock.ExpectExec("BEGIN read").WillReturnError(io.ErrUnexpectedEOF)
	err := session(t, j).Decide(t.Context(), journal.Decision{Txn: txn, TxTime: 9, WithPrepare: true, Lease: "p", Fence: 1})
	if conflict, ok := errors.AsType[*journal.Conflict](err); !ok || conflict.Found != "" {
		t.Errorf("got %v, want a *Conflict that found nothing", err)
	}
}
