package rhizodat_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/rhizodat/rhizodat-go"
)

func TestRunTellsItsTxn(t *testing.T) {
	r := newRig(t)
	var inside rhizodat.TxnID
	out, err := rhizodat.Run(t.Context(), r.open(t), rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
		inside = rhizodat.Tracked(ctx).Outcome().DatTxn
		_, err := tx.ExecContext(ctx, `INSERT INTO item VALUES (1)`)
		return err
	})
	if err != nil || inside.IsZero() || inside != out.DatTxn {
		t.Errorf("dat_txn inside Run is %s, outcome %s, error %v", inside, out.DatTxn, err)
	}
	if got := rhizodat.Tracked(t.Context()).Outcome(); !got.DatTxn.IsZero() {
		t.Errorf("a context without a handle tells %v", got)
	}
}

// database/sql rolls back in a goroutine of its own when the context ends: Run
// must not say less than it knows because that one is late.
func TestRunOutcomeAfterContextEnded(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		out, err := rhizodat.Run(ctx, db, rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `INSERT INTO item VALUES (1)`); err != nil {
				return err
			}
			cancel()
			return ctx.Err()
		})
		if err == nil || out.Verdict != rhizodat.VerdictAborted || out.DatTxn.IsZero() {
			t.Fatalf("outcome %s of %s, error %v", out.Verdict, out.DatTxn, err)
		}
	}
	r.want(t, "", "")
}
