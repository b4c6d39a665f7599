package await

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// probe is a test that notes its failure.
type probe struct {
	testing.TB
	said string
}

func (p *probe) Helper() {}

func (p *probe) Fatalf(format string, args ...any) {
	p.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// What does not come true fails the test, with what was seen last.
func TestInVain(t *testing.T) {
	p, looks, done := &probe{TB: t}, 0, make(chan struct{})
	go func() {
		defer close(done)
		within(p, 20*time.Millisecond, func() bool { looks++; return false },
			func() string { return fmt.Sprintf("%t after looking", looks > 1) })
	}()
	<-done
	if want := "not so after 20ms: true after looking"; p.said != want {
		t.Errorf("said %q, want %q", p.said, want)
	}
}

// It looks again until the condition holds, and then no more.
func TestUntil(t *testing.T) {
	looks := 0
	Until(t, "three looks", func() bool { looks++; return looks == 3 })
	if looks != 3 {
		t.Errorf("%d looks, want 3", looks)
	}
}
