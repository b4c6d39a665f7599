package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/chserver"
	"github.com/rhizodat/rhizodat-go/testbed/crash/graph"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// Recovery takes a record over when it was unchanged for staleAfter and the
// clocks' drift; the demonstration does not wait half a minute for that.
const (
	commitTimeout = 900 * time.Millisecond
	staleAfter    = time.Second
	drift         = 100 * time.Millisecond
)

// trial is a piece's deployment with what was seen of it.
type trial struct {
	*rig.Deployment

	piece      piece
	companions map[string]companion // that this machine has
	plan       plan
	env        []string
	program    string
	recovery   rig.Recovery
	leftOut    []string // engines that this machine lacks

	reported map[string]string // dat_txn -> verdict, as the program told it
	open     map[string]string // what the kills left unfinished: dat_txn -> state then
	killed   time.Time
	kills    int
	inside   int // kills that hit a commit
	crashes  []error

	// Of the companions, by name: the decided units that the last kill, or any,
	// has left without their rows.
	owed map[string][]string
	// waiting are those that were so still when recovery began, long after the
	// last request of the killed program had ended: nobody else can finish them.
	waiting map[string]map[string]bool
}

// errAlone says that a piece would have one store: nothing to be shown.
var errAlone = errors.New("no second store")

// companion is one with its kind.
type companion struct {
	rig.Companion

	kind kind
}

func open(ctx context.Context, p piece, plan plan, s *stack) (*trial, error) {
	t := &trial{
		Deployment: &rig.Deployment{
			Stores: map[string]*rig.Database{},
			Others: map[string]rig.Other{},
		},
		piece: p, companions: map[string]companion{}, plan: plan, reported: map[string]string{}, open: map[string]string{},
		owed: map[string][]string{}, waiting: map[string]map[string]bool{},
	}
	if err := t.openStores(ctx, s); err != nil {
		return nil, err
	}
	if err := t.build(ctx, s.shop); err != nil {
		return nil, err
	}
	if _, _, err := t.recovery.Run(ctx, "init"); err != nil {
		return nil, err
	}
	child, err := rig.Start(ctx, t.program, []string{"-init"}, t.env...)
	if err != nil {
		return nil, err
	}
	for range child.Lines { // it says nothing
	}
	return t, child.Wait()
}

func (t *trial) openStores(ctx context.Context, s *stack) error {
	var err error
	for _, name := range t.piece.stores {
		if t.Stores[name], err = s.pg.Database(ctx, name); err != nil {
			return err
		}
	}
	if t.piece.journal != nil {
		t.OtherJournal, err = t.piece.journal(ctx, s)
	} else {
		t.Journal, err = s.pg.Database(ctx, "coord")
	}
	if err != nil {
		return err
	}
	for _, k := range t.piece.companions {
		opened, err := k.open(ctx, s)
		switch {
		case errors.Is(err, chserver.ErrNoServer), errors.Is(err, graph.ErrNoServer):
			t.leftOut = append(t.leftOut, k.engine)
		case err != nil:
			return fmt.Errorf("open %s: %w", k.engine, err)
		default:
			t.companions[k.name] = companion{opened, k}
			t.waiting[k.name] = map[string]bool{}
		}
	}
	stores := len(t.Stores) + len(t.companions)
	if stores < 2 {
		return errAlone
	}
	for name, c := range t.companions {
		t.Others[name] = rig.Beside(c.Companion, stores)
	}
	t.Ledger = strings.ReplaceAll(t.piece.ledger, "{stores}", strconv.Itoa(stores))
	return nil
}

func (t *trial) build(ctx context.Context, shop *rig.Shop) (err error) {
	guards := t.plan.guardOff != ""
	if guards {
		t.env = []string{"RHIZODAT_GUARD_OFF=" + t.plan.guardOff}
	}
	if t.program, err = shop.Build(ctx, t.piece.program, guards); err != nil {
		return err
	}
	if t.recovery.Program, err = shop.Build(ctx, "cmd/rhizorecover", guards); err != nil {
		return err
	}
	dsn := t.DSN(fmt.Sprintf("commit_timeout=%s stale_after=%s max_clock_drift=%s lock_timeout=2s", commitTimeout, staleAfter, drift))
	t.recovery.DSN, t.recovery.Env = dsn, t.env
	t.env = append(t.env, "RHIZODAT_DSN="+dsn)
	return nil
}

func (t *trial) close(ctx context.Context) {
	for _, store := range t.Stores {
		store.Close(ctx)
	}
	if t.Journal != nil {
		t.Journal.Close(ctx)
	}
}

// start runs the program.
func (t *trial) start(ctx context.Context) (*rig.Child, error) {
	return rig.Start(ctx, t.program, []string{"-ack", "-workers", strconv.Itoa(t.plan.workers)}, t.env...)
}

// total is the sum of the number that no unit changes.
func (t *trial) total(ctx context.Context) (int, error) {
	total := 0
	for _, name := range t.piece.stores {
		n, err := t.Stores[name].Int(ctx, t.piece.total)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// book is what the units have left in the PostgreSQL databases.
func (t *trial) book(ctx context.Context) (rig.Book, error) {
	all := rig.Book{}
	for _, name := range t.piece.stores {
		one, err := t.Stores[name].Book(ctx, strings.ReplaceAll(t.piece.book, "{store}", name))
		if err != nil {
			return nil, err
		}
		all.Add(one)
	}
	return all, nil
}

// names of the companions, sorted.
func (t *trial) names() []string { return slices.Sorted(maps.Keys(t.companions)) }
