package pgtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// envAll makes what would be skipped fail; scripts/test.sh sets it, and CI
// services set the other.
const (
	envAll = "RHIZODAT_REQUIRE_ALL"
	envCI  = "CI"
)

// Skip skips a test because this machine lacks a server program. It is the
// one way to skip a test in this project. With RHIZODAT_REQUIRE_ALL=1 or
// CI=true, where everything has to be installed, the test fails instead.
func Skip(tb testing.TB, reason string) {
	tb.Helper()
	reasons.Store(tb.Name(), reason)
	if os.Getenv(envAll) == "1" || os.Getenv(envCI) == "true" {
		tb.Fatal("must not be skipped here: " + reason)
	}
	tb.Skip("SKIP-NO-SERVER: " + reason)
}

// reasons are why tests were skipped, by their names.
var reasons sync.Map

// Suite is a group of tests that says at its end what it ran, in the words
// that testbed/tally reads: "NAME: ran N, left out M (reason)".
type Suite struct {
	t       *testing.T
	ran     int
	leftOut int
	why     []string // each reason once
}

// NewSuite begins a group; its line is printed when t ends.
func NewSuite(t *testing.T, name string) *Suite {
	t.Helper()
	s := &Suite{t: t}
	t.Cleanup(func() {
		line := fmt.Sprintf("%s: ran %d, left out %d", name, s.ran, s.leftOut)
		if s.leftOut > 0 {
			line += " (" + strings.Join(s.why, "; ") + ")"
		}
		t.Log(line)
	})
	return s
}

// Run runs an item as a subtest. Its items do not run in parallel.
func (s *Suite) Run(item string, f func(*testing.T)) {
	s.t.Helper()
	var self *testing.T
	s.t.Run(item, func(t *testing.T) {
		self = t
		f(t)
	})
	if self == nil { // -run chose others
		return
	}
	reason, left := reasons.Load(self.Name())
	if !left {
		s.ran++
		return
	}
	s.leftOut++
	if why := reason.(string); !slices.Contains(s.why, why) {
		s.why = append(s.why, why)
	}
}
