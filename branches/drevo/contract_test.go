package drevo_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/branchtest"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

// harness plays the contract against a graph. Every store has a line of its own,
// which Sever cuts.
//
//nolint:contextcheck // drevotest has a context of its own, which outlives the test's
func harness(t *testing.T, g *drevotest.Graph) branchtest.Harness {
	t.Helper()
	lines := &lines{t: t, graph: g, of: map[branches.Session]*drevotest.Line{}}
	return branchtest.Harness{
		Open: lines.open,
		Vote: branches.VotePrepare,
		Write: func(key string) string {
			return "CREATE (:T {title: '" + key + "'})"
		},
		Read: "MATCH (n:T) RETURN n.title AS title",
		Count: func(_ context.Context, key string) (int, error) {
			return g.Int(t, "MATCH (n:T {title: $key}) RETURN count(n) AS n", map[string]any{"key": key}), nil
		},
		Bad:         "SELECT nonsense",
		Constrained: true, Fenced: true, NoUndo: true,
		Sever: lines.sever,
	}
}

type lines struct {
	t     *testing.T
	graph *drevotest.Graph

	mu sync.Mutex
	of map[branches.Session]*drevotest.Line
}

//nolint:contextcheck // as above
func (l *lines) open(context.Context) (branches.Store, error) {
	line := drevotest.NewLine(l.t, l.graph.Cluster().Addr())
	store, err := drevo.Open("s", strings.Replace(l.graph.URL(), l.graph.Cluster().Addr(), line.Addr(), 1), drevo.Options{})
	if err != nil {
		return nil, err
	}
	return &lined{store, line, l}, nil
}

// lined is a store that knows the line of each of its sessions.
type lined struct {
	*drevo.Store
	line *drevotest.Line
	all  *lines
}

func (l *lined) Connect(ctx context.Context) (branches.Session, error) {
	session, err := l.Store.Connect(ctx)
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.all.of[session] = l.line
	return session, err
}

func (l *lines) sever(_ context.Context, session branches.Session) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.of[session]
	if line == nil {
		return errors.New("a session of no line")
	}
	line.Cut()
	return nil
}

// Items of the suite that cannot be played: drevo has no locks, nothing that
// cannot be prepared, no bulk path.
var leftOut = []string{"prepare refused", "locks guard the unit until its end", "rows copied in bulk belong to the branch"}

//nolint:contextcheck // as above
func TestContract(t *testing.T) {
	cluster := drevotest.Own(t)
	g := cluster.Graph(t, "contract")
	install(t, open(t, g, drevo.Options{}))
	h := harness(t, g)
	h.Restart = func(context.Context) error {
		cluster.Restart(t)
		return nil
	}
	left := branchtest.Exercise(t, h)
	for i, item := range left {
		left[i], _, _ = strings.Cut(item, ":")
	}
	if strings.Join(left, ",") != strings.Join(leftOut, ",") {
		t.Errorf("left out %q, want %q", left, leftOut)
	}
}
