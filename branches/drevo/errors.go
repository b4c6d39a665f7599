package drevo

import (
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
)

var (
	errBranchOpen = errors.New("a branch is open on this session")
	errNoTime     = errors.New("the unit has no dat_tx_time") // a marker of 0 is a tombstone
	errNoContext  = errors.New("rhizodat: run statement: call it with a context")
	errUncounted  = errors.New("rhizodat: count rows: drevo tells no counters: return what is to be known, as in RETURN count(n)")
)

// fail wraps what went wrong with the store's name, and names the way out of what
// only a person can mend.
func (s *Store) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*branches.Error](err); ok && e.Store == s.name {
		return err // it says so already
	}
	wrapped := &branches.Error{Store: s.name, Doing: doing, Err: err, Asks: classify(err)}
	switch {
	case bolt.IsFull(err):
		wrapped.Way = "make room on the server's disk and restart drevo: until then it refuses every write"
	case bolt.IsWALFailure(err):
		wrapped.Way = "restart drevo: after a failed write of its log it refuses every write"
		wrapped.Asks = s.Classify(err)
	case bolt.Code(err) == bolt.CodeNoGraph:
		wrapped.Way = "make the graph: POST /databases on drevo's HTTP port"
	}
	return wrapped
}

// refuse is a PERMANENT error with a way out.
func (s *Store) refuse(doing, cause, way string) error {
	return &branches.Error{Store: s.name, Doing: doing, Cause: cause, Way: way, Asks: branches.Permanent}
}
