package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/cutproxy"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/testbed/crash/events"
	"github.com/rhizodat/rhizodat-go/testbed/crash/graph"
	"github.com/rhizodat/rhizodat-go/testbed/crash/lake"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/crash/pooled"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// proof is a scenario in which the absence of one guard does harm. With the
// guard in its place the same scenario must be harmless, or nothing is proved.
type proof struct {
	word  string // before the guard's name in the figure
	guard guard.Name
	story string
	plan  plan.Plan
	deed  deed
	// loses: the reply to COMMIT is lost.
	loses bool
	// crashes: the journal's server does.
	crashes bool
	// meddled: a person has ended a branch behind everybody's back. Then the
	// unit cannot be whole, and the only question is whether it is said.
	meddled bool
	// scene to play in place of a plan, on the server of base.
	scene scene
	base  kindOfLane
}

// proofBound is how long recovery is given: what a missing guard has broken it
// cannot mend.
const proofBound = 2 * time.Second

const proofsAtOnce = 3

// proofTries: some scenarios are races, which the harm may lose on a busy machine.
const proofTries = 5

func allProofs() []proof {
	two := shapeTwo.work()
	return []proof{
		{
			guard: guard.Tag, story: "the transaction in b fails unseen, and PREPARE TRANSACTION answers ROLLBACK",
			plan: plan.Plan{Work: []string{insert("a", "2"), insertUnseen("b", "2")}, Spoil: "b"},
		},
		{
			guard: guard.Order, story: "the coordinator dies before S7, having sent COMMIT PREPARED",
			plan: plan.Plan{Work: two, Point: "S7.before"}, deed: kill,
		},
		{
			guard: guard.Exists, story: "somebody rolls back b's prepared branch by hand, between S7 and S8",
			plan: plan.Plan{Work: two, Point: "S8.before:b"}, deed: rollBackByHand, meddled: true,
		},
		{
			guard: guard.Conditional, story: "the coordinator is stopped before S7, and goes on after recovery has aborted",
			plan: plan.Plan{Work: two, Point: "S7.before"}, deed: freeze,
		},
		{
			guard: guard.Marker, story: "the reply to a one-phase COMMIT is lost",
			plan: plan.Plan{Work: shapeOne.work()}, loses: true,
		},
		{
			guard: guard.Forced, story: "the coordinator is stopped before S7, recovery aborts, the journal's server crashes, the coordinator goes on",
			plan: plan.Plan{Work: two, Point: "S7.before", Split: true}, deed: abortThenCrash, crashes: true,
		},
	}
}

