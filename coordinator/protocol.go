// Package coordinator commits meta-transactions: all branches or none.
//
// Read this file top to bottom; it is the whole protocol. Recovery calls the
// same steps.
//
// # The story
//
// A unit of work has one branch per store. When one branch wrote, its store's
// own transaction is enough. When several did, a record in the journal decides:
//
//	S1   begin         dat_txn
//	S2   work          statements, in every branch
//	S3   stage         dat_tx_time; everything likely to fail is checked
//	S4   journal       record ACTIVE: every branch, gid and payload
//	S5   prepare       every two-phase branch, in parallel
//	S6   journal       ACTIVE -> PREPARED
//	S7   decide        PREPARED -> COMMITTED: the atomic commit point
//	S8   release       every prepared branch is committed, in parallel
//	S9   roll forward  payloads are applied: what was invisible appears
//	S10  done          COMMITTED -> DONE, after Commit has returned
//
// Before S7 the unit may be aborted and run again; from S7 on it may only be
// finished. Whoever finds a record that nobody decided writes ABORTED (presumed
// abort); of that write and S7 only one can succeed, since both are
// compare-and-set on the same record. The states and their transitions are in
// package journal.
//
// # What never changes
//
// INVARIANT I1: ACTIVE is acknowledged before the first PREPARE is sent, so
// that recovery can find every prepared branch.
// INVARIANT I2: COMMITTED is acknowledged before the first branch is released.
// INVARIANT I3: only a positive proof counts. A lost answer is read back, or
// made impossible by an acknowledged ABORTED; else the outcome is InDoubt, and
// no branch is touched any more.
// INVARIANT I4: after the decision nothing is rolled back and the unit is never
// reported in a way that looks worth re-running.
//
// # Contexts
//
// The caller's context governs up to S4. From S5 on requests are sent detached
// from it (a PREPARE cut short would be a lost answer) and it is only looked at
// between steps; from S7 on not even that. S4 to S7 share CommitTimeout; S8 and
// S9, and every abort, get FinishTimeout.
package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Commit ends the unit. The Outcome's Err is what the application is told.
// REQUIRES: the caller runs nothing on the unit's sessions meanwhile.
func (c *Coordinator) Commit(ctx context.Context, u *Unit) Outcome {
	u.began = c.wall.Now()
	out := c.commit(ctx, u)
	u.release()
	c.report(ctx, u, out)
	return out
}

func (c *Coordinator) commit(ctx context.Context, u *Unit) Outcome {
	if !c.cfg.Markers && len(u.Parts) == 1 {
		return c.commitPlain(ctx, u)
	}
	if p, err := u.doomed(); err != nil {
		return c.abandon(ctx, u, &partError{part: p, err: err})
	}
	if err := c.checkRoom(ctx, u); err != nil {
		return c.abandon(ctx, u, err)
	}
	u.txTime = c.cfg.Clock.Now()

	// From here to the decision, whatever happens, CommitTimeout bounds it.
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.CommitTimeout)
	defer cancel()

	if len(u.Parts) == 1 || !u.allWrote() || c.cfg.Journal == nil {
		if err := c.stage(ctx, u); err != nil {
			return c.abandon(ctx, u, err)
		}
		if writers := u.voted(branches.VotePrepare, branches.VoteApply); len(writers) < 2 {
			return c.commitOnePhase(ctx, u, writers)
		}
		if err := c.recordActive(ctx, limit, u); err != nil {
			return c.abandon(ctx, u, err)
		}
	} else if err := c.stageAndRecord(ctx, limit, u); err != nil {
		return c.abandon(ctx, u, err)
	}

	if err := c.prepare(limit, u); err != nil {
		return c.abandon(ctx, u, err)
	}
	if err := context.Cause(ctx); err != nil { // the last look at the caller
		return c.abandon(ctx, u, err)
	}
	if err := c.recordPrepared(limit, u); err != nil {
		return c.abandon(ctx, u, err)
	}
	if guard.Off(guard.Order) {
		c.finish(ctx, u)
	}
	state, cause := c.decide(limit, u)
	u.release()
	switch state {
	case journal.StateCommitted, journal.StateDone:
		return c.finish(ctx, u)
	case journal.StateAborted:
		return c.abandon(ctx, u, cause)
	case journal.StateActive, journal.StatePrepared: // never returned: they prove nothing
	}
	return Outcome{
		DatTxn: u.Txn, DatTxTime: u.txTime, Verdict: VerdictInDoubt, Journaled: true,
		Err: &InDoubt{DatTxn: u.Txn, cause: cause},
	}
}

