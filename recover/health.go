package recovery

import (
	"context"
	"errors"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

// health remembers how a store, or the journal, has been, so that a log says
// once that it is down and once that it is back, and a worker does not knock on
// its door on every pass.
type health struct {
	standing Standing
	reason   string
	err      error
	since    time.Time
	failures int       // in a row
	next     time.Time // not before then
}

// errRestingStore stands for a store that was found down a moment ago.
type errRestingStore struct{ last error }

func (e *errRestingStore) Error() string { return e.last.Error() }
func (e *errRestingStore) Unwrap() error { return e.last }

// resting returns the last error of a store that is not to be asked again yet.
func (h *health) resting(now time.Time) error {
	if h.standing == StandingDown && now.Before(h.next) {
		return &errRestingStore{h.err}
	}
	return nil
}

// note takes in how a store is in this pass and logs a change.
func (h *health) note(ctx context.Context, w *Worker, s *storePass, now time.Time) {
	if _, resting := errors.AsType[*errRestingStore](s.err); resting {
		return
	}
	changed := h.standing != s.Standing || s.Standing == StandingRefused && h.reason != s.Problem
	was := h.since
	if changed {
		h.since = now
	}
	switch s.Standing {
	case StandingOK:
		h.failures = 0
		s.returned = h.standing == StandingDown
		if changed && h.standing != "" {
			w.log.InfoContext(ctx, "rhizodat: store is back", "store", s.name, "after", now.Sub(was).Round(time.Millisecond))
		}
	case StandingDown:
		h.failures++
		h.next = now.Add(backoff(w.cfg.Interval, h.failures-1))
		if changed {
			w.log.WarnContext(ctx, "rhizodat: store is down, its branches wait", "store", s.name, "error", s.Problem)
		}
	case StandingRefused: // cheap to ask, and a person waits for the answer
		h.failures = 0
		if changed {
			w.log.ErrorContext(ctx, "rhizodat: store is left alone", "store", s.name, "problem", s.Problem, "way", s.Way)
		}
	}
	h.standing, h.reason, h.err = s.Standing, s.Problem, s.err
}

// journalAnswered does the same for the journal.
func (w *Worker) journalAnswered(ctx context.Context, err error) {
	h := &w.journal
	standing := StandingOK
	if err != nil {
		standing = StandingDown
	}
	if ctx.Err() != nil || standing == h.standing {
		return
	}
	switch {
	case err == nil && h.standing != "":
		w.log.InfoContext(ctx, "rhizodat: recovery goes on, the journal is back")
	case errors.Is(err, branches.ErrNotInstalled):
		w.log.ErrorContext(ctx, "rhizodat: recovery waits: the journal is not installed", "way", hintInit)
	case err != nil:
		w.log.WarnContext(ctx, "rhizodat: recovery waits: pass not finished", "error", err)
	}
	h.standing = standing
}
