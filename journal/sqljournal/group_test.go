package sqljournal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal/internal/places"
)

var (
	errAnswered = errors.New("one statement is wrong")
	errLost     = errors.New("the connection is gone")
)

// bed is a database whose answers the test holds back. Every request of it is kept.
type bed struct {
	group

	mu       sync.Mutex
	requests [][]string                                // the texts of each request, in order
	answer   func(texts []string) error                // nil: the affected rows are the last digit of the text
	hold     func(ctx context.Context, texts []string) // blocks before the answer
	reserve  func(context.Context) error               // why there is no reserved connection
}

func newBed() *bed {
	b := &bed{}
	b.group = group{pool: bedPool{b}, purpose: places.Decisions, mode: Forced, kind: func(err error) branches.Kind {
		if errors.Is(err, errAnswered) {
			return branches.Permanent
		}
		return branches.Transient
	}}
	return b
}

type bedPool struct{ b *bed }

func (p bedPool) Take(context.Context, bool) (Conn, error) { return nil, errors.ErrUnsupported }
func (p bedPool) Close() error                             { return nil }
func (p bedPool) Reserved(_ context.Context, purpose places.Purpose) (Conn, error) {
	if purpose != places.Decisions {
		return nil, fmt.Errorf("purpose %d", purpose)
	}
	return bedConn{b: p.b, reserved: true}, nil
}

type bedConn struct {
	b        *bed
	reserved bool
}

func (c bedConn) Ready(ctx context.Context) error {
	if c.reserved && c.b.reserve != nil {
		return c.b.reserve(ctx)
	}
	return nil
}

func (c bedConn) Run(ctx context.Context, m Mode, stmts ...Stmt) ([]Result, error) {
	var texts []string
	var results []Result
	for _, s := range stmts {
		texts = append(texts, s.Text)
		results = append(results, Result{Affected: int64(s.Text[len(s.Text)-1] - '0')})
	}
	if m != Forced {
		return nil, fmt.Errorf("mode %d", m)
	}
	c.b.mu.Lock()
	c.b.requests = append(c.b.requests, texts)
	hold, answer := c.b.hold, c.b.answer
	c.b.mu.Unlock()
	if hold != nil {
		hold(ctx, texts)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if answer != nil {
		if err := answer(texts); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (c bedConn) Work(context.Context, func(func(Stmt) (Result, error)) error) error {
	return errors.ErrUnsupported
}
func (c bedConn) Release() {}

// outcome is what a caller was told.
type outcome struct {
	affected int64
	err      error
}

// write starts a caller and returns where its outcome will be.
func (b *bed) write(ctx context.Context, text string) <-chan outcome {
	told := make(chan outcome, 1)
	go func() {
		res, err := b.run(ctx, bedConn{b: b}, func() Stmt { return Do(text) })
		told <- outcome{res.Affected, err}
	}()
	return told
}

// sent returns the requests so far.
func (b *bed) sent() [][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// behind holds the first request until release is called, and returns when it is
// under way.
func (b *bed) behind(t *testing.T) (first <-chan outcome, release func()) {
	t.Helper()
	gate := make(chan struct{})
	b.hold = func(_ context.Context, texts []string) {
		if texts[0] == "first 1" {
			<-gate
		}
	}
	first = b.write(t.Context(), "first 1")
	synctest.Wait()
	return first, sync.OnceFunc(func() { close(gate) })
}

// meet starts a caller for each text while a first write is under way, ends that
// one, and returns where their outcomes will be.
func (b *bed) meet(t *testing.T, texts ...string) []<-chan outcome {
	t.Helper()
	first, release := b.behind(t)
	told := make([]<-chan outcome, len(texts))
	for i, text := range texts {
		told[i] = b.write(t.Context(), text)
		synctest.Wait()
	}
	release()
	expect(t, "the first", first, outcome{1, nil})
	return told
}

func expect(t *testing.T, what string, told <-chan outcome, want outcome) {
	t.Helper()
	if got := <-told; got.affected != want.affected || !errors.Is(got.err, want.err) {
		t.Errorf("%s was told %d rows, %v; want %d, %v", what, got.affected, got.err, want.affected, want.err)
	}
}

func expectRequests(t *testing.T, b *bed, want ...[]string) {
	t.Helper()
	if got := b.sent(); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the database saw %q, want %q", got, want)
	}
}

func TestGroupAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		for range 3 {
			expect(t, "a write alone", b.write(t.Context(), "one 1"), outcome{1, nil})
		}
		expectRequests(t, b, []string{"one 1"}, []string{"one 1"}, []string{"one 1"})
	})
}

