package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// scene is a way to lose, double or revive rows of the third store. Each ends
// with recovery and the question whether every row is there once.
type scene struct {
	name   string
	kind   kindOfLane // its server is the stage's
	rounds int        // 0 is one
	play   func(ctx context.Context, l *lane, s *sight) error
	// untouched: no rows were torn, so none may have been deleted.
	untouched bool
	// ends: play has asked by itself what became of it.
	ends bool
	// guard whose absence the scene shows.
	guard guard.Name
	// proves says it in more words than name, which may go on from the scene
	// before it. Empty: name.
	proves string
	// rare: a round may miss what the scene is about oftener than others do.
	rare int
}

// story of the proof.
func (sc scene) story() string {
	if sc.proves != "" {
		return sc.proves
	}
	return sc.name
}

// A scene has several acts, and rows that take a busy server many seconds to
// delete and insert again, of which a pass of recovery may see a part only.
const (
	sceneRecoverBound = 2 * time.Minute
	sceneBound        = 6 * time.Minute
)

// missedRounds: on a busy machine every round may miss what its scene is about; so
// many more follow then.
const missedRounds = 3

// stage is a server with the lanes that scenes need. Scenes of one stage run
// one after the other.
type stage struct {
	house *house
	base  kindOfLane // with its server
	lanes map[kindOfLane]*lane
}

// lane of a kind; scenes of one kind share it.
func (st *stage) lane(ctx context.Context, kind kindOfLane) (*lane, error) {
	kind = kind.on(st.base)
	if l := st.lanes[kind]; l != nil {
		return l, nil
	}
	l, err := st.house.lane(ctx, kind)
	if err == nil {
		st.lanes[kind] = l
		l.bound = sceneRecoverBound
	}
	return l, err
}

// round plays a scene once.
func (st *stage) round(ctx context.Context, sc scene) (*sight, error) {
	l, err := st.lane(ctx, sc.kind)
	if err != nil {
		return nil, err
	}
	return l.scene(ctx, sc)
}

// scene plays a scene once, then lets recovery finish and asks what became of it.
func (l *lane) scene(ctx context.Context, sc scene) (*sight, error) {
	ctx, cancel := context.WithTimeout(ctx, sceneBound)
	defer cancel()
	s, c := &sight{}, cell{name: sc.name}
	steps := []func() error{
		func() error {
			err := sc.play(ctx, l, s)
			if errors.Is(err, errMissed) {
				s.hit, err = false, nil
			}
			return err
		},
		func() error { return l.heal(ctx, c, s) },
		func() error { return l.inspect(ctx, c, s) },
	}
	switch {
	case sc.ends:
		steps = steps[:1]
	case sc.untouched:
		deletes, err := l.events.Deletes(ctx)
		if err != nil {
			return s, err
		}
		steps = append(steps, func() error { return l.untouched(ctx, deletes, s) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return s, fmt.Errorf("%s: %w", sc.name, err)
		}
	}
	s.violations = l.fresh(s.violations)
	for i, v := range s.violations {
		s.violations[i] = sc.name + ": " + v
	}
	return s, nil
}

// untouched expects that the ledger has seen no further DELETEs.
func (l *lane) untouched(ctx context.Context, before int, s *sight) error {
	after, err := l.events.Deletes(ctx)
	if s.hit && after > before {
		s.violations = append(s.violations, fmt.Sprintf("%d DELETEs of rows that were not torn", after-before))
	}
	return err
}

// work is a unit's, in every store of the lane.
func (l *lane) work() []string {
	stores := strconv.Itoa(len(l.Names()))
	var work []string
	for _, name := range slices.Sorted(maps.Keys(l.Stores)) {
		work = append(work, insert(name, stores))
	}
	switch {
	case l.events != nil:
		work = append(work, "append "+l.third+" "+stores+" "+strconv.Itoa(l.events.Rows()))
	case l.graph != nil:
		work = append(work, createNode(stores))
	case l.lake != nil:
		work = append(work, "append "+l.third+" "+stores+" "+strconv.Itoa(l.lake.Rows())+" txn")
	}
	return work
}

// decided leaves a unit of which everything is decided and nothing was done about
// it in the third store.
func (l *lane) decided(ctx context.Context, s *sight) error {
	if l.graph != nil {
		return l.left(ctx, s, "S8.before")
	}
	return l.left(ctx, s, "S9.before")
}

// left leaves a unit whose coordinator was killed at a point.
func (l *lane) left(ctx context.Context, s *sight, point string) error {
	c := cell{plan: plan.Plan{Work: l.work(), Point: point}, deed: kill}
	if err := l.act(ctx, c, s); err != nil {
		return err
	}
	s.hit = false // that is for the scene to say
	return rig.Pause(ctx, staleAfter+clockDrift)
}

// sceneRow is a line of the table of scenes.
type sceneRow struct {
	name        string
	want        int // rounds in which it should come about
	rounds, hit int
	ends        map[string]int
	violations  []string
}

// scenes plays scenes one after the other.
func (st *stage) scenes(ctx context.Context, all []scene) ([]*sceneRow, error) {
	var rows []*sceneRow
	for _, sc := range all {
		row := &sceneRow{name: sc.name, want: max(sc.rounds, 1), ends: map[string]int{}}
		rows = append(rows, row)
		for row.hit < row.want && row.rounds < row.want+max(sc.rare, missedRounds) {
			s, err := st.round(ctx, sc)
			if err != nil {
				return rows, err
			}
			row.rounds++
			row.violations = append(row.violations, s.violations...)
			if s.hit {
				row.hit++
				row.ends[s.verdict()+", took effect in "+s.fate.String()]++
			}
		}
	}
	return rows, nil
}

// print prints the table.
func (t *sceneTable) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "SCENE\tROUNDS\tCAME ABOUT\tREPORTED") // to memory
	for _, r := range t.rows {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", r.name, r.rounds, r.hit, endsText(r.ends))
	}
	_ = w.Flush() // a broken pipe ends the program by itself
}

// figures counts the scenes, and those that came about too seldom.
func (t *sceneTable) figures(h *house, word string, least int) {
	missed, rounds := 0, 0
	for _, r := range t.rows {
		rounds += r.hit
		if r.hit < r.want {
			missed++
		}
	}
	h.board.AtLeast(word+"_scenes", len(t.rows), least)
	h.board.AtLeast(word+"_scene_rounds", rounds, len(t.rows))
	h.board.Exactly(word+"_scenes_not_met", missed, 0)
}

// sceneTable gathers what stages have played.
type sceneTable struct {
	mu         sync.Mutex
	rows       []*sceneRow
	violations []string
}

// on plays scenes on the server of base.
func (t *sceneTable) on(ctx context.Context, h *house, base kindOfLane, all []scene) func() error {
	return func() error {
		st := &stage{house: h, base: base, lanes: map[kindOfLane]*lane{}}
		rows, err := st.scenes(ctx, all)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.rows = append(t.rows, rows...)
		for _, r := range rows {
			t.violations = append(t.violations, r.violations...)
		}
		return err
	}
}
