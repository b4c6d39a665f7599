package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/memjournal"
)

// stepping is a journal's clock that is set while it runs.
type stepping struct {
	hlc.Wall
	by atomic.Int64
}

func (s *stepping) Now() time.Time { return s.Wall.Now().Add(time.Duration(s.by.Load())) }

func (s *stepping) set(by time.Duration) { s.by.Store(int64(by)) }

// The journal's clock is set forward: the lease lapses early, another is granted
// the next fence, and the first holder learns of it with its next renewal.
func TestJournalsClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &stepping{Wall: hlc.System}
		j := memjournal.New(clock)
		first := must(t, j, "a", 1)
		clock.set(time.Hour)
		second := must(t, j, "b", 2)
		pass(t, 11*time.Second)
		if fenced, ok := errors.AsType[*Fenced](context.Cause(first.Context())); !ok || fenced.Fence != 1 {
			t.Errorf("the first holder ended by %v, want *Fenced", context.Cause(first.Context()))
		}
		// And back: its holder goes on, since it is renewed from the clock that is
		// there; one that has died keeps the others out until that clock has caught up.
		clock.set(0)
		pass(t, 75*time.Second)
		if cause := second.held.Cause(); cause != nil {
			t.Errorf("the second holder ended by %v", cause)
		}
		second.drop()
		pass(t, 30*time.Second)
		must(t, j, "c", 3).drop()
		clock.set(-time.Hour)
		pass(t, 30*time.Second)
		expectHeld(t, j, "d", "c")
		pass(t, time.Hour)
		must(t, j, "d", 4).drop()
		synctest.Wait()
	})
}
