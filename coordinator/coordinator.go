package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Config of a Coordinator. The zero value of each duration is its default.
type Config struct {
	Journal       journal.Journal // nil: units of one writing branch only
	Clock         *hlc.Clock      // nil: the system's clock
	CommitTimeout time.Duration   // S4 to S7 with its read-back (S3 too where it runs beside S4), and Rollback; 20s
	FinishTimeout time.Duration   // S8 and S9, and an abort; 5s
	MinFree       int64           // bytes every touched store must have free; 0 does not ask
	MaxPayload    int64           // bytes of one branch's payload; 0 is no bound
	Markers       bool            // one-phase commits leave a marker too
	// Admit is asked before S4 whether these stores may take part together.
	Admit func(ctx context.Context, stores []string) error
	// SplitDecision writes S6 and S7 as two requests instead of one.
	SplitDecision bool
	Logger        *slog.Logger
	Observer      Observer
}

// Coordinator commits units. It is safe for concurrent use by many units.
type Coordinator struct {
	cfg   Config
	wall  hlc.Wall
	log   *slog.Logger
	later *later
}

// New makes a coordinator. It connects to nothing.
func New(cfg Config) *Coordinator {
	if cfg.Clock == nil {
		cfg.Clock = hlc.NewClock(hlc.System, time.Minute)
	}
	if cfg.CommitTimeout == 0 {
		cfg.CommitTimeout = 20 * time.Second
	}
	if cfg.FinishTimeout == 0 {
		cfg.FinishTimeout = 5 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Coordinator{cfg: cfg, wall: cfg.Clock.Wall(), log: cfg.Logger}
	c.later = newLater(c)
	return c
}

// Close writes the DONEs that are still owed, within FinishTimeout, and stops
// what this process was retrying: recovery goes on with it. A commit that is
// still under way ends as it would have, and owes its DONE to recovery.
func (c *Coordinator) Close() error { return c.later.close() }

// Rollback ends a unit that is not to be committed. It is detached from ctx,
// which may have ended, and bounded by CommitTimeout. The outcome is always
// Aborted: nothing was prepared.
func (c *Coordinator) Rollback(ctx context.Context, u *Unit) (Outcome, error) {
	u.began = c.wall.Now()
	out := Outcome{DatTxn: u.Txn, Verdict: VerdictAborted, Err: &Aborted{
		DatTxn: u.Txn, Kind: branches.Permanent, Err: errRolledBack,
	}}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.CommitTimeout)
	defer cancel()
	err := fan(u.Parts, func(p *Part) error { return p.Branch.Rollback(limit) })
	c.report(ctx, u, out)
	return out, withoutBadConn(err)
}

var errRolledBack = errors.New("rhizodat: roll back: asked for by the application")

// release gives the journal's place back.
func (u *Unit) release() {
	if u.session != nil {
		u.session.Release()
		u.session = nil
	}
}

// step observes f as one step of u.
func (c *Coordinator) step(ctx context.Context, u *Unit, s Step, f func() error) error {
	c.observe(ctx, StepEvent{Txn: u.Txn, Step: s, Moment: Before})
	err := f()
	c.observe(ctx, StepEvent{Txn: u.Txn, Step: s, Moment: After, Err: err})
	return err
}

func (c *Coordinator) observe(ctx context.Context, e StepEvent) {
	if c.cfg.Observer != nil {
		c.cfg.Observer.Step(ctx, e)
	}
}

// report tells log and observer how a unit ended.
func (c *Coordinator) report(ctx context.Context, u *Unit, out Outcome) {
	switch out.Verdict {
	case VerdictPending:
		c.log.WarnContext(ctx, "rhizodat: committed, finishing goes on", "dat_txn", out.DatTxn, "stores", out.Pending, "error", causeOf(out.Err))
	case VerdictInDoubt:
		c.log.ErrorContext(ctx, "rhizodat: outcome unknown here", "dat_txn", out.DatTxn, "error", causeOf(out.Err))
	case VerdictHeuristic:
		c.log.ErrorContext(ctx, "rhizodat: a store resolved its branch against the decision", "dat_txn", out.DatTxn, "error", causeOf(out.Err))
	case VerdictNone, VerdictCommitted, VerdictAborted:
	}
	if c.cfg.Observer == nil {
		return
	}
	e := OutcomeEvent{Outcome: out, Took: c.wall.Now().Sub(u.began), Conflict: u.conflict}
	if !u.released.IsZero() {
		e.LockWindow = u.released.Sub(u.prepared)
	}
	c.cfg.Observer.Outcome(ctx, e)
}

// stamp takes the time that S4 gave the unit: above the read fence. This
// process's later units come after it, unless the fence is so far ahead that
// following it would spoil this clock.
func (c *Coordinator) stamp(ctx context.Context, u *Unit, record *journal.Record) {
	u.txTime = record.TxTime
	if err := c.cfg.Clock.Observe(record.TxTime); err != nil {
		c.log.WarnContext(ctx, "rhizodat: time of the journal not followed", "dat_txn", u.Txn, "error", err)
	}
}

// admit asks whether the unit's stores may take part together.
func (c *Coordinator) admit(ctx context.Context, u *Unit) error {
	if c.cfg.Admit == nil {
		return nil
	}
	names := make([]string, len(u.Parts))
	for i, p := range u.Parts {
		names[i] = p.Name
	}
	return c.cfg.Admit(ctx, names)
}

// checkRoom asks every touched store for its free space, where min_free is set:
// the branch, which knows what was written to, where it can tell. A store that
// cannot, or whose answer fails, passes.
func (c *Coordinator) checkRoom(ctx context.Context, u *Unit) error {
	if c.cfg.MinFree <= 0 {
		return nil
	}
	return fan(u.Parts, func(p *Part) error {
		room, ok := p.Branch.(branches.Capacity)
		if !ok {
			room, ok = p.Store.(branches.Capacity)
		}
		if !ok {
			return nil
		}
		free, known, err := room.Free(ctx)
		if err == nil && known && free < c.cfg.MinFree {
			return &partError{part: p, err: &StoreFull{Store: p.Name, Free: free, Need: c.cfg.MinFree}}
		}
		return nil
	})
}
