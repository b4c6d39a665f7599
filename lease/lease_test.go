package lease

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/memjournal"
	"github.com/rhizodat/rhizodat-go/journal"
)

// TestMain plays more random histories than rapid's 100, and lets no goroutine
// outlive the tests.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", "3000"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// take acquires the lease p for a node that is told from the others by name.
func take(t *testing.T, j journal.Journal, node string, opts ...Option) (*Lease, error) {
	t.Helper()
	s, err := settingsOf("p", append([]Option{WithHolder(node)}, opts...))
	if err != nil {
		t.Fatal(err)
	}
	l, err := acquire(t.Context(), j, s)
	if l != nil {
		t.Cleanup(func() { l.held.Drop(ErrReleased) })
	}
	return l, err
}

func must(t *testing.T, j journal.Journal, node string, fence Fence) *Lease {
	t.Helper()
	l, err := take(t, j, node)
	if err != nil || l.Fence() != fence || l.Name() != "p" || l.Holder() != node {
		t.Fatalf("%s: %+v, %v, want fence %v", node, l, err, fence)
	}
	return l
}

func expectHeld(t *testing.T, j journal.Journal, node, by string) {
	t.Helper()
	_, err := take(t, j, node)
	if held, ok := errors.AsType[*Held](err); !ok || held.Holder != by || held.Name != "p" || held.Until.Before(hlc.System.Now()) {
		t.Fatalf("%s: %v, want *Held by %s", node, err, by)
	}
}

func pass(t *testing.T, d time.Duration) {
	t.Helper()
	if err := hlc.System.Sleep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// drop is a holder that dies: nothing of it is renewed or released any more.
func (l *Lease) drop() { l.held.Drop(errors.New("died")) }

func bubble(t *testing.T, f func(t *testing.T, j *memjournal.Journal)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		f(t, memjournal.New(hlc.System))
		synctest.Wait()
	})
}

// TTL 30 s: refused at +29 s, granted at +30 s, and the new expiry counts from then.
func TestExpiry(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		must(t, j, "a", 1).drop()
		pass(t, 29*time.Second)
		expectHeld(t, j, "b", "a")
		pass(t, time.Second)
		must(t, j, "b", 2).drop()
		pass(t, 29*time.Second)
		expectHeld(t, j, "a", "b")
		pass(t, time.Second)
		must(t, j, "a", 3)
	})
}

// Fences 1, 2, 3 for a, b, a; then c, lapse, d gives 5.
func TestFences(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		for i, node := range []string{"a", "b", "a"} {
			if err := must(t, j, node, Fence(i+1)).Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		must(t, j, "c", 4).drop()
		pass(t, 30*time.Second)
		must(t, j, "d", 5)
	})
}

// Work of 75 s under a lease of 30 s keeps it; nobody else gets it.
func TestKeeperOutlivesTheTTL(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		l := must(t, j, "a", 1)
		for range 75 {
			pass(t, time.Second)
			expectHeld(t, j, "b", "a")
		}
		if err := l.Context().Err(); err != nil {
			t.Fatalf("the holder lost it: %v", context.Cause(l.Context()))
		}
		if n := j.Asked(memjournal.Renew); n != 7 {
			t.Errorf("%d renewals in 75 s, want one every 10 s", n)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if cause := context.Cause(l.Context()); !errors.Is(cause, ErrReleased) {
			t.Errorf("after the release the cause is %v", cause)
		}
		must(t, j, "b", 2)
	})
}

// Without an answer the holder stops trusting the lease before anybody else can
// have it, whatever became of its renewals.
func TestHolderStopsBeforeTheExpiry(t *testing.T) {
	for name, fault := range map[string]memjournal.Fault{"lost before": memjournal.LostBefore, "hanging": memjournal.Hang} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, j *memjournal.Journal) {
				t.Helper()
				l := must(t, j, "a", 1)
				j.Spoil(func(op memjournal.Op) memjournal.Fault {
					if op == memjournal.Renew {
						return fault
					}
					return memjournal.None
				})
				began := hlc.System.Now()
				<-l.Context().Done()
				if cause := context.Cause(l.Context()); !errors.Is(cause, ErrLapsed) {
					t.Errorf("the cause is %v, want ErrLapsed", cause)
				}
				if after := hlc.System.Now().Sub(began); after != 27*time.Second {
					t.Errorf("trusted for %v, want the TTL and a tenth less", after)
				}
				expectHeld(t, j, "b", "a")
			})
		})
	}
}

// One renewal that fails costs nothing.
func TestRenewalIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		l := must(t, j, "a", 1)
		var failed atomic.Int32
		j.Spoil(func(op memjournal.Op) memjournal.Fault {
			if op == memjournal.Renew && failed.Load() < 3 {
				failed.Add(1)
				return memjournal.LostAfter
			}
			return memjournal.None
		})
		pass(t, 60*time.Second)
		if l.Context().Err() != nil || failed.Load() != 3 {
			t.Errorf("after %d failures: %v", failed.Load(), context.Cause(l.Context()))
		}
	})
}

// The same holder is granted a new fence at once; its earlier incarnation
// learns of it with its next renewal.
func TestSameHolderAgain(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		first := must(t, j, "a", 1)
		second := must(t, j, "a", 2)
		<-first.Context().Done()
		fenced, ok := errors.AsType[*Fenced](context.Cause(first.Context()))
		if !ok || fenced.Lease != "p" || fenced.Fence != 1 {
			t.Errorf("the cause is %v, want *Fenced", context.Cause(first.Context()))
		}
		if err := first.Release(t.Context()); err != nil {
			t.Errorf("Release of what was lost: %v", err)
		}
		pass(t, time.Minute)
		if second.Context().Err() != nil {
			t.Errorf("the second grant ended: %v", context.Cause(second.Context()))
		}
	})
}

