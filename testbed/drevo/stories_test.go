package drevo_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

// A telling is a story of the contract, with the part of it that it is about.
type telling struct {
	section string
	name    string
	run     func(*story)
}

// TestStories plays the contract of drevo.
func TestStories(t *testing.T) {
	all := slices.Concat(wireStories(), txStories(), prepareStories(), crashStories())
	const known = 32
	if len(all) != known {
		t.Errorf("%d stories, want %d", len(all), known)
	}
	for _, s := range all {
		t.Run(s.section+" "+s.name, func(t *testing.T) {
			s.run(&story{T: t, servers: map[string]*drevotest.Cluster{}})
		})
	}
}

// story is a test with servers of its own, by names that it gives them.
type story struct {
	*testing.T
	servers map[string]*drevotest.Cluster
}

func (t *story) differs(format string, a ...any) {
	t.Helper()
	t.Errorf(format, a...)
}

// note reports something measured that is neither right nor wrong.
func (t *story) note(format string, a ...any) {
	t.Helper()
	t.Logf(format, a...)
}

// must ends the story on an unexpected error.
func (t *story) must(err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (t *story) eq(what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: (-want +got)\n%s", what, diff)
	}
}

// server is the story's one of that name, made when it is first named.
func (t *story) server(name string) *drevotest.Cluster {
	t.Helper()
	if t.servers[name] == nil {
		t.servers[name] = drevotest.Stopped(t)
	}
	return t.servers[name]
}

// start starts the story's only server, on the data that it left.
func (t *story) start(args ...string) *rig {
	t.Helper()
	return t.startIn("", args...)
}

func (t *story) startIn(name string, args ...string) *rig {
	t.Helper()
	cluster := t.server(name)
	cluster.Start(t, args...)
	return &rig{t, cluster}
}

// refuses starts the story's server, which must not come up, and returns its words.
func (t *story) refuses() string {
	t.Helper()
	err := t.server("").TryStart(t)
	if err == nil {
		t.Fatal("the server starts")
	}
	return err.Error()
}

// second starts another server on the data of one that runs.
func (t *story) second(r *rig) string {
	t.Helper()
	other := drevotest.Stopped(t)
	t.must(os.Symlink(r.cluster.Data(), other.Data()), "link to the data")
	err := other.TryStart(t)
	if err == nil {
		t.Fatal("a second server starts on one store")
	}
	return err.Error()
}

func (t *story) smallDisk() drevotest.Disk {
	t.Helper()
	return t.server("").SmallDisk(t)
}

// wal is the log of the story's default graph.
func (t *story) wal() string { return filepath.Join(t.server("").Data(), "native.wal") }

// fails checks the code, the message (a part of it, or all when it starts with
// "=") and whether the driver would retry.
func (t *story) fails(what string, err error, code, message string, retryable bool) {
	t.Helper()
	ne, ok := errors.AsType[*serverError](err)
	if !ok {
		t.Errorf("%s: want %s, got %T %v", what, code, err, err)
		return
	}
	if ne.Code != code {
		t.Errorf("%s: code %s, want %s (%s)", what, ne.Code, code, ne.Msg)
	}
	if whole, exact := strings.CutPrefix(message, "="); exact && ne.Msg != whole || !strings.Contains(ne.Msg, whole) {
		t.Errorf("%s: message %q, want %q", what, ne.Msg, message)
	}
	if got := isRetryable(err); got != retryable {
		t.Errorf("%s: retryable %v, want %v", what, got, retryable)
	}
}
