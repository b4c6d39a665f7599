package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/rhizodat/rhizodat-go/coordinator"
)

// survey is what is done about one kind of third store: the matrix with it
// beside a and b, the matrix with it alone, and scenes that are its own.
type survey struct {
	house *house
	word  string // of its figures
	name  string // for people

	three, alone *table
	scenes       *sceneTable
}

func newSurvey(h *house, word, name string) *survey {
	return &survey{h, word, name, newTable(), newTable(), &sceneTable{}}
}

// lane runs cells on one lane until the queue is empty.
func (v *survey) lane(ctx context.Context, kind kindOfLane, queue <-chan job) func() error {
	t := v.three
	if kind.alone {
		t = v.alone
	}
	return func() error { return v.house.drain(ctx, kind, queue, t) }
}

// play plays scenes on the server of base.
func (v *survey) play(ctx context.Context, base kindOfLane, all []scene) func() error {
	return v.scenes.on(ctx, v.house, base, all)
}

// end prints the tables and makes the figures, of which these are the least.
func (v *survey) end(cells, scenes int) {
	fmt.Printf("%s beside two PostgreSQL stores:\n", v.name)
	v.three.print()
	fmt.Printf("%s alone:\n", v.name)
	v.alone.print()
	fmt.Printf("Scenes of %s:\n", v.name)
	v.scenes.print()
	found, missed := v.three.count()
	foundAlone, missedAlone := v.alone.count()
	h := v.house
	h.board.AtLeast(v.word+"_cells", found+foundAlone, cells)
	h.board.Exactly(v.word+"_cells_not_hit", missed+missedAlone, 0)
	h.board.AtLeast(v.word+"_finished_by_recovery", v.three.finished, 1)
	h.board.AtLeast(v.word+"_rolled_back_by_recovery", v.three.rolledBack, 1)
	v.scenes.figures(h, v.word, scenes)
	h.violations(v.word, slices.Concat(v.three.violations, v.alone.violations, v.scenes.violations))
}

// surveyJobs are the cells of a survey.
type surveyJobs struct {
	any      []job // on any lane of three stores
	alone    []job // where the third store is the only one
	crashing []job // where the journal may crash
}

// jobsOf are the cells of a shape, and of the same store alone. In the short form
// the modes but the first are those of the steps from, at which the store has work
// of its own, and later.
func jobsOf(s, alone shape, from coordinator.Step, short bool) surveyJobs {
	living := []mode{modeKill, modeFreeze, modeBackend}
	alive := []mode{modeKill, modeFreeze}
	later := []mode{modeFreeze, modeJournal}
	var absent []job
	if s != shapeLake { // which has no server of its own
		living, alive, later = append(living, modeStore), append(alive, modeStore), append(later, modeStore)
		absent = absences(s, from)
	}
	if !short {
		return surveyJobs{
			any:      slices.Concat(jobs(s, false, true, living), jobs(s, true, false, living[:2]), absent),
			alone:    jobs(alone, false, true, alive),
			crashing: jobs(s, false, true, []mode{modeJournal}),
		}
	}
	j := surveyJobs{
		any:   slices.Concat(jobs(s, false, false, living[:1]), absent[:min(1, len(absent))]),
		alone: jobs(alone, false, false, alive[:1]),
	}
	for _, late := range jobs(s, false, false, later) {
		switch {
		case late.point.step < from:
		case late.mode == modeJournal:
			j.crashing = append(j.crashing, late)
		default:
			j.any = append(j.any, late)
		}
	}
	return j
}

// absences are the cells in which the store stays away from the decision on: the
// unit is pending.
func absences(s shape, from coordinator.Step) []job {
	var all []job
	for _, j := range jobs(s, false, true, []mode{modeAbsent}) {
		if j.point.decided && j.point.step >= from && j.point.step < coordinator.S10 {
			j.cell.options = optionsOfOutage
			j.cell.after = func(ctx context.Context, l *lane) error { return l.server.Start(ctx) }
			all = append(all, j)
		}
	}
	return all
}

// inTurn runs functions one after the other, up to one that fails.
func inTurn(all ...func() error) func() error {
	return func() error {
		for _, f := range all {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
}