// stage is S3: slow, under the caller's context, in every branch at once.
// Failures here are the cheapest.
func (c *Coordinator) stage(ctx context.Context, u *Unit) error {
	unit := branches.Unit{Txn: u.Txn, TxTime: u.txTime, OnePhase: len(u.Parts) == 1, Marker: c.cfg.Markers}
	return c.step(ctx, u, S3, func() error {
		return c.each(ctx, u, S3, u.Parts, func(p *Part) error {
			unit := unit
			unit.Notice = p.Notice
			staged, err := p.Branch.Stage(ctx, unit)
			if err != nil {
				return err
			}
			if staged.Vote < branches.VoteReadOnly || staged.Vote > branches.VoteApply {
				return fmt.Errorf("rhizodat: stage branch: adapter answered %s", staged.Vote)
			}
			if size := int64(len(staged.Payload)); c.cfg.MaxPayload > 0 && size > c.cfg.MaxPayload {
				return fmt.Errorf("rhizodat: stage branch: payload of %d bytes exceeds max_payload=%d: write fewer rows in one transaction or raise it", size, c.cfg.MaxPayload)
			}
			p.staged = staged
			return nil
		})
	})
}

// recordActive is S4. Its answer is not forced: what a crash of the journal
// loses here was never prepared, or is prepared without a record and rolled
// back by the sweep. limit bounds it beside the caller's context.
func (c *Coordinator) recordActive(ctx, limit context.Context, u *Unit) error {
	record := u.record()
	if err := c.create(ctx, limit, u, record); err != nil {
		return err
	}
	u.txTime = record.TxTime // stamped above the read fence
	return nil
}

// stageAndRecord runs S4 beside S3 where every branch is certain to have
// written, so that the record cannot name one that did not: one wait less.
func (c *Coordinator) stageAndRecord(ctx, limit context.Context, u *Unit) error {
	for _, p := range u.Parts {
		p.staged.Vote = branches.VotePrepare
	}
	record := u.record()
	if err := fan([]func() error{
		func() error { return c.create(ctx, limit, u, record) },
		func() error { return c.stage(ctx, u) },
	}, func(f func() error) error { return f() }); err != nil {
		return err
	}
	if len(u.voted(branches.VotePrepare)) != len(u.Parts) {
		return errors.New("rhizodat: stage branch: adapter said that it had written and did not vote to prepare")
	}
	u.txTime = record.TxTime
	return nil
}

func (c *Coordinator) create(ctx, limit context.Context, u *Unit, record *journal.Record) error {
	if c.cfg.Journal == nil {
		return ErrNoJournal
	}
	if deadline, ok := limit.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	if err := c.admit(ctx, u); err != nil {
		return err
	}
	session, err := c.cfg.Journal.Session(ctx)
	if err != nil {
		return &journalError{err}
	}
	u.session = session
	u.recorded = true
	return c.step(ctx, u, S4, func() error {
		return c.journalAnswer(u, session.Create(ctx, record))
	})
}

// prepare is S5: the first step that leaves something behind. Branches that
// wrote nothing are asked for a sign of life instead, since their locks may
// guard what the others wrote.
func (c *Coordinator) prepare(ctx context.Context, u *Unit) error {
	err := c.step(ctx, u, S5, func() error {
		return c.each(ctx, u, S5, u.voted(branches.VotePrepare, branches.VoteReadOnly), func(p *Part) error {
			err := p.Branch.Prepare(ctx, branches.NewGID(u.Txn, p.Name))
			switch {
			case p.staged.Vote == branches.VoteReadOnly:
			case err == nil:
				p.phase = phasePrepared
			case branches.IsUnknown(err):
				p.phase = phaseUnknown
			default: // an answered PREPARE that failed has rolled its branch back
				p.phase = phaseGone
			}
			return err
		})
	})
	u.prepared = c.wall.Now()
	return err
}

