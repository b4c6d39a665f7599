package drevo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

var _ branches.Examiner = (*Store)(nil)

// Sizes from which an examination speaks. A transaction copies the top of the graph
// at its first write, and its statements look at every node.
const (
	manyNodes   = 100_000
	tooManyRows = 1_000_000
)

// sweepTick is how often drevo looks for prepared transactions over its timeout.
const sweepTick = 10 * time.Second

// longPrepared is an age at which a prepared transaction is an obstacle, whose fence
// refuses every write of the graph.
const longPrepared = time.Minute

// Examine looks at the set-up. An error is one of asking, not a finding.
func (s *Store) Examine(ctx context.Context) ([]branches.Finding, error) {
	findings := []branches.Finding{s.examineTimeout()}
	for _, look := range []func(context.Context) (branches.Finding, error){
		s.examineServer, s.examineNodes, s.examineSize, s.examineFence,
	} {
		finding, err := look(ctx)
		if err != nil {
			return nil, s.fail("examine store", err)
		}
		findings = append(findings, finding)
	}
	return findings, nil
}

// examineServer looks at what the server says it is. Over Bolt drevo says no more
// than its name; that its fence is an old one shows when it is met.
func (s *Store) examineServer(ctx context.Context) (branches.Finding, error) {
	session := s.control.Session(ctx)
	defer func() { _ = undoing(ctx, session)() }()
	result, err := session.Run(ctx, "RETURN 1", nil)
	if err != nil {
		return branches.Finding{}, err
	}
	summary, err := result.Consume(ctx)
	if err != nil {
		return branches.Finding{}, err
	}
	f := branches.Finding{Check: "server", Text: summary.Server().Agent()}
	switch {
	case !strings.Contains(f.Text, "drevo"):
		f.Severity, f.Way = branches.SeverityWarning, "this store is made for drevo; other servers have no prepared transactions"
	case s.stopped.Load():
		f.Severity, f.Text = branches.SeverityWarning, f.Text+" refuses under its fence with LockClientStopped, as old builds do"
		f.Way = "use a newer drevo: other clients take that code for a final one"
	}
	return f, nil
}

func (s *Store) examineNodes(ctx context.Context) (branches.Finding, error) {
	f := branches.Finding{Check: "nodes of rhizodat"}
	meta, err := s.Meta(ctx)
	if errors.Is(err, branches.ErrNotInstalled) {
		f.Severity, f.Text, f.Way = branches.SeverityError, "graph "+s.target.Graph+" has no DatMeta node", "run rhizorecover init with the same DSN"
		return f, nil
	}
	f.Text = "store " + meta.StoreID
	if meta.JournalID == "" {
		f.Severity, f.Text = branches.SeverityNote, f.Text+", of no journal yet"
	}
	return f, err
}

func (s *Store) examineSize(ctx context.Context) (branches.Finding, error) {
	f := branches.Finding{Check: "size of the graph"}
	nodes, err := s.number(ctx, "MATCH (n) RETURN count(n)")
	if err != nil {
		return f, err
	}
	markers, err := s.number(ctx, "MATCH (n:DatApplied) RETURN count(n)")
	if err != nil {
		return f, err
	}
	f.Text = fmt.Sprintf("%d nodes, %d of them markers", nodes, markers)
	const way = "keep graphs small: split this one, and let rhizorecover compact remove markers"
	switch {
	case nodes > tooManyRows:
		f.Severity, f.Way = branches.SeverityWarning, way
	case nodes > manyNodes:
		f.Severity, f.Way = branches.SeverityNote, way
	}
	return f, nil
}

func (s *Store) number(ctx context.Context, query string) (int64, error) {
	rows, err := s.control.Read(ctx, query, nil)
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return 0, errors.New("a count has another form than one number")
	}
	n, ok := rows[0][0].(int64)
	if !ok {
		return 0, errors.New("a count has another form than one number")
	}
	return n, nil
}

// examineFence looks for what is prepared.
func (s *Store) examineFence(ctx context.Context) (branches.Finding, error) {
	f := branches.Finding{Check: "prepared transactions", Text: "none"}
	all, err := s.held(ctx)
	if err != nil || len(all) == 0 {
		return f, err
	}
	h := all[0] // a graph has one at most
	age := s.opts.Wall.Now().Sub(h.since).Round(time.Second)
	f.Text = fmt.Sprintf("%q with %d writes, for %s: every other write of the graph is refused", h.gid, h.writes, age)
	f.Severity = branches.SeverityNote
	if _, err := branches.ParseGID(h.gid); err != nil {
		f.Severity, f.Text = branches.SeverityWarning, f.Text+"; it is not of rhizodat"
		f.Way = "ask whoever prepared it to resolve it"
	} else if age > longPrepared {
		f.Severity, f.Way = branches.SeverityWarning, "run rhizorecover: it commits or rolls back what nobody has finished"
	}
	return f, nil
}

// examineTimeout compares the server's timeout with how long a decided branch may
// stay prepared. drevo rolls back what is over it, decided or not.
func (s *Store) examineTimeout() branches.Finding {
	f := branches.Finding{Check: "timeout of prepared transactions"}
	timeout, need := s.opts.PreparedTimeout, 2*s.opts.Patience+sweepTick
	switch {
	case timeout == 0:
		f.Severity = branches.SeverityNote
		f.Text = "not known: Bolt does not tell DREVO_PREPARED_TX_TIMEOUT_SECS; unset on the server it never strikes"
		f.Way = "if it is set there, set it to more than " + need.String() + " and name it with " + keyPreparedTimeout + "= in the URL"
	case timeout < need:
		f.Severity = branches.SeverityWarning
		f.Text = fmt.Sprintf("%s, and a decided branch may wait for up to %s: drevo may roll back what was decided", timeout, s.opts.Patience)
		f.Way = "raise DREVO_PREPARED_TX_TIMEOUT_SECS above " + need.String() + ", or leave it unset"
	default:
		f.Text = timeout.String()
	}
	return f
}
