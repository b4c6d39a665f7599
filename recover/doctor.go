package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Examination is what Doctor found out about the journal or one store.
type Examination struct {
	Where    string             `json:"where"` // "journal" or a store's name
	Findings []branches.Finding `json:"-"`
}

// Worst is the severest of the findings.
func (e Examination) Worst() branches.Severity {
	worst := branches.SeverityOK
	for _, f := range e.Findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

// Doctor examines the set-up: every store's own findings, who the stores and
// the journal say they are, shared places, clocks. It changes nothing, and what
// cannot be reached is a finding, not an error.
func (w *Worker) Doctor(ctx context.Context) []Examination {
	j := Examination{Where: "journal"}
	before := w.wall.Now()
	p, err := w.view(ctx)
	if err != nil {
		j.add(journalFinding(err))
		p = nil
	} else {
		j.add(w.journalPlace(p.journal), w.drift(p.clock, before), w.retention())
		j.add(w.registered(ctx, p)...)
	}
	j.add(examine(ctx, w.cfg.Journal, w.cfg.StoreTimeout)...)
	all := []Examination{j}
	for _, name := range sortedKeys(w.cfg.Stores) {
		e := Examination{Where: name}
		if p != nil {
			e.add(p.stores[name].finding())
		}
		e.add(examine(ctx, w.cfg.Stores[name], w.cfg.StoreTimeout)...)
		all = append(all, e)
	}
	return all
}

func (e *Examination) add(f ...branches.Finding) { e.Findings = append(e.Findings, f...) }

// examine asks what can examine itself.
func examine(ctx context.Context, what any, timeout time.Duration) []branches.Finding {
	examiner, ok := what.(branches.Examiner)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	findings, err := examiner.Examine(ctx)
	if err != nil {
		findings = append(findings, branches.Finding{Severity: branches.SeverityError, Check: "reachable", Text: err.Error(), Way: "look at the server and at the DSN"})
	}
	return findings
}

func journalFinding(err error) branches.Finding {
	f := branches.Finding{Severity: branches.SeverityError, Check: "installed", Text: err.Error()}
	var layout *journal.Layout
	switch {
	case errors.Is(err, branches.ErrNotInstalled):
		f.Way = hintInit
	case errors.As(err, &layout):
		f.Check = "layout"
	default:
		f.Check, f.Way = "reachable", "look at the server and at the DSN"
	}
	return f
}

func (w *Worker) journalPlace(j journal.Identity) branches.Finding {
	if j.Moved() {
		return branches.Finding{
			Severity: branches.SeverityError, Check: "place",
			Text: fmt.Sprintf("made or adopted at %s, now at %s", j.Place, j.Here),
			Way:  hintAdopt + "NAME, for every store",
		}
	}
	return branches.Finding{Check: "place", Text: fmt.Sprintf("%s at %s, layout version %d", j.ID, j.Here, j.Layout)}
}

// drift compares this host's clock with the journal's. Coordinators are refused
// beyond max_clock_drift, so half of it is worth a warning.
func (w *Worker) drift(theirs, before time.Time) branches.Finding {
	after := w.wall.Now()
	var apart time.Duration
	switch {
	case theirs.Before(before):
		apart = before.Sub(theirs)
	case theirs.After(after):
		apart = theirs.Sub(after)
	}
	f := branches.Finding{Check: "clock", Text: fmt.Sprintf("this host and the journal are %s apart, max_clock_drift=%s", pretty(apart), w.cfg.MaxClockDrift)}
	switch {
	case apart > w.cfg.MaxClockDrift:
		f.Severity, f.Way = branches.SeverityError, "set the clocks (NTP): commits from this host are refused"
	case apart > w.cfg.MaxClockDrift/2:
		f.Severity, f.Way = branches.SeverityWarning, "set the clocks (NTP)"
	}
	return f
}

// retention warns of timings that contradict each other.
func (w *Worker) retention() branches.Finding {
	f := branches.Finding{Check: "timings", Text: fmt.Sprintf("stale_after=%s alert_after=%s retain=%s", w.cfg.StaleAfter, w.cfg.AlertAfter, w.cfg.Retain)}
	if w.cfg.AlertAfter <= w.cfg.StaleAfter {
		f.Severity, f.Way = branches.SeverityWarning, "alert_after should be well above stale_after: recovery has not yet begun when it alerts"
	}
	return f
}

// registered reports entries of the registry that this DSN does not use.
func (w *Worker) registered(ctx context.Context, p *pass) []branches.Finding {
	entries, err := w.registry.Stores(ctx)
	if err != nil {
		return []branches.Finding{journalFinding(err)}
	}
	var findings []branches.Finding
	for _, entry := range entries {
		f := branches.Finding{Check: "registered", Text: fmt.Sprintf("store %s at %s, %d sweeps", entry.Name, entry.Place, entry.Sweeps)}
		if p.stores[entry.Name] == nil {
			f.Severity = branches.SeverityNote
			f.Text += "; not in this DSN"
			f.Way = "records that name it are left alone by this worker"
		}
		findings = append(findings, f)
	}
	return findings
}

// finding is a store's identity.
func (s *storePass) finding() branches.Finding {
	f := branches.Finding{Check: "identity", Text: string(s.id.place), Way: s.Way}
	switch s.Standing {
	case StandingDown, StandingRefused:
		f.Severity, f.Text = branches.SeverityError, s.Problem
	case StandingOK:
		if !s.id.known && s.id.keeper != nil {
			f.Severity, f.Text, f.Way = branches.SeverityNote, "not registered with this journal yet", hintInit
		}
	}
	return f
}
