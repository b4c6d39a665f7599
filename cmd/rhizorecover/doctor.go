package main

import (
	"context"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
)

type doctorCmd struct{ jsonFlag }

// examined and finding are a doctor's report as --json prints it.
type examined struct {
	Where    string    `json:"where"`
	Findings []finding `json:"findings"`
}

type finding struct {
	Severity string `json:"severity"`
	Check    string `json:"check"`
	Text     string `json:"text"`
	Way      string `json:"way,omitempty"`
}

// Run examines the set-up. An error among the findings is exit code 4.
func (c *doctorCmd) Run(s *session) error {
	return s.open(nil, func(ctx context.Context, d *deployment) error {
		worst := branches.SeverityOK
		report := []examined{}
		for _, e := range d.worker.Doctor(ctx) {
			worst = max(worst, e.Worst())
			one := examined{Where: e.Where, Findings: []finding{}}
			for _, f := range e.Findings {
				one.Findings = append(one.Findings, finding{f.Severity.String(), f.Check, f.Text, f.Way})
			}
			report = append(report, one)
		}
		if err := c.print(s, report); err != nil {
			return err
		}
		if worst == branches.SeverityError {
			return exit(exitPerson)
		}
		return nil
	})
}

func (c *doctorCmd) print(s *session, report []examined) error {
	if c.JSON {
		return printJSON(s.out, report)
	}
	list := newTable(s.out, "WHERE", "SEVERITY", "CHECK", "FOUND")
	for _, e := range report {
		for _, f := range e.Findings {
			text := f.Text
			if f.Way != "" {
				text = fmt.Sprintf("%s -> %s", f.Text, f.Way)
			}
			list.row(e.Where, f.Severity, f.Check, text)
		}
	}
	return list.flush()
}