// eventProofs are the scenes of ClickHouse that a guard is for.
func eventProofs(ctx context.Context, h *house) ([]proof, error) {
	engines, err := h.launchEngines(ctx, 1)
	if errors.Is(err, events.ErrNoServer) {
		h.leaveOut("ClickHouse: " + err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := append(finisherScenes(kindOfLane{}, 1), clientScenes(false, true)...)
	for i := range all {
		if all[i].guard == guard.Token { // what a server remembers it must remember at all
			all[i].kind = windowed
		}
	}
	return sceneProofs("", kindOfEvents(engines[0]), all), nil
}

// graphProofs are those of drevo.
func graphProofs(ctx context.Context, h *house) ([]proof, error) {
	all := sceneProofs("drevo_", kindOfLane{}, branchScenes(true))
	servers, err := h.launchGraphs(ctx, len(all)) // a scene may restart its own
	if errors.Is(err, graph.ErrNoServer) {
		h.leaveOut("drevo: " + err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].base = kindOfGraph(servers[i])
	}
	return all, nil
}

// lakeProofs are those of Iceberg.
func lakeProofs(context.Context, *house) ([]proof, error) {
	base := kindOfLake(lake.Layout{})
	return append(sceneProofs("", base, lakeScenes(1)), sceneProofs("rest_", base, restScenes(1))...), nil
}

// leaseProofs are those of a lease.
func leaseProofs(context.Context, *house) ([]proof, error) {
	return sceneProofs("", kindOfLane{}, leaseScenes(shapeTwo, true)), nil
}

// sceneProofs are the scenes that a guard is for.
func sceneProofs(word string, base kindOfLane, all []scene) []proof {
	var proofs []proof
	for _, sc := range all {
		if sc.guard != "" {
			proofs = append(proofs, proof{word: word, guard: sc.guard, story: sc.story(), scene: sc, base: base})
		}
	}
	return proofs
}

// rollBackByHand ends b's branch, as a well-meaning person would.
func rollBackByHand(ctx context.Context, l *lane, _ *rig.Child, s *sight) error {
	txn, err := branches.ParseTxnID(s.txn)
	if err != nil {
		return err
	}
	_, err = l.Stores["b"].Exec(ctx, "ROLLBACK PREPARED '"+branches.NewGID(txn, "b").String()+"'")
	return err
}

// abortThenCrash lets recovery abort the unit of a stopped coordinator, and
// crashes the journal before anything else could flush what recovery wrote.
func abortThenCrash(ctx context.Context, l *lane, child *rig.Child, s *sight) error {
	if err := child.Freeze(); err != nil {
		return err
	}
	// What was unforced so far is PREPARED, which must survive: a forced write
	// behind it takes it along.
	if _, err := l.Journal.Exec(ctx, `CREATE TABLE IF NOT EXISTS flushed (); DROP TABLE flushed`); err != nil {
		return err
	}
	if err := rig.Pause(ctx, 2*staleAfter); err != nil {
		return err
	}
	if _, _, err := l.recovery.Run(ctx, "once"); err != nil {
		return err
	}
	if err := crashJournal(ctx, l, child, s); err != nil {
		return err
	}
	return child.Thaw()
}

// proofs runs every scenario with its guard and without.
func proofs(ctx context.Context, h *house) error {
	all := allProofs()
	for _, more := range []func(context.Context, *house) ([]proof, error){leaseProofs, eventProofs, graphProofs, lakeProofs} {
		found, err := more(ctx, h)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	with, without := make([]*sight, len(all)), make([]*sight, len(all))
	errs := make([]error, len(all))
	places := make(chan struct{}, proofsAtOnce)
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if with[i], errs[i] = p.control(ctx, h); errs[i] == nil {
				without[i], errs[i] = p.harm(ctx, h)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	harmless := 0
	for i, p := range all {
		fmt.Printf("guard %s: %s\n", p.guard, p.story)
		show("with it", with[i])
		show("without it", without[i])
		if len(with[i].violations) == 0 && with[i].reached(p) {
			harmless++
		}
		h.board.AtLeast("proof_"+p.word+string(p.guard), len(without[i].violations), 1)
	}
	h.board.Exactly("proof_controls_harmless", harmless, len(all))
	return nil
}

func show(word string, s *sight) {
	fmt.Printf("  %s: reported %s, took effect in %s, record %s\n", word, s.verdict(), s.fate, s.state)
	for _, v := range s.violations {
		fmt.Println("    violation:", v)
	}
}

// reached reports whether the scenario came about.
func (s *sight) reached(p proof) bool { return s.hit || p.scene.play == nil && p.plan.Point == "" }

// control runs the scenario with its guard until it has come about. Harm in any try
// is harm.
func (p proof) control(ctx context.Context, h *house) (*sight, error) {
	return p.until(ctx, h, "", func(s *sight) bool { return s.reached(p) || len(s.violations) > 0 })
}

// harm runs the scenario without its guard until it has done harm.
func (p proof) harm(ctx context.Context, h *house) (*sight, error) {
	return p.until(ctx, h, string(p.guard), func(s *sight) bool { return len(s.violations) > 0 })
}

func (p proof) until(ctx context.Context, h *house, guardOff string, enough func(*sight) bool) (*sight, error) {
	for try := 1; ; try++ {
		s, err := p.run(ctx, h, guardOff)
		if err != nil || enough(s) || try == proofTries {
			return s, err
		}
	}
}

// run runs the scenario on a lane of its own, which may be broken afterwards.
func (p proof) run(ctx context.Context, h *house, guardOff string) (*sight, error) {
	if p.scene.play != nil {
		return p.onStage(ctx, h, guardOff)
	}
	l, err := h.lane(ctx, kindOfLane{crashing: p.crashes, guardOff: guardOff})
	if err != nil {
		return nil, err
	}
	l.bound = proofBound
	c := cell{name: string(p.guard), plan: p.plan, deed: p.deed}
	if p.crashes {
		c.ways = map[string]string{rig.JournalName: pooled.Scheme + ":" + l.Journal.DSN}
	}
	if p.loses {
		db := l.Stores["a"]
		proxy, err := cutproxy.Listen(ctx, db.Addr())
		if err != nil {
			return nil, err
		}
		defer func() { _ = proxy.Close() }() // its listener is all that could fail
		mannerHeld.arm(proxy, commits)
		c.ways = map[string]string{"a": proxy.DSN(db.DSN)}
	}
	s, err := l.run(ctx, c)
	if err != nil || !p.meddled {
		return s, err
	}
	if s.violations, err = l.Untrue(ctx, l.reported); err != nil {
		return s, err
	}
	if guardOff == "" && s.verdict() != "heuristic" {
		s.violations = append(s.violations, "a branch that was ended by hand was not reported")
	}
	return s, nil
}

// onStage plays the proof's scene on a lane of its own.
func (p proof) onStage(ctx context.Context, h *house, guardOff string) (*sight, error) {
	kind := p.scene.kind.on(p.base)
	kind.guardOff = guardOff
	l, err := h.lane(ctx, kind)
	if err != nil {
		return nil, err
	}
	if guardOff != "" {
		l.bound = proofBound
	}
	return l.scene(ctx, p.scene)
}
