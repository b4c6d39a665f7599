package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

type onceCmd struct {
	Wait time.Duration `placeholder:"DURATION" help:"Go on with passes, every second, until nothing is left or this long has passed. A record whose coordinator may be alive is taken after stale_after only by a process that watches it for so long."`
	jsonFlag
}

// Run makes one pass, or passes until nothing is left. The exit code tells what
// the last one left.
func (c *onceCmd) Run(s *session) error {
	return s.open(nil, func(ctx context.Context, d *deployment) error {
		report, err := d.worker.Once(ctx)
		for end := now().Add(c.Wait); err == nil && report.ExitCode() == exitLeft && now().Before(end); {
			if err = hlc.System.Sleep(ctx, min(time.Second, c.Wait)); err == nil {
				report, err = d.worker.Once(ctx)
			}
		}
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(s.out, report)
		} else {
			err = printReport(s, report)
		}
		if err == nil && report.ExitCode() != exitOK {
			err = exit(report.ExitCode())
		}
		return err
	})
}

// shownItems bounds what a person gets to read; --json has all.
const shownItems = 40

func printReport(s *session, r recovery.Report) error {
	say(s.out, "rolled back %d, rolled forward %d; left: %s; took %s\n",
		r.RolledBack, r.RolledForward, counts(r.Left), ms(r.TookMS))
	stores := newTable(s.out, "STORE", "STANDING", "PREPARED", "FOREIGN", "OLDEST", "PROBLEM")
	for _, st := range r.Stores {
		stores.row(st.Store, string(st.Standing), fmt.Sprint(st.Listed), fmt.Sprint(st.Foreign), ms(st.OldestMS), problem(st))
	}
	if err := stores.flush(); err != nil {
		return err
	}
	foreign := func(i recovery.Item) bool { return i.Kind == recovery.KindForeign }
	items := slices.DeleteFunc(slices.Clone(r.Items), foreign)
	if len(items) == 0 {
		return nil
	}
	list := newTable(s.out, "KIND", "DAT_TXN", "STATE", "STORE", "AGE", "TEXT")
	for _, i := range items[:min(len(items), shownItems)] {
		list.row(string(i.Kind), i.Txn.String(), orDash(string(i.State)), orDash(i.Store), ms(i.AgeMS), i.Text)
	}
	if more := len(items) - shownItems; more > 0 {
		list.row(fmt.Sprintf("and %d more: --json", more))
	}
	return list.flush()
}

func problem(st recovery.StoreReport) string {
	if st.Way == "" {
		return st.Problem
	}
	return st.Problem + ": " + st.Way
}

// counts prints states in the order of a record's life.
func counts(m map[journal.State]int) string {
	var parts []string
	for _, state := range journal.States {
		if n := m[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", state, n))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// sortedReasons prints counted reasons in order.
func sortedReasons(m map[string]int) []string {
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("%d: %s", m[reason], reason))
	}
	return lines
}
