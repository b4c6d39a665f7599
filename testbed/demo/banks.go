package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// Recovery takes a record over when it was unchanged for staleAfter and the
// clocks' drift; the demonstration does not wait half a minute for that.
const (
	commitTimeout = 900 * time.Millisecond
	staleAfter    = time.Second
	drift         = 100 * time.Millisecond
)

// banks is the deployment under test with what was seen of it.
type banks struct {
	*rig.Deployment

	plan     plan
	env      []string
	program  string
	recovery rig.Recovery

	reported map[string]string // dat_txn -> verdict, as the program told it
	open     map[string]string // what the kills left unfinished: dat_txn -> state then
	killed   time.Time
	kills    int
	inside   int // kills that hit a commit
	crashes  []error
}

func open(ctx context.Context, plan plan, server *rig.Server, shop *rig.Shop) (*banks, error) {
	b := &banks{
		Deployment: &rig.Deployment{
			Stores: map[string]*rig.Database{},
			Ledger: `SELECT dat_txn::text, '2' FROM transfers`,
		},
		plan: plan, reported: map[string]string{}, open: map[string]string{},
	}
	guards := plan.guardOff != ""
	if guards {
		b.env = []string{"RHIZODAT_GUARD_OFF=" + plan.guardOff}
	}
	var err error
	for _, name := range []string{"bank_a", "bank_b"} {
		if b.Stores[name], err = server.Database(ctx, name); err != nil {
			return nil, err
		}
	}
	if b.Journal, err = server.Database(ctx, "coord"); err != nil {
		return nil, err
	}
	if b.program, err = shop.Build(ctx, "examples/transfer", guards); err != nil {
		return nil, err
	}
	if b.recovery.Program, err = shop.Build(ctx, "cmd/rhizorecover", guards); err != nil {
		return nil, err
	}
	dsn := b.DSN(fmt.Sprintf("commit_timeout=%s stale_after=%s max_clock_drift=%s lock_timeout=2s", commitTimeout, staleAfter, drift))
	b.recovery.DSN, b.recovery.Env = dsn, b.env
	b.env = append(b.env, "RHIZODAT_DSN="+dsn)
	if _, _, err := b.recovery.Run(ctx, "init"); err != nil {
		return nil, err
	}
	child, err := rig.Start(ctx, b.program, []string{"-init"}, b.env...)
	if err != nil {
		return nil, err
	}
	for range child.Lines { // it says nothing
	}
	return b, child.Wait()
}

func (b *banks) close(ctx context.Context) {
	for _, name := range b.Names() {
		b.Stores[name].Close(ctx)
	}
	b.Journal.Close(ctx)
}

// money is the sum of all accounts of both banks.
func (b *banks) money(ctx context.Context) (int, error) {
	total := 0
	for _, name := range b.Names() {
		n, err := b.Stores[name].Int(ctx, `SELECT sum(balance)::bigint FROM accounts`)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// start runs the program.
func (b *banks) start(ctx context.Context) (*rig.Child, error) {
	return rig.Start(ctx, b.program, []string{"-ack", "-workers", strconv.Itoa(b.plan.workers)}, b.env...)
}