// Two acquisitions of one process are two holders unless they say otherwise.
func TestTwoOfOneProcess(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		s, err := settingsOf("p", nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := acquire(t.Context(), j, s)
		if err != nil {
			t.Fatal(err)
		}
		defer l.drop()
		other, err := settingsOf("p", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = acquire(t.Context(), j, other)
		if held, ok := errors.AsType[*Held](err); !ok || held.Holder != l.Holder() {
			t.Errorf("the second got %v, want *Held", err)
		}
	})
}

// A lost reply: the grant is found by its token, or nothing is concluded.
func TestLostReplies(t *testing.T) {
	lose := func(op memjournal.Op, fault memjournal.Fault) func(memjournal.Op) memjournal.Fault {
		return func(got memjournal.Op) memjournal.Fault {
			if got == op {
				return fault
			}
			return memjournal.None
		}
	}
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		j.Spoil(lose(memjournal.Acquire, memjournal.LostBefore))
		_, err := take(t, j, "a")
		if held := (*Held)(nil); err == nil || errors.As(err, &held) || !errors.Is(err, memjournal.ErrLost) {
			t.Errorf("lost on its way: %v, want an error that is no *Held", err)
		}
		j.Spoil(lose(memjournal.Acquire, memjournal.LostAfter))
		l := must(t, j, "a", 1)
		if _, err := take(t, j, "b"); err == nil || !errors.Is(err, memjournal.ErrLost) {
			t.Errorf("refused and lost: %v", err)
		}
		j.Spoil(lose(memjournal.Release, memjournal.LostAfter))
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("Release that arrived: %v", err)
		}
		l = must(t, j, "a", 2)
		j.Spoil(lose(memjournal.Release, memjournal.LostBefore))
		if err := l.Release(t.Context()); !errors.Is(err, memjournal.ErrLost) {
			t.Errorf("Release that did not arrive: %v", err)
		}
		expectHeld(t, j, "b", "a")
		pass(t, 30*time.Second) // it is not renewed all the same
		must(t, j, "b", 3)
	})
}

// A caller whose context has ended while it was granted keeps nothing.
func TestAcquireForNobody(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		j.Spoil(func(op memjournal.Op) memjournal.Fault {
			if op == memjournal.Acquire {
				cancel()
				return memjournal.Hang
			}
			return memjournal.None
		})
		s, err := settingsOf("p", nil)
		if err != nil {
			t.Fatal(err)
		}
		if l, err := acquire(ctx, j, s); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, %v", l, err)
		}
		j.Spoil(nil)
		must(t, j, "b", 2)
	})
}

// 100 leases cost one statement in each period, however they were acquired.
func TestManyLeasesShareARenewal(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		for i := range 100 {
			s, err := settingsOf(fmt.Sprintf("p%d", i), nil)
			if err != nil {
				t.Fatal(err)
			}
			l, err := acquire(t.Context(), j, s)
			if err != nil {
				t.Fatal(err)
			}
			defer l.drop()
			pass(t, 90*time.Millisecond)
		}
		pass(t, time.Minute)
		before := j.Asked(memjournal.Renew)
		pass(t, 10*time.Minute)
		if n := j.Asked(memjournal.Renew) - before; n != 60 {
			t.Errorf("%d renewals in 10 minutes, want one every 10 s", n)
		}
	})
}

// A lease of a short TTL sets the pace for itself alone.
func TestTTLsAreKeptApart(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		long := must(t, j, "a", 1)
		s, err := settingsOf("short", []Option{WithTTL(time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		short, err := acquire(t.Context(), j, s)
		if err != nil {
			t.Fatal(err)
		}
		defer short.drop()
		pass(t, 100*time.Second)
		if long.Context().Err() != nil || short.Context().Err() != nil {
			t.Errorf("lost: %v, %v", context.Cause(long.Context()), context.Cause(short.Context()))
		}
	})
}

func TestBadInput(t *testing.T) {
	for name, tc := range map[string]struct {
		lease string
		opts  []Option
		want  string
	}{
		"empty":               {"", nil, "the name is empty"},
		"overlong":            {strings.Repeat("x", MaxName+1), nil, "the name has 201 bytes, at most 200"},
		"not UTF-8":           {"a\xff", nil, "the name is not UTF-8"},
		"control character":   {"a\x00b", nil, "the name holds a control character"},
		"overlong holder":     {"p", []Option{WithHolder(strings.Repeat("x", 300))}, "the holder has 300 bytes"},
		"TTL under a second":  {"p", []Option{WithTTL(999 * time.Millisecond)}, "a TTL of 999ms: at least 1s"},
		"TTL in nanoseconds":  {"p", []Option{WithTTL(30)}, "a TTL of 30ns: at least 1s"},
		"TTL that goes back":  {"p", []Option{WithTTL(-time.Minute)}, "at least 1s"},
		"greatest name is ok": {strings.Repeat("ü", MaxName/2), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settingsOf(tc.lease, tc.opts)
			if tc.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := acquire(t.Context(), struct{ journal.Journal }{}, settings{name: "p", ttl: time.Minute}); !errors.Is(err, journal.ErrNoLease) {
		t.Errorf("a journal that keeps no leases: %v", err)
	}
}
