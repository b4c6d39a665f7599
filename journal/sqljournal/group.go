package sqljournal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal/internal/places"
)

// group commits the writes of many commits at once: what comes while one write is
// under way goes in one transaction with all that has come meanwhile. Each write
// stays its own statement with its own answer. PostgreSQL gathers flushes by
// itself; what this saves is a request and a transaction for each.
//
// No write waits for others to come, so that one alone is never delayed. Nor does
// one wait for a request that hangs: after patience it goes by itself.
type group struct {
	pool    Pool
	purpose places.Purpose
	mode    Mode
	kind    func(error) branches.Kind

	mu      sync.Mutex
	busy    bool // a write, or a transaction of several, is under way
	waiting []*write
}

// write is one statement on its way in a group.
type write struct {
	// stmt makes the statement when it is sent: it holds the time.
	stmt   func() Stmt
	values context.Context //nolint:containedctx // of a caller, for the transaction that outlasts it

	with  *transaction // nil while it waits
	done  chan struct{}
	res   Result
	err   error
	apart bool // the group has done nothing for it: it is to go by itself
}

// transaction is what several writes go in. When the last of their callers has
// given up, it is given up.
type transaction struct {
	writes  []*write
	callers int
	giveUp  context.CancelFunc
}

const (
	// patience is how long a write waits for the one before it. A connection can
	// hang for long (a network cut that nobody was told of) where others work.
	patience = 100 * time.Millisecond
	// connectWithin bounds the wait for a connection of the group's own: the callers
	// have theirs, which may work where a new one is not to be had.
	connectWithin = time.Second
	// maxGroup bounds the writes in a transaction, and with it what is lost with
	// its answer.
	maxGroup = 64
)

// run runs one statement: in the group, or over conn. The answer is for this
// statement, and an error means what it means of conn.Run.
func (g *group) run(ctx context.Context, conn Conn, stmt func() Stmt) (Result, error) {
	alone := func() (Result, error) {
		if err := conn.Ready(ctx); err != nil {
			return Result{}, err
		}
		return single(ctx, conn, g.mode, stmt())
	}
	w := g.join(ctx, stmt)
	if w == nil {
		defer g.next() //nolint:contextcheck // its values are those of a caller that waits
		return alone()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for ended := ctx.Done(); ; {
		select {
		case <-w.done:
			if w.apart {
				return alone()
			}
			return w.res, w.err
		case <-timer.C:
			if g.unjoin(w) {
				return alone()
			}
		case <-ended:
			if g.leave(w) {
				return Result{}, ctx.Err()
			}
			ended = nil // the answer is there
		}
	}
}

// join is nil where no write is under way: the caller's goes at once.
func (g *group) join(ctx context.Context, stmt func() Stmt) *write {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.busy {
		g.busy = true
		return nil
	}
	w := &write{stmt: stmt, values: context.WithoutCancel(ctx), done: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	return w
}

// unjoin takes back a write that has not been sent, and reports whether it could.
func (g *group) unjoin(w *write) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.with != nil {
		return false
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(other *write) bool { return other == w })
	return true
}

// leave gives a write up, unless its answer is there. If it has been sent, it may
// still take effect.
func (g *group) leave(w *write) bool {
	if g.unjoin(w) {
		return true
	}
	select {
	case <-w.done:
		return false
	default:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.with.callers--; w.with.callers == 0 {
		w.with.giveUp()
	}
	return true
}

// next sends what has come meanwhile, if anything has.
func (g *group) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.busy = false
		return
	}
	n := min(len(g.waiting), maxGroup)
	ctx, giveUp := context.WithCancel(g.waiting[0].values)
	t := &transaction{writes: slices.Clone(g.waiting[:n]), callers: n, giveUp: giveUp}
	g.waiting = slices.Delete(g.waiting, 0, n)
	for _, w := range t.writes {
		w.with = t
	}
	go func() {
		defer g.next() //nolint:contextcheck // its values are those of a caller that waits
		defer giveUp()
		g.commit(ctx, t)
		for _, w := range t.writes {
			close(w.done)
		}
	}()
}

// commit runs the transaction and gives each write its answer. A transaction that
// could not be sent has done nothing; nor has one that the database answered with an
// error, which may be that of one statement, and the others must not fall with it.
// Those writes go by themselves. Where the answer is lost, it is lost for each.
func (g *group) commit(ctx context.Context, t *transaction) {
	results, sent, err := g.send(ctx, t)
	apart := !sent || err != nil && g.kind(err) != branches.Transient
	for i, w := range t.writes {
		if w.err, w.apart = err, apart; err == nil {
			w.res = results[i]
		}
	}
}

func (g *group) send(ctx context.Context, t *transaction) (results []Result, sent bool, err error) {
	soon, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	conn, err := g.pool.Reserved(soon, g.purpose)
	if err != nil {
		return nil, false, err
	}
	defer conn.Release()
	if err := conn.Ready(soon); err != nil {
		return nil, false, err
	}
	stmts := make([]Stmt, len(t.writes))
	for i, w := range t.writes {
		stmts[i] = w.stmt()
	}
	results, err = conn.Run(ctx, g.mode, stmts...)
	if err == nil && len(results) != len(stmts) {
		err = fmt.Errorf("the database answered %d statements of %d", len(results), len(stmts))
	}
	return results, true, err
}
