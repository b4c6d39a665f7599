package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/journal"
)

type stepsCmd struct {
	Execution string `placeholder:"ID" help:"Steps of this execution only."`
	Pending   bool   `help:"Steps without a value only."`
	Limit     int    `default:"1000" help:"At most so many, by key; 0 is no limit."`
	jsonFlag
}

// stepLine is a step as it is printed. The names are format. Values are the
// application's own and are not shown.
type stepLine struct {
	Execution string `json:"execution"`
	Label     string `json:"label"`
	Input     string `json:"input"`
	State     string `json:"state"` // recorded, claimed or lapsed
	Holder    string `json:"holder"`
	CreatedMS int64  `json:"created_ms"` // by the journal's clock
	UpdatedMS int64  `json:"updated_ms"`
	AgeMS     int64  `json:"age_ms"` // since UpdatedMS
}

var errEnough = errors.New("enough")

// Run lists steps, and changes nothing.
func (c *stepsCmd) Run(s *session) error {
	return s.open(nil, func(ctx context.Context, d *deployment) error {
		lister, err := stepLister(ctx, d.journal)
		if err != nil {
			return err
		}
		theirs, err := clockOf(ctx, d.journal)
		if err != nil {
			return err
		}
		lines := []stepLine{}
		err = lister.List(ctx, func(found journal.Step) error {
			if c.Execution != "" && found.Key.Execution != c.Execution || c.Pending && found.Recorded {
				return nil
			}
			if c.Limit > 0 && len(lines) == c.Limit {
				return errEnough
			}
			lines = append(lines, stepLine{
				Execution: found.Key.Execution, Label: found.Key.Label, Input: found.Key.Input,
				State: stepState(found), Holder: found.Holder,
				CreatedMS: found.Created.UnixMilli(), UpdatedMS: found.Updated.UnixMilli(),
				AgeMS: theirs.Sub(found.Updated).Milliseconds(),
			})
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		if c.JSON {
			return printJSON(s.out, lines)
		}
		if len(lines) == 0 {
			_, err := fmt.Fprintln(s.out, "no steps")
			return err
		}
		t := newTable(s.out, "EXECUTION", "LABEL", "INPUT", "STATE", "HOLDER", "AGE")
		for _, l := range lines {
			t.row(l.Execution, l.Label, l.Input[:min(12, len(l.Input))], l.State, l.Holder, ms(l.AgeMS))
		}
		return t.flush()
	})
}

func stepState(s journal.Step) string {
	switch {
	case s.Recorded:
		return "recorded"
	case s.Lapsed:
		return "lapsed"
	}
	return "claimed"
}

func stepLister(ctx context.Context, j journal.Journal) (journal.StepLister, error) {
	keeps, ok := j.(journal.Conditional)
	if !ok {
		return nil, errKeepsNone
	}
	steps, err := keeps.Steps(ctx)
	if err != nil {
		return nil, err
	}
	lister, ok := steps.(journal.StepLister)
	if !ok {
		return nil, errKeepsNone
	}
	return lister, nil
}

// stepBatch bounds one statement of a removal.
const stepBatch = 1000

// removeSteps removes what is older than age by the journal's clock.
func removeSteps(ctx context.Context, d *deployment, age time.Duration) (removed int, err error) {
	lister, err := stepLister(ctx, d.journal)
	if err != nil {
		return 0, err
	}
	theirs, err := clockOf(ctx, d.journal)
	if err != nil {
		return 0, err
	}
	for {
		n, err := lister.Remove(ctx, theirs.Add(-age), stepBatch)
		removed += n
		if err != nil || n < stepBatch {
			return removed, err
		}
	}
}
