package coordinator

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
)

// commitOnePhase ends a unit with at most one branch that wrote. No journal:
// the store's own commit is atomic, and its marker settles a lost answer. The
// branches that wrote nothing prove before it that their locks still stand, and
// keep them until it is over.
func (c *Coordinator) commitOnePhase(ctx context.Context, u *Unit, writers []*Part) Outcome {
	last := u.voted(branches.VoteReadOnly)
	if len(writers) > 0 {
		if err := c.each(ctx, u, S5, last, func(p *Part) error {
			return p.Branch.Prepare(ctx, branches.NewGID(u.Txn, p.Name))
		}); err != nil {
			return c.abandon(ctx, u, err)
		}
		last = writers
	}
	if err := gaveUp(ctx); err != nil {
		return c.abandon(ctx, u, err)
	}
	err := c.each(ctx, u, S8, last, func(p *Part) error {
		p.phase = phaseGone
		return p.Branch.Commit(ctx)
	})
	out := Outcome{DatTxn: u.Txn, DatTxTime: u.txTime, Verdict: VerdictCommitted}
	switch {
	case len(writers) == 0 && err == nil:
		return out
	case len(writers) == 0: // whatever became of it, it wrote nothing
		return c.abandon(ctx, u, err)
	case branches.IsUnknown(err):
		fate, doubt := c.settle(ctx, u, writers[0])
		switch fate {
		case branches.FateApplied:
		case branches.FateNever:
			return c.abandon(ctx, u, err)
		case branches.FateUnknown, branches.FateAbsent: // neither proves anything
			out.Verdict, out.Err = VerdictInDoubt, &InDoubt{DatTxn: u.Txn, cause: errors.Join(err, doubt)}
			return out
		}
	case err != nil:
		return c.abandon(ctx, u, err)
	}
	c.endReaders(ctx, u)
	return out
}

// settle asks the store, until it answers, what became of a one-phase commit
// whose answer was lost. It is detached: the end of the caller's context may be
// what lost it. CommitTimeout bounds it.
func (c *Coordinator) settle(ctx context.Context, u *Unit, p *Part) (branches.Fate, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.CommitTimeout)
	defer cancel()
	fate := branches.FateUnknown
	err := c.insist(ctx, func() (err error) {
		fate, err = p.Store.Settle(ctx, u.Txn)
		return err
	})
	if err != nil {
		return branches.FateUnknown, err
	}
	return fate, nil
}

// journaled reports whether the journal decides a unit of so many writers. One
// that wrote nothing asks for no lease, and records its step all the same.
func (u *Unit) journaled(writers int) bool {
	return writers > 1 || writers == 1 && u.Conditional() || u.Step != nil
}

// plain reports whether the commit is the store's own and nothing else: the
// driver has one store and no journal, so no marker is left, and no error of
// ours replaces the store's.
func (c *Coordinator) plain(u *Unit) bool {
	return !c.cfg.Markers && len(u.Parts) == 1 && u.Parts[0].Doom == nil && !u.Conditional()
}

func (c *Coordinator) commitPlain(ctx context.Context, u *Unit) Outcome {
	out := Outcome{DatTxn: u.Txn, Verdict: VerdictCommitted}
	err := u.Parts[0].Branch.Commit(ctx)
	if err != nil {
		out.Verdict = VerdictAborted
	}
	if branches.IsUnknown(err) {
		out.Verdict = VerdictInDoubt
	}
	out.Err = withoutBadConn(known(err))
	return out
}

// known takes the mark of an unknown outcome off: another proof has replaced
// it, or (plain) nobody here can give one. What we have wrapped around it stays.
func known(err error) error {
	if !branches.IsUnknown(err) {
		return err
	}
	switch e := err.(type) { //nolint:errorlint // wrapper by wrapper, from the outside
	case *partError:
		return &partError{part: e.part, err: known(e.err)}
	case *timeoutError:
		return &timeoutError{after: e.after, err: known(e.err)}
	}
	if inner := errors.Unwrap(err); inner != nil && !branches.IsUnknown(inner) {
		return inner
	}
	return err // marked by an adapter inside of its own error
}
