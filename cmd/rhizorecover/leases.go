package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/journal"
)

var errKeepsNone = errors.New("this journal keeps neither leases nor steps")

type leasesCmd struct{ jsonFlag }

// leaseLine is a lease as it is printed. The names are format.
type leaseLine struct {
	Name    string        `json:"name"`
	State   string        `json:"state"` // held, lapsed or released
	Fence   journal.Fence `json:"fence"`
	Holder  string        `json:"holder,omitempty"`
	UntilMS int64         `json:"until_ms"` // by the journal's clock
	LeftMS  int64         `json:"left_ms"`  // negative once it has lapsed
}

// Run lists the leases, and changes nothing.
func (c *leasesCmd) Run(s *session) error {
	return s.open(nil, func(ctx context.Context, d *deployment) error {
		keeps, ok := d.journal.(journal.Conditional)
		if !ok {
			return errKeepsNone
		}
		leases, err := keeps.Leases(ctx)
		if err != nil {
			return err
		}
		theirs, err := clockOf(ctx, d.journal)
		if err != nil {
			return err
		}
		list, err := leases.List(ctx)
		if err != nil {
			return err
		}
		lines := make([]leaseLine, 0, len(list))
		for _, l := range list {
			lines = append(lines, leaseLine{
				Name: l.Name, State: leaseState(l), Fence: l.Fence, Holder: l.Holder,
				UntilMS: l.Until.UnixMilli(), LeftMS: l.Until.Sub(theirs).Milliseconds(),
			})
		}
		if c.JSON {
			return printJSON(s.out, lines)
		}
		if len(lines) == 0 {
			_, err := fmt.Fprintln(s.out, "no leases")
			return err
		}
		t := newTable(s.out, "NAME", "STATE", "FENCE", "HOLDER", "LEFT")
		for _, l := range lines {
			left := "-"
			if l.State == "held" {
				left = ms(l.LeftMS)
			}
			t.row(l.Name, l.State, l.Fence.String(), orDash(l.Holder), left)
		}
		return t.flush()
	})
}

func leaseState(l journal.Lease) string {
	switch {
	case l.Holder == "":
		return "released"
	case l.Lapsed:
		return "lapsed"
	}
	return "held"
}

// clockOf is the journal's own time: leases are judged by it.
func clockOf(ctx context.Context, j journal.Journal) (time.Time, error) {
	k, ok := j.(journal.Timekeeper)
	if !ok {
		return now(), nil
	}
	return k.Clock(ctx)
}