// recordPrepared is S6. It travels with S7 unless SplitDecision asks for two
// requests. Not forced.
func (c *Coordinator) recordPrepared(ctx context.Context, u *Unit) error {
	if !c.cfg.SplitDecision {
		return nil
	}
	return c.step(ctx, u, S6, func() error {
		return c.journalAnswer(u, u.session.Prepare(ctx, journal.Decision{Txn: u.Txn, TxTime: u.txTime}))
	})
}

// decide is S7, forced. A state is returned only with proof: COMMITTED or DONE
// was acknowledged or read, ABORTED was acknowledged or read. With none of
// these the state is empty and the unit in doubt.
func (c *Coordinator) decide(ctx context.Context, u *Unit) (journal.State, error) {
	decision := journal.Decision{Txn: u.Txn, TxTime: u.txTime, WithPrepare: !c.cfg.SplitDecision}
	write := func() error {
		return c.step(ctx, u, S7, func() error {
			return c.journalAnswer(u, u.session.Decide(ctx, decision))
		})
	}
	var lost error
	if decision.WithPrepare {
		lost = c.step(ctx, u, S6, write)
	} else {
		lost = write()
	}
	if lost == nil {
		return journal.StateCommitted, nil
	}
	// Even a refused S7 may be the second delivery of one that won, and a read
	// of ACTIVE or PREPARED proves nothing while the lost backend may still be
	// committing. ABORTED, attempted, blocks behind it and answers for good.
	for delay := firstDelay; ; delay = next(delay) {
		state, err := u.session.Abort(ctx, u.Txn, journal.Forced)
		if err == nil {
			return state, lost
		}
		if c.wall.Sleep(ctx, delay) != nil {
			return "", errors.Join(lost, err)
		}
	}
}

// finish is S8 and S9 of a decided unit. What it cannot end within
// FinishTimeout stays with this process and with recovery.
func (c *Coordinator) finish(ctx context.Context, u *Unit) Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.FinishTimeout)
	defer cancel()
	var locked, payloads []*ending
	for _, p := range u.voted(branches.VotePrepare) {
		locked = append(locked, &ending{ref: p.ref(u), store: p.Store, branch: p.Branch})
	}
	for _, p := range u.voted(branches.VoteApply) {
		payloads = append(payloads, &ending{ref: p.ref(u), store: p.Store, branch: p.Branch})
	}
	c.release(ctx, u.Txn, locked, true)
	u.released = c.wall.Now()
	c.endReaders(ctx, u)
	c.rollForward(ctx, u.Txn, payloads, true)

	out := Outcome{DatTxn: u.Txn, DatTxTime: u.txTime, Verdict: VerdictCommitted, Journaled: true}
	return c.ended(ctx, out, append(locked, payloads...))
}

// release is S8: locks first. INVARIANT I2: the decision is acknowledged.
func (c *Coordinator) release(ctx context.Context, txn branches.TxnID, locked []*ending, insist bool) {
	c.endAll(ctx, txn, S8, locked, insist)
}

// rollForward is S9: what the decision made true is made visible.
func (c *Coordinator) rollForward(ctx context.Context, txn branches.TxnID, payloads []*ending, insist bool) {
	c.endAll(ctx, txn, S9, payloads, insist)
}

// endReaders ends the branches that wrote nothing, after every S8 answer, so
// that their locks guard the whole unit. A failure changes no outcome.
func (c *Coordinator) endReaders(ctx context.Context, u *Unit) {
	err := fan(u.voted(branches.VoteReadOnly), func(p *Part) error { return p.Branch.Commit(ctx) })
	if err != nil {
		c.log.DebugContext(ctx, "rhizodat: read-only branch ended with an error", "dat_txn", u.Txn, "error", err)
	}
}

