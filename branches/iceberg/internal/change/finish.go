package change

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/catalogs"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// Finisher commits changes to the tables of one catalog.
type Finisher struct {
	Catalog *catalogs.Catalog
	// Redo does a change's statements again on a later head.
	Redo func(ctx context.Context, tbl *table.Table, c *Change) (Redone, error)
	// Inspected is called between the look at a table and the commit on what was
	// seen; for tests, may be nil.
	Inspected func()
}

// Redone is what a change's statements do to a later head.
type Redone struct {
	Add    []iceberg.DataFile // rewritten rows; the inserted ones are the change's own
	Remove []iceberg.DataFile
}

// tries bounds one call. What is not done by then is tried again by the caller,
// with its own patience.
const tries = 20

// Finish commits a change in exactly one snapshot, whoever else is at it. It
// returns nil where a snapshot holds it. ErrGone, ErrNever and ErrReplaced prove
// that it never will be; an error marked by branches.Unknown proves nothing; after
// any other nothing of the change was committed by this call.
//
// decided: the unit is committed elsewhere, so that a conflict is no way out: the
// statements are done again on the head that is there.
func (f *Finisher) Finish(ctx context.Context, c *Change, mark Mark, decided bool) error {
	var last error
	for try := range tries {
		if err := backOff(ctx, try); err != nil {
			return errors.Join(err, last)
		}
		done, err := f.try(ctx, c, mark, decided)
		if done || !IsConflict(err) {
			return err
		}
		last = err
	}
	return last
}

// try is one look and one commit on what was seen.
func (f *Finisher) try(ctx context.Context, c *Change, mark Mark, decided bool) (done bool, err error) {
	tbl, err := f.Catalog.Load(ctx, c.Table)
	if err != nil {
		return false, err
	}
	if tbl.Metadata().TableUUID().String() != c.UUID {
		return false, ErrReplaced
	}
	verdict, err := c.Check(ctx, tbl, mark.Txn)
	if err != nil {
		return false, err
	}
	switch verdict.State {
	case Done:
		return true, nil
	case Never:
		return false, ErrNever
	case Vanished:
		return false, fmt.Errorf("%w: %s", ErrGone, verdict.Why)
	case Pending:
	}
	if f.Inspected != nil {
		f.Inspected()
	}
	plan, err := f.plan(ctx, tbl, c, verdict, decided)
	if err != nil {
		return false, err
	}
	if guard.Off(guard.Pinned) {
		// On whatever head is there now, seen or not.
		if tbl, err = f.Catalog.Load(ctx, c.Table); err != nil {
			return false, err
		}
	}
	err = f.commit(ctx, tbl, plan, mark)
	if err != nil && !branches.IsUnknown(err) {
		discard(ctx, tbl, plan.made)
	}
	return err == nil, err
}

// plan is what one attempt commits.
type plan struct {
	add, remove []iceberg.DataFile
	made        []iceberg.DataFile // written for this attempt alone
}

// kinded is an error of a statement: it says itself whether another try may help.
type kinded interface {
	error
	Kind() branches.Kind
}

func (f *Finisher) plan(ctx context.Context, tbl *table.Table, c *Change, verdict Verdict, decided bool) (plan, error) {
	remove, err := c.Precheck(ctx, tbl)
	switch {
	case err == nil:
		add, err := c.decode(tbl, c.Add)
		return plan{add: add, remove: remove}, err
	case !decided || !errors.Is(err, ErrConflict):
		return plan{}, err
	}
	if !verdict.Complete {
		// Done twice, an UPDATE of c to c + 1 would add two.
		whole, lookErr := c.untouched(ctx, tbl)
		if lookErr != nil || !whole {
			return plan{}, errors.Join(fmt.Errorf("%w: %w", ErrTooLate, err), lookErr)
		}
	}
	var inserted []File
	for _, file := range c.Add {
		if !file.Rewritten {
			inserted = append(inserted, file)
		}
	}
	add, err := c.decode(tbl, inserted)
	if err != nil {
		return plan{}, err
	}
	redone, err := f.Redo(ctx, tbl, c)
	if err != nil {
		if refused, ok := errors.AsType[kinded](err); ok && refused.Kind() == branches.Permanent {
			err = fmt.Errorf("%w: %w", ErrRedo, err)
		}
		return plan{}, fmt.Errorf("do the statements again: %w", err)
	}
	return plan{add: append(add, redone.Add...), remove: redone.Remove, made: redone.Add}, nil
}

