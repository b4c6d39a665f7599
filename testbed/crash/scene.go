package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"text/tabwriter"

	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/testbed/crash/events"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// scene is a way to lose, double or revive rows of the third store. Each ends
// with recovery and the question whether every row is there once.
type scene struct {
	name   string
	kind   kindOfLane // its engine is the stage's
	rounds int        // 0 is one
	play   func(ctx context.Context, l *lane, s *sight) error
	// untouched: nothing was torn, so nothing may have been deleted.
	untouched bool
	// guard whose absence the scene shows.
	guard guard.Name
	// proves says it in more words than name, which may go on from the scene
	// before it. Empty: name.
	proves string
	// rare: a round may miss what the scene is about; more follow then.
	rare int
}

// story of the proof.
func (sc scene) story() string {
	if sc.proves != "" {
		return sc.proves
	}
	return sc.name
}

// stage is an engine with the lanes that scenes need. Scenes of one stage run
// one after the other.
type stage struct {
	house  *house
	engine *events.Engine
	lanes  map[kindOfLane]*lane
}

// lane of a kind; scenes of one kind share it.
func (st *stage) lane(ctx context.Context, kind kindOfLane) (*lane, error) {
	kind.third, kind.engine = thirdEvents, st.engine
	if l := st.lanes[kind]; l != nil {
		return l, nil
	}
	l, err := st.house.lane(ctx, kind)
	if err == nil {
		st.lanes[kind] = l
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
	ctx, cancel := context.WithTimeout(ctx, cellBound)
	defer cancel()
	s, c := &sight{}, cell{name: sc.name}
	before, err := l.events.Deletes(ctx)
	if err != nil {
		return s, err
	}
	for _, step := range []func() error{
		func() error { return sc.play(ctx, l, s) },
		func() error { return l.heal(ctx, c, s) },
		func() error { return l.inspect(ctx, c, s) },
	} {
		if err := step(); err != nil {
			return s, fmt.Errorf("%s: %w", sc.name, err)
		}
	}
	after, err := l.events.Deletes(ctx)
	if sc.untouched && after > before {
		s.violations = append(s.violations, fmt.Sprintf("%d DELETEs of rows that were not torn", after-before))
	}
	s.violations = l.fresh(s.violations)
	for i, v := range s.violations {
		s.violations[i] = sc.name + ": " + v
	}
	return s, err
}

// eventWork is a unit's work where the third store holds many rows.
func (l *lane) eventWork() []string {
	rows := strconv.Itoa(l.events.Rows())
	if len(l.Stores) == 0 {
		return []string{"append e 1 " + rows}
	}
	return []string{insert("a", "3"), insert("b", "3"), "append e 3 " + rows}
}

// decided leaves a unit of which everything is decided and nothing rolled
// forward: its coordinator was killed in front of S9.
func (l *lane) decided(ctx context.Context, s *sight) error {
	c := cell{plan: plan.Plan{Work: l.eventWork(), Point: "S9.before"}, deed: kill}
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
		for row.hit < row.want && row.rounds < row.want+sc.rare {
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
func (t *sceneTable) figures(h *house) {
	missed, rounds := 0, 0
	for _, r := range t.rows {
		rounds += r.hit
		if r.hit < r.want {
			missed++
		}
	}
	h.board.AtLeast("clickhouse_scenes", len(t.rows), 25)
	h.board.AtLeast("clickhouse_scene_rounds", rounds, len(t.rows))
	h.board.Exactly("clickhouse_scenes_not_met", missed, 0)
}

// sceneTable gathers what stages have played.
type sceneTable struct {
	mu         sync.Mutex
	rows       []*sceneRow
	violations []string
}

// on plays scenes on an engine.
func (t *sceneTable) on(ctx context.Context, h *house, engine *events.Engine, all []scene) func() error {
	return func() error {
		st := &stage{house: h, engine: engine, lanes: map[kindOfLane]*lane{}}
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
