package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

// hasEffect is true of a transaction that must be prepared. Without an xid
// nothing was written, and the INSERT that asks this assigns none when it is
// false. But no xid is not "no effect": a write through a foreign table takes
// effect at COMMIT, and at SERIALIZABLE it is the end of the transaction that
// is checked.
const (
	hasEffect = "(pg_catalog.pg_current_xact_id_if_assigned() IS NOT NULL" +
		" OR EXISTS (SELECT FROM pg_catalog.pg_foreign_table))"
	hasEffectIsolated = "(" + hasEffect +
		" OR pg_catalog.current_setting('transaction_isolation')='serializable')"
)

// checkConstraints lets deferred constraints speak where aborting is cheapest,
// and under the role that the application chose.
const checkConstraints = "SET CONSTRAINTS ALL IMMEDIATE"

// Stage is S3. It is one message, and the vote is in its answers. Where the vote
// is certain it waits for nothing: the message then goes with the one that ends
// the branch, COMMIT or PREPARE.
func (b *Branch) Stage(ctx context.Context, unit branches.Unit) (branches.Staged, error) {
	// A failed transaction answers COMMIT and PREPARE with ROLLBACK and no error.
	if err := b.Doomed(); err != nil {
		return branches.Staged{}, err
	}
	if err := b.begin(ctx); err != nil { // none of its statements has reached the server
		return branches.Staged{}, b.session.store.fail("stage branch", lostSession(nil))
	}
	if unit.Marker && unit.TxTime <= 0 {
		return branches.Staged{}, b.session.store.fail("stage branch", errNoTime)
	}
	if unit.OnePhase && !unit.Marker {
		b.plain = true
		return b.votes(branches.VotePrepare), nil
	}
	readOnly, err := b.isReadOnly(ctx)
	if err != nil {
		return branches.Staged{}, b.stageError(err)
	}
	switch {
	case readOnly && unit.Notice && !unit.OnePhase:
		return branches.Staged{}, b.session.store.refuseNotify(nil)
	case readOnly:
		b.plain = true
		return b.votes(branches.VoteReadOnly), nil
	case unit.OnePhase || b.Wrote():
		// The schema is found now: the end must not wait for another connection.
		if _, err := b.session.store.known(ctx); err != nil {
			return branches.Staged{}, b.stageError(err)
		}
		b.marker = &unit
		return b.votes(branches.VotePrepare), nil
	}
	return b.stage(ctx, unit)
}

func (b *Branch) votes(vote branches.Vote) branches.Staged {
	b.vote = vote
	return branches.Staged{Vote: vote}
}

// isReadOnly asks, in a wait of its own, only where the transaction may be
// read-only: an INSERT would fail it.
func (b *Branch) isReadOnly(ctx context.Context) (bool, error) {
	may, certain := b.maybeReadOnly()
	if !may || certain {
		return may, nil
	}
	got, err := ask(ctx, b.session.client(), "SELECT pg_catalog.current_setting('transaction_read_only')")
	return got.cell(0, 0) == "on", err
}

func (b *Branch) stage(ctx context.Context, unit branches.Unit) (branches.Staged, error) {
	names, err := b.session.store.known(ctx)
	if err != nil {
		return branches.Staged{}, b.stageError(err)
	}
	condition := hasEffectIsolated
	if b.wrote || unit.Notice {
		condition = "true"
	}
	// The role is told as the statements had it, and left: a transaction prepared
	// under SET ROLE belongs to that role, and COMMIT PREPARED is then refused to
	// its own session for ever.
	got, err := b.session.send(ctx,
		part{text: checkConstraints},
		part{text: forced + roleLeft + "," + condition},
		names.mark(unit, "", " WHERE "+condition))
	if err != nil {
		return branches.Staged{}, b.stageError(err)
	}
	b.elsewhere = got.cell(1, 2) != "none"
	effect := got.cell(1, 4) == "t"
	if marked := got.affected(2) == 1; marked != effect {
		return branches.Staged{}, b.stageError(errMarkerRefused)
	}
	if !effect {
		return b.votes(branches.VoteReadOnly), nil
	}
	return b.votes(branches.VotePrepare), nil
}

// leaveRole makes the login the owner of what is prepared, and the writer of
// the marker.
const leaveRole = "SET LOCAL ROLE NONE"

// roleLeft tells the role and does what leaveRole does, as columns of a SELECT:
// a select list is evaluated from left to right.
const roleLeft = ",pg_catalog.current_setting('role'),pg_catalog.set_config('role','none',true)"

// mark is the plain INSERT of a unit's marker, between before and after. It
// raises against a tombstone.
func (t *tables) mark(unit branches.Unit, before, after string) part {
	insert := before + "INSERT INTO " + t.applied + " (dat_txn,dat_tx_time) SELECT "
	return part{
		text:    insert + "$1::pg_catalog.uuid,$2::pg_catalog.int8" + after,
		args:    []string{unit.Txn.String(), literalInt(int64(unit.TxTime))},
		literal: insert + literalTxn(unit.Txn) + "," + literalInt(int64(unit.TxTime)) + after,
	}
}

// errNoTime: a marker of 0 is a tombstone.
var errNoTime = errors.New("the unit has no dat_tx_time")

var errMarkerRefused = errors.New("the marker row was suppressed: a trigger or rule on dat_applied does not belong there")

// stageError explains an error of S3.
func (b *Branch) stageError(err error) error {
	b.session.failed(err)
	s := b.session.store
	pgErr := serverError(err)
	if pgErr != nil && pgErr.Code == codeUniqueViolation && pgErr.TableName == appliedTable && b.isOurs(pgErr.SchemaName) {
		return &branches.Error{
			Store: s.name, Doing: "stage branch", Err: err,
			Cause: "a marker of this unit stands: it was settled by another, or two stores share the table",
			Asks:  branches.Permanent,
		}
	}
	if errors.Is(err, errMarkerRefused) {
		return &branches.Error{Store: s.name, Doing: "stage branch", Err: err, Asks: branches.Permanent}
	}
	return s.explain("stage branch", err)
}

func (b *Branch) isOurs(schema string) bool {
	names := b.session.store.tables.Load()
	return names != nil && strings.EqualFold(names.schema, schema)
}