// abandon is the abort of a unit that this coordinator has not sent to S7, or
// that the journal has aborted: nobody can decide it any more, so it is Aborted
// even where a branch does not answer. Detached, bounded by FinishTimeout.
func (c *Coordinator) abandon(ctx context.Context, u *Unit, cause error) Outcome {
	out := c.abortedOutcome(ctx, u, cause)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.FinishTimeout)
	defer cancel()
	jobs := make([]func() error, 0, len(u.Parts)+1)
	if session := u.session; session != nil && u.recorded {
		jobs = append(jobs, func() error {
			_, err := session.Abort(ctx, u.Txn, journal.Unforced)
			return err
		})
	}
	for _, p := range u.Parts {
		jobs = append(jobs, func() error { return c.undo(ctx, u, p) })
	}
	if err := fan(jobs, func(f func() error) error { return f() }); err != nil {
		c.log.WarnContext(ctx, "rhizodat: abort left to recovery", "dat_txn", u.Txn, "error", err)
	}
	return out
}

// undo takes one branch back as far as it went.
func (c *Coordinator) undo(ctx context.Context, u *Unit, p *Part) error {
	switch p.phase {
	case phaseOpen:
		return p.Branch.Rollback(ctx)
	case phasePrepared, phaseUnknown:
		ref := p.ref(u)
		err := p.Store.Abort(ctx, ref)
		if err != nil || p.phase == phaseUnknown { // a lost PREPARE may land yet
			c.later.abort(ctx, p.Store, ref)
		}
		return err
	case phaseGone:
	}
	return nil
}

// commitOnePhase ends a unit with at most one branch that wrote. No journal:
// the store's own commit is atomic, and its marker settles a lost answer.
func (c *Coordinator) commitOnePhase(ctx context.Context, u *Unit, writers []*Part) Outcome {
	out := Outcome{DatTxn: u.Txn, DatTxTime: u.txTime, Verdict: VerdictCommitted}
	readers := u.voted(branches.VoteReadOnly)
	if len(u.Parts) > 1 && len(writers) == 1 {
		if err := c.each(ctx, u, S5, readers, func(p *Part) error {
			return p.Branch.Prepare(ctx, branches.NewGID(u.Txn, p.Name))
		}); err != nil {
			return c.abandon(ctx, u, err)
		}
	}
	if len(writers) == 0 {
		if err := c.each(ctx, u, S8, readers, func(p *Part) error { return p.Branch.Commit(ctx) }); err != nil {
			return c.onePhaseFailed(ctx, u, err)
		}
		return out
	}
	if err := c.each(ctx, u, S8, writers, func(p *Part) error { return p.Branch.Commit(ctx) }); err != nil {
		if !branches.IsUnknown(err) {
			return c.onePhaseFailed(ctx, u, err)
		}
		fate, doubt := c.settle(ctx, u, writers[0])
		switch fate {
		case branches.FateApplied:
		case branches.FateNever:
			return c.onePhaseFailed(ctx, u, err)
		case branches.FateUnknown, branches.FateAbsent: // neither proves anything
			out.Verdict, out.Err = VerdictInDoubt, &InDoubt{DatTxn: u.Txn, cause: errors.Join(err, doubt)}
			return out
		}
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.FinishTimeout)
	defer cancel()
	c.endReaders(limit, u)
	return out
}

// commitPlain is the commit of a driver that has one store and no journal: it is
// that store's own driver, with its own errors.
func (c *Coordinator) commitPlain(ctx context.Context, u *Unit) Outcome {
	out := Outcome{DatTxn: u.Txn, Verdict: VerdictCommitted}
	if out.Err = u.Parts[0].Branch.Commit(ctx); out.Err != nil {
		out.Verdict = VerdictAborted
	}
	if branches.IsUnknown(out.Err) {
		out.Verdict, out.Err = VerdictInDoubt, errors.Unwrap(out.Err)
	}
	return out
}

// settle asks the store, until it answers, what became of a one-phase commit
// whose answer was lost.
func (c *Coordinator) settle(ctx context.Context, u *Unit, p *Part) (branches.Fate, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.CommitTimeout)
	defer cancel()
	for delay := firstDelay; ; delay = next(delay) {
		fate, err := p.Store.Settle(ctx, u.Txn)
		if err == nil {
			return fate, nil
		}
		if c.wall.Sleep(ctx, delay) != nil {
			return branches.FateUnknown, err
		}
	}
}

// The delays between two tries of one request inside a commit.
const (
	firstDelay = 10 * time.Millisecond
	lastDelay  = time.Second
)

func next(delay time.Duration) time.Duration { return min(2*delay, lastDelay) }
