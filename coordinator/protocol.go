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
// compare-and-set on the same record.
//
// # States of the record, and the only transitions
//
//	ACTIVE    -> PREPARED    S6
//	ACTIVE    -> ABORTED     presumed abort
//	PREPARED  -> COMMITTED   S7
//	PREPARED  -> ABORTED     presumed abort
//	COMMITTED -> DONE        S10
//
// A record is born ACTIVE (S4), or ABORTED to forbid a commit whose own S4 was
// never seen. DONE and ABORTED are final.
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
//
// A unit with one writing branch needs none of this; see onephase.go.
//
// # Conditions
//
// A unit may commit under a lease, and may record the value of a step. Then S7
// also asks whether the lease's row still carries the unit's fence, and whether
// the step's claim is still the caller's, each locked in the same statement.
// Where one does not hold, S7 loses and the unit is aborted: an expired lease or
// a claim that was taken over permits another writer, and only this stops the
// late one. Such a unit has a record however few of its branches wrote.
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
	if err := c.checkRoom(ctx, u); err != nil {
		return c.abandon(ctx, u, err)
	}
	if c.plain(u) {
		return c.commitPlain(ctx, u)
	}
	if err := u.doomed(); err != nil {
		return c.abandon(ctx, u, err)
	}
	if err := gaveUp(ctx); err != nil {
		return c.abandon(ctx, u, err)
	}
	u.txTime = c.cfg.Clock.Now()

	recordActive := c.stageAndRecord
	if c.cfg.Journal == nil || !u.allWrote() {
		if err := c.stage(ctx, u); err != nil {
			return c.abandon(ctx, u, err)
		}
		if writers := u.voted(branches.VotePrepare, branches.VoteApply); !u.journaled(len(writers)) {
			return c.commitOnePhase(ctx, u, writers)
		}
		recordActive = c.recordActive
	}

	// From here to the decision, whatever happens, CommitTimeout bounds it.
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.CommitTimeout)
	defer cancel()
	for _, step := range []func() error{
		func() error { return recordActive(ctx, limit, u) },
		func() error { return c.prepare(limit, u) },
		func() error { return c.recordPrepared(limit, u) },
		func() error { return nil }, // the last look before S7
	} {
		if err := c.inTime(ctx, limit, step); err != nil {
			return c.abandon(ctx, u, err)
		}
	}

	locked := u.endings(branches.VotePrepare)
	if guard.Off(guard.Order) {
		c.release(ctx, u.Txn, locked, false)
		locked = nil
	}
	state, cause := c.decide(limit, u)
	switch state {
	case journal.StateCommitted, journal.StateDone:
		return c.finish(ctx, u, locked)
	case journal.StateAborted:
		return c.abandon(ctx, u, cause)
	case journal.StateActive, journal.StatePrepared: // never returned: they prove nothing
	}
	// INVARIANT I3: from here on no branch is touched, nor is it later.
	return Outcome{
		DatTxn: u.Txn, DatTxTime: u.txTime, Verdict: VerdictInDoubt, Journaled: true,
		Err: &InDoubt{DatTxn: u.Txn, cause: cause},
	}
}

