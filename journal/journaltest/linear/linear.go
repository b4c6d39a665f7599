// Package linear checks that a journal's conditional writes are linearizable:
// that there is an order of all the operations of many clients, each within the
// time it took, in which every answer is right. An operation whose reply was lost
// may have its place anywhere after it was sent, or none.
package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Run is one check.
type Run struct {
	// Clients are the same journal, opened apart as by so many processes.
	Clients []journal.Journal
	Rounds  int // operations of each client
	Seed    uint64
	// Fault may spoil the next operation of a client, and returns the context for
	// it. It is called for one operation in twenty; nil is never.
	Fault func(ctx context.Context, client int) context.Context
}

// Counts of what was checked.
type Counts struct{ Operations, Won, Lost, Unknown int }

func (c Counts) String() string {
	return fmt.Sprintf("%d operations: %d won, %d lost, %d unknown", c.Operations, c.Won, c.Lost, c.Unknown)
}

// keys of leases, and as many of steps. Few, so that the clients meet.
const keys = 4

// Check runs the clients and fails where no order explains their answers.
func (r Run) Check(tb testing.TB) Counts {
	tb.Helper()
	h := &history{seen: map[string]row{}}
	var wg sync.WaitGroup
	for i, j := range r.Clients {
		c, err := newClient(tb.Context(), i, j, h, rand.New(rand.NewPCG(r.Seed, uint64(i)))) //nolint:gosec // a test's choices
		if err != nil {
			tb.Fatalf("client %d: %v", i, err)
		}
		wg.Go(func() {
			for range r.Rounds {
				ctx := tb.Context()
				if r.Fault != nil && c.rand.IntN(20) == 0 {
					ctx = r.Fault(ctx, i)
				}
				c.act(ctx)
			}
		})
	}
	wg.Wait()
	counts := h.counts()
	if got := porcupine.CheckOperationsTimeout(model(), h.operations(), 2*time.Minute); got != porcupine.Ok {
		tb.Errorf("%s: no order of %s explains the answers", got, counts)
	}
	return counts
}

// history is what the clients saw.
type history struct {
	mu   sync.Mutex
	list []porcupine.Operation
	seen map[string]row // the last row that anybody was shown, by key
}

func (h *history) add(op porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, op)
	if shown := op.Output.(output).row; shown.there { //nolint:forcetypeassert // ours
		h.seen[op.Input.(input).key] = shown //nolint:forcetypeassert // ours
	}
}

func (h *history) last(key string) row {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[key]
}

// operations with a lost reply end with the run: they may take effect late.
func (h *history) operations() []porcupine.Operation {
	end := hlc.System.Now().UnixNano()
	for i := range h.list {
		if h.list[i].Output.(output).answer == journal.AnswerUnknown { //nolint:forcetypeassert // ours
			h.list[i].Return = end
		}
	}
	return h.list
}

func (h *history) counts() (c Counts) {
	c.Operations = len(h.list)
	for _, op := range h.list {
		switch op.Output.(output).answer { //nolint:forcetypeassert // ours
		case journal.AnswerWon:
			c.Won++
		case journal.AnswerLost:
			c.Lost++
		case journal.AnswerUnknown:
			c.Unknown++
		}
	}
	return c
}

// client is one process.
type client struct {
	id     int
	leases journal.Leases
	steps  journal.Steps
	h      *history
	rand   *rand.Rand
}

func newClient(ctx context.Context, id int, j journal.Journal, h *history, r *rand.Rand) (*client, error) {
	keeps, ok := j.(journal.Conditional)
	if !ok {
		return nil, fmt.Errorf("%T is no journal.Conditional", j)
	}
	leases, err := keeps.Leases(ctx)
	if err != nil {
		return nil, err
	}
	steps, err := keeps.Steps(ctx)
	return &client{id: id, leases: leases, steps: steps, h: h, rand: r}, err
}

// act does one operation and writes down what came of it.
func (c *client) act(ctx context.Context) {
	in := c.choose()
	sent := hlc.System.Now().UnixNano()
	out, ok := c.do(ctx, in)
	if ok {
		c.h.add(porcupine.Operation{ClientId: c.id, Input: in, Call: sent, Output: out, Return: hlc.System.Now().UnixNano()})
	}
}

func (c *client) choose() input {
	in := input{
		op: op(c.rand.IntN(int(ops))), token: fmt.Sprintf("%d-%x", c.id, c.rand.Uint64()),
		holder: fmt.Sprintf("h%d", c.id%12), long: c.rand.IntN(3) == 0,
	}
	kind := "lease"
	if in.op >= stepClaim {
		kind = "step"
	}
	in.key = fmt.Sprintf("%s%d", kind, c.rand.IntN(keys))
	last := c.h.last(in.key)
	switch in.op {
	case leaseRenew, leaseRelease, stepRecord, stepRelease:
		in.token, in.fence = last.token, last.fence
	case stepClaim:
		in.replaces = last.token
	case leaseAcquire, leaseGet, stepGet, ops:
	}
	in.value = fmt.Sprintf("%d", c.rand.Uint64())
	return in
}

// do is false where a read failed: it says nothing.
func (c *client) do(ctx context.Context, in input) (out output, ok bool) {
	key := journal.StepKey{Execution: "linear", Label: in.key, Input: "0"}
	var lease journal.Lease
	var step journal.Step
	var err error
	switch in.op {
	case leaseAcquire:
		lease, out.answer, err = c.leases.Acquire(ctx, journal.LeaseRequest{Name: in.key, Holder: in.holder, Token: in.token, TTL: in.ttl()})
		if out.answer == journal.AnswerWon {
			out.row = leaseRow(lease)
		}
	case leaseRenew:
		var answers []journal.Answer
		answers, err = c.leases.Renew(ctx, []journal.LeaseRenewal{{Name: in.key, Token: in.token, Fence: in.fence, TTL: in.ttl()}})
		if err == nil {
			out.answer = answers[0]
		}
	case leaseRelease:
		out.answer, err = c.leases.Release(ctx, journal.Lease{Name: in.key, Token: in.token, Fence: in.fence})
	case leaseGet:
		lease, err = c.leases.Get(ctx, in.key)
		return read(leaseRow(lease), err)
	case stepClaim:
		step, out.answer, err = c.steps.Claim(ctx, journal.StepRequest{
			Key: key, Holder: in.holder, Token: in.token, TTL: in.ttl(), Replaces: in.replaces,
		})
		if out.answer == journal.AnswerWon {
			out.row = stepRow(step)
		}
	case stepRecord:
		out.answer, err = c.steps.Record(ctx, journal.StepRecord{Key: key, Token: in.token, Value: []byte(in.value)})
	case stepRelease:
		out.answer, err = c.steps.Release(ctx, key, in.token)
	case stepGet:
		step, err = c.steps.Get(ctx, key)
		return read(stepRow(step), err)
	case ops:
	}
	if err != nil {
		out.answer = journal.AnswerUnknown
	}
	return out, true
}

func read(r row, err error) (output, bool) {
	if errors.Is(err, journal.ErrNotFound) {
		return output{answer: journal.AnswerWon}, true
	}
	return output{answer: journal.AnswerWon, row: r}, err == nil
}
