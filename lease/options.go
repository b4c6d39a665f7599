package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/keeper"
)

const (
	// DefaultTTL is how long a lease lives without a renewal.
	DefaultTTL = 30 * time.Second
	// MinTTL leaves a renewal the time to be answered.
	MinTTL = time.Second
	// MaxName is the greatest length, in bytes, of a lease's or a holder's name.
	MaxName = keeper.MaxName
)

// Option of an acquisition.
type Option func(*settings)

type settings struct {
	name, holder string
	ttl          time.Duration
	skipped      func(error)
}

// WithTTL sets how long the lease lives without a renewal; at least MinTTL. A
// holder that dies keeps the others out for as long.
func WithTTL(ttl time.Duration) Option { return func(s *settings) { s.ttl = ttl } }

// WithHolder names the holder. It is then the same one after a restart, and is
// granted the lease at once with a new fence, which fences its own earlier
// incarnation. No two processes that run at the same time may share it.
// Without it each acquisition has a holder of its own, named after host and
// process.
func WithHolder(name string) Option { return func(s *settings) { s.holder = name } }

// OnSkip is told why RunEvery has skipped a turn: *Held, *Fenced or ErrLapsed
// where the lease is another's, or an error of the journal that may pass.
func OnSkip(f func(error)) Option { return func(s *settings) { s.skipped = f } }

func settingsOf(name string, opts []Option) (settings, error) {
	s := settings{name: name, ttl: DefaultTTL}
	for _, o := range opts {
		o(&s)
	}
	if s.holder == "" {
		s.holder = keeper.NewHolder()
	}
	if fault := keeper.Fault(name); fault != "" {
		return s, errors.New("rhizodat: acquire lease: the name " + fault)
	}
	if fault := keeper.Fault(s.holder); fault != "" {
		return s, errors.New("rhizodat: acquire lease: the holder " + fault)
	}
	if s.ttl < MinTTL {
		return s, fmt.Errorf("rhizodat: acquire lease: a TTL of %s: at least %s, so that it can be renewed in time", s.ttl, MinTTL)
	}
	return s, nil
}

// ValidName tells whether a lease may be called so: not empty, at most MaxName
// bytes of UTF-8, no control characters.
func ValidName(name string) bool { return keeper.Fault(name) == "" }