// stage is S3: slow, under the caller's context, in every branch at once.
// Failures here are the cheapest. With several branches each leaves its marker:
// without it no lost answer could be told from a rollback.
func (c *Coordinator) stage(ctx context.Context, u *Unit) error {
	unit := branches.Unit{Txn: u.Txn, TxTime: u.txTime, OnePhase: len(u.Parts) == 1 && !u.Conditional()}
	unit.Marker = c.cfg.Markers || !unit.OnePhase
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
			if staged.Vote == branches.VoteApply && staged.Payload == nil {
				return errors.New("rhizodat: stage branch: adapter voted to apply a payload and has none")
			}
			if size := int64(len(staged.Payload)); c.cfg.MaxPayload > 0 && size > c.cfg.MaxPayload {
				return &PayloadTooLarge{Store: p.Name, Size: size, Max: c.cfg.MaxPayload}
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
	c.stamp(ctx, u, record)
	return nil
}

// stageAndRecord runs S4 beside S3 where every branch is certain to have
// written, so that the record cannot name one that did not: one wait less. S3 is
// then within CommitTimeout too, since a record that waits longer counts as stale.
func (c *Coordinator) stageAndRecord(ctx, limit context.Context, u *Unit) error {
	for _, p := range u.Parts {
		p.staged.Vote = branches.VotePrepare
	}
	record := u.record()
	if err := fan([]func() error{
		func() error {
			ctx, cancel := both(ctx, limit)
			defer cancel()
			return c.stage(ctx, u)
		},
		func() error { return c.create(ctx, limit, u, record) },
	}, func(f func() error) error { return f() }); err != nil {
		return err
	}
	if len(u.voted(branches.VotePrepare)) != len(u.Parts) {
		return errors.New("rhizodat: stage branch: adapter said that it had written and did not vote to prepare")
	}
	c.stamp(ctx, u, record)
	return nil
}

func (c *Coordinator) create(ctx, limit context.Context, u *Unit, record *journal.Record) error {
	if c.cfg.Journal == nil {
		return ErrNoJournal
	}
	ctx, cancel := both(ctx, limit)
	defer cancel()
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
// guard what the others wrote. Once one has failed the unit is aborted, and the
// other answers are waited for no longer than an abort may take.
func (c *Coordinator) prepare(ctx context.Context, u *Unit) error {
	ctx, hurry := context.WithCancel(ctx)
	defer hurry()
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
			if err != nil {
				time.AfterFunc(c.cfg.FinishTimeout, hurry)
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
	decision := journal.Decision{
		Txn: u.Txn, TxTime: u.txTime, WithPrepare: !c.cfg.SplitDecision,
		Lease: u.Lease, Fence: u.Fence, Step: u.Step,
	}
	write := func() error {
		// Half of the time at most, so that a lost answer can still be read back.
		ctx, cancel := context.WithTimeout(ctx, c.cfg.CommitTimeout/2)
		defer cancel()
		return c.step(ctx, u, S7, func() error {
			return c.journalAnswer(u, u.session.Decide(ctx, decision))
		})
	}
	defer u.release()
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
	if ctx.Err() != nil { // stopped for long, or out of time in S7: one look all the same
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), c.cfg.FinishTimeout)
		defer cancel()
	}
	var state journal.State
	err := c.insist(ctx, func() (err error) {
		state, err = u.session.Abort(ctx, u.Txn, journal.Forced)
		return err
	})
	u.release() // what follows takes a place of its own
	if err == nil && state.Decided() {
		// It was only read, and may be visible without being durable (its wait
		// for a standby was cut short). Hardened, it must still stand: a fail-over
		// between the two would have lost it.
		err = c.insist(ctx, func() (err error) {
			if err = c.cfg.Journal.Harden(ctx); err == nil {
				state, err = c.forbid(ctx, u.Txn)
			}
			return err
		})
	}
	if err != nil {
		return "", errors.Join(lost, err)
	}
	return state, lost
}

// finish is S8 and S9 of a decided unit. What it cannot end within
// FinishTimeout stays with this process and with recovery.
func (c *Coordinator) finish(ctx context.Context, u *Unit, locked []*ending) Outcome {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.FinishTimeout)
	defer cancel()
	payloads := u.endings(branches.VoteApply)
	c.release(limit, u.Txn, locked, true)
	u.released = c.wall.Now()
	c.endReaders(ctx, u)
	c.rollForward(limit, u.Txn, payloads, true)
	return c.decided(ctx, u, append(locked, payloads...))
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
// that their locks guard the whole unit. A failure changes no outcome. Its time
// is its own: a store that used up S8's must not keep these locks.
func (c *Coordinator) endReaders(ctx context.Context, u *Unit) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.FinishTimeout)
	defer cancel()
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
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.FinishTimeout)
	defer cancel()
	jobs := make([]func() error, 0, len(u.Parts)+1)
	if session := u.session; session != nil && u.recorded {
		jobs = append(jobs, func() error {
			_, err := session.Abort(limit, u.Txn, journal.Unforced)
			return err
		})
	}
	for _, p := range u.Parts {
		jobs = append(jobs, func() error { return c.undo(limit, u, p) })
	}
	if err := fan(jobs, func(f func() error) error { return f() }); err != nil {
		c.log.WarnContext(ctx, "rhizodat: abort left to recovery", "dat_txn", u.Txn, "error", err)
	}
	u.release()
	return c.contradicted(ctx, u, out)
}