// commit is one commit on exactly the head that tbl shows.
//
// INVARIANT ICE1: the requirement that TableCommit makes of the head, and the
// catalog's compare-and-swap of the metadata, leave no room for another commit of
// this unit between the look and this one. Transaction.Commit would move the
// requirement to a newer head and append again without a look.
func (f *Finisher) commit(ctx context.Context, tbl *table.Table, p plan, mark Mark) error {
	tx := tbl.NewTransaction()
	props := mark.summary()
	var err error
	switch {
	case len(p.remove) > 0:
		err = tx.ReplaceDataFilesWithDataFiles(ctx, p.remove, p.add, props, table.WithoutAutoNameMapping())
	case len(p.add) == 0:
		err = appendNothing(ctx, tx, tbl, props) // the rows to delete are gone already
	case tbl.Metadata().Version() >= 3:
		// AddDataFiles wants first_row_id, which WriteRecords never sets; a row
		// delta inherits it.
		err = tx.NewRowDelta(props).AddRows(p.add...).Commit(ctx)
	default:
		err = tx.AddDataFiles(ctx, p.add, props, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping())
	}
	if err != nil {
		return err
	}
	if guard.Off(guard.OneCommit) {
		_, err = tx.Commit(ctx)
		return err
	}
	return f.send(ctx, tbl, tx)
}

// send gives a staged commit to the catalog. An error of it that is not marked
// Unknown proves that nothing was committed.
func (f *Finisher) send(ctx context.Context, tbl *table.Table, tx *table.Transaction) error {
	commit, err := tx.TableCommit()
	if err != nil {
		return err
	}
	if _, err = f.Catalog.Get(ctx); err != nil {
		return err
	}
	err = f.Catalog.Commit(ctx, commit)
	switch {
	case err == nil:
		return nil
	case !IsConflict(err) && !branches.DeviceFull(err): // of a full device the catalog was not asked
		return branches.Unknown(err)
	}
	// A refusal may be the answer to a second delivery of what the first one did,
	// and a disk may be full only after the new name was there.
	made, ok := attempted(commit.Updates)
	now, loadErr := f.Catalog.Load(ctx, commit.Identifier)
	switch {
	case !ok, loadErr != nil:
		return branches.Unknown(errors.Join(err, loadErr))
	case now.Metadata().SnapshotByID(made.SnapshotID) != nil:
		return nil
	}
	dropAttempt(ctx, tbl, made)
	return err
}

// IsConflict reports whether a commit was refused because the head has moved.
// iceberg-go's SQL catalog says so in a bare error where the head moved before the
// call and in ErrCommitFailed where it moved during it.
func IsConflict(err error) bool {
	switch {
	case err == nil, branches.IsUnknown(err):
		return false
	case errors.Is(err, table.ErrCommitFailed):
		return true
	case errors.Is(err, rest.ErrRESTError):
		return false // whatever words a server puts into an error that is no 409
	}
	return strings.Contains(strings.ToLower(err.Error()), "requirement failed")
}

// backOff waits before another try, with full jitter.
func backOff(ctx context.Context, try int) error {
	if try == 0 {
		return ctx.Err()
	}
	most := min(20<<min(try, 6), 1000)
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(most))) * time.Millisecond) //nolint:gosec // spreads tries, guards nothing
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
