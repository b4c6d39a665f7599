package lease

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// DefaultTTL is how long a lease lives without a renewal.
	DefaultTTL = 30 * time.Second
	// MinTTL leaves a renewal the time to be answered.
	MinTTL = time.Second
	// MaxName is the greatest length, in bytes, of a lease's or a holder's name.
	MaxName = 200
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
		s.holder = holder()
	}
	if err := checkName("name", name); err != nil {
		return s, err
	}
	if err := checkName("holder", s.holder); err != nil {
		return s, err
	}
	if s.ttl < MinTTL {
		return s, fmt.Errorf("rhizodat: acquire lease: a TTL of %s: at least %s, so that it can be renewed in time", s.ttl, MinTTL)
	}
	return s, nil
}

// checkName refuses what could not be read back as it was written, or read at all.
func checkName(what, name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "is empty"
	case len(name) > MaxName:
		reason = fmt.Sprintf("has %d bytes, at most %d", len(name), MaxName)
	case !utf8.ValidString(name):
		reason = "is not UTF-8"
	default:
		for _, c := range name {
			if unicode.IsControl(c) {
				reason = "holds a control character"
			}
		}
	}
	if reason == "" {
		return nil
	}
	return errors.New("rhizodat: acquire lease: the " + what + " " + reason)
}

// holder names this process to people. The random part keeps two acquisitions
// of one process apart: the second must not take the lease from the first.
func holder() string {
	host, err := os.Hostname()
	if err != nil || host == "" || checkName("holder", host) != nil || len(host) > 100 {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:10])
}
