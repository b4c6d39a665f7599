package pgtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

const envInner = "RHIZODAT_PGTEST_INNER"

// TestInner is the suite that TestSuite watches from outside.
func TestInner(t *testing.T) {
	if os.Getenv(envInner) == "" {
		return
	}
	s := pgtest.NewSuite(t, "inner")
	s.Run("one", func(*testing.T) {})
	s.Run("two", lacking)
	s.Run("three", lacking)
}

func lacking(t *testing.T) {
	t.Helper()
	pgtest.Skip(t, "no server")
}

func TestSuite(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env    string
		passes bool
	}{{"CI=", true}, {"CI=true", false}, {"RHIZODAT_REQUIRE_ALL=1", false}} {
		inner := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^TestInner$")
		inner.Env = append(os.Environ(), "CI=", "RHIZODAT_REQUIRE_ALL=", envInner+"=1", c.env)
		output, err := inner.CombinedOutput()
		if passed := err == nil; passed != c.passes {
			t.Errorf("with %s: passed is %t, want %t\n%s", c.env, passed, c.passes, output)
		}
		if want := "inner: ran 1, left out 2 (no server)\n"; !strings.Contains(string(output), want) {
			t.Errorf("with %s: output lacks %q\n%s", c.env, want, output)
		}
	}
}