// TestGroupTogether: what comes while a write is under way goes in one transaction,
// and each caller gets the answer to its own statement.
func TestGroupTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		texts := []string{"one 0", "two 1", "three 0", "four 1"} // refused ones among those that apply
		for i, c := range b.meet(t, texts...) {
			expect(t, texts[i], c, outcome{int64(i % 2), nil})
		}
		expectRequests(t, b, []string{"first 1"}, texts)
		expect(t, "one after them", b.write(t.Context(), "last 1"), outcome{1, nil})
	})
}

func TestGroupIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		for _, c := range b.meet(t, slices.Repeat([]string{"more 1"}, maxGroup+3)...) {
			expect(t, "one of many", c, outcome{1, nil})
		}
		var sizes []int
		for _, texts := range b.sent() {
			sizes = append(sizes, len(texts))
		}
		if want := []int{1, maxGroup, 3}; !slices.Equal(sizes, want) {
			t.Errorf("requests of %d writes, want %d", sizes, want)
		}
	})
}

// TestGroupOfOneWrongStatement: an answered error has undone the transaction, and
// is told to no caller but the one whose statement it is.
func TestGroupOfOneWrongStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		b.answer = func(texts []string) error {
			if slices.Contains(texts, "wrong 1") {
				return errAnswered
			}
			return nil
		}
		told := b.meet(t, "right 1", "wrong 1")
		expect(t, "the right one", told[0], outcome{1, nil})
		expect(t, "the wrong one", told[1], outcome{0, errAnswered})
		if got := len(b.sent()); got != 4 {
			t.Errorf("%d requests, want the first, both, and each by itself: %q", got, b.sent())
		}
	})
}

// TestGroupWithoutAnswer: a lost answer is lost for each. Nothing is sent twice:
// the second delivery of an S4 that applied would be refused by its own record.
func TestGroupWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		b.answer = func(texts []string) error {
			if len(texts) > 1 {
				return errLost
			}
			return nil
		}
		for _, c := range b.meet(t, "one 1", "two 1") {
			expect(t, "one of both", c, outcome{0, errLost})
		}
		if got := len(b.sent()); got != 2 {
			t.Errorf("%d requests, want 2: %q", got, b.sent())
		}
	})
}

// TestGroupWithoutConnection: where the server has no connection to spare, or
// does not answer, the callers use those they have.
func TestGroupWithoutConnection(t *testing.T) {
	for name, reserve := range map[string]func(context.Context) error{
		"refused": func(context.Context) error { return errLost },
		"hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed()
				b.reserve = reserve
				for _, c := range b.meet(t, "one 1", "two 1") {
					expect(t, "a caller", c, outcome{1, nil})
				}
				if got := len(b.sent()); got != 3 {
					t.Errorf("%d requests, want 3: %q", got, b.sent())
				}
			})
		})
	}
}

// TestGroupBehindARequestThatHangs: others wait for it no longer than patience.
func TestGroupBehindARequestThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		first, release := b.behind(t)
		began := time.Now()
		expect(t, "the second", b.write(t.Context(), "second 1"), outcome{1, nil})
		if waited := time.Since(began); waited != patience {
			t.Errorf("it waited for %s, want %s", waited, patience)
		}
		release()
		expect(t, "the first", first, outcome{1, nil})
		expectRequests(t, b, []string{"first 1"}, []string{"second 1"})
	})
}

// TestGroupGivenUp: a caller whose context ends waits no longer. What it had not
// sent is never sent; what it had, goes on for the others, and ends with the last.
func TestGroupGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		first, release := b.behind(t)
		early, cancelEarly := context.WithCancel(t.Context())
		never := b.write(early, "never 1")
		synctest.Wait()
		cancelEarly()
		expect(t, "the one that left early", never, outcome{0, context.Canceled})

		late, cancelLate := context.WithCancel(t.Context())
		later, cancelLater := context.WithCancel(t.Context())
		one, two := b.write(late, "one 1"), b.write(later, "two 1")
		synctest.Wait()
		ended := make(chan struct{})
		b.hold = func(ctx context.Context, _ []string) { <-ctx.Done(); close(ended) }
		release()
		expect(t, "the first", first, outcome{1, nil})
		synctest.Wait()
		cancelLate()
		expect(t, "one", one, outcome{0, context.Canceled})
		synctest.Wait()
		select {
		case <-ended:
			t.Error("the transaction ended before its last caller gave it up")
		default:
		}
		cancelLater()
		expect(t, "two", two, outcome{0, context.Canceled})
		<-ended
		synctest.Wait()
		b.hold = nil
		expect(t, "one after them", b.write(t.Context(), "last 1"), outcome{1, nil})
		if got := b.sent()[1]; len(got) != 2 || slices.Contains(got, "never 1") {
			t.Errorf("the second request held %q", got)
		}
	})
}
