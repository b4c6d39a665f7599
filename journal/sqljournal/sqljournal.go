// Package sqljournal is the one implementation of a journal in a SQL database.
//
// The kinds of database differ in a [Dialect] (what they spell differently) and
// a [Pool] (how a transaction travels); everything that makes a journal a
// journal is here, once:
//
//   - each change of a record is one conditional statement, and the count of
//     the rows it changed is the answer. 1 is acknowledged, 0 is refused, and
//     any other count is an error, never a success;
//   - the compare of each compare-and-set is made from the transition table of
//     package journal;
//   - durability is chosen for each transaction (design/protocol.md, section 4).
//
// docs/journal.md is the format.
package sqljournal

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/internal/places"
)

// Layout is the version of the tables that this package writes.
const Layout = 3

// Journal is a journal in a SQL database. It is safe for concurrent use.
type Journal struct {
	pool    Pool
	dialect Dialect
	opts    journal.Options

	// opened is set once the first connection has fixed the tables' names and
	// has found a layout that this program knows.
	opened atomic.Pointer[opened]

	// The two writes that each commit waits for.
	records, decisions group

	// proving lets one goroutine at a time probe the conditional writes.
	proving chan struct{}
	proved  bool
}

type opened struct {
	names Names
	q     *statements
}

var (
	_ journal.Journal     = (*Journal)(nil)
	_ journal.Registry    = (*Journal)(nil)
	_ journal.Compactor   = (*Journal)(nil)
	_ journal.Timekeeper  = (*Journal)(nil)
	_ journal.Adopter     = (*Journal)(nil)
	_ journal.Conditional = (*Journal)(nil)
	_ branches.Installer  = (*Journal)(nil)
	_ branches.Classifier = (*Journal)(nil)
	_ branches.Placer     = (*Journal)(nil)
)

// New makes a journal. It does not connect.
func New(pool Pool, dialect Dialect, opts journal.Options) *Journal {
	j := &Journal{pool: pool, dialect: dialect, opts: opts.WithDefaults(), proving: make(chan struct{}, 1)}
	j.records = group{pool: pool, purpose: places.Records, mode: Unforced, kind: j.Classify}
	j.decisions = group{pool: pool, purpose: places.Decisions, mode: Forced, kind: j.Classify}
	return j
}

// Session implements journal.Journal.
func (j *Journal) Session(ctx context.Context) (journal.Session, error) {
	conn, err := j.pool.Take(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("rhizodat: take journal session: %w", err)
	}
	return &session{j: j, conn: conn}, nil
}

// Classify implements branches.Classifier: it tells whether a unit that failed
// before its decision is worth re-running.
func (j *Journal) Classify(err error) branches.Kind {
	var own interface{ Kind() branches.Kind }
	var conflict *journal.Conflict
	switch {
	case errors.As(err, &own):
		return own.Kind()
	case errors.As(err, &conflict), errors.Is(err, branches.ErrNotInstalled), errors.Is(err, context.Canceled):
		return branches.Permanent
	case branches.DeviceFull(err):
		return branches.StoreFull
	case errors.Is(err, context.DeadlineExceeded):
		return branches.Transient
	}
	return j.dialect.Classify(err)
}

// Close implements journal.Journal.
func (j *Journal) Close() error {
	if err := j.pool.Close(); err != nil {
		return fmt.Errorf("rhizodat: close journal: %w", err)
	}
	return nil
}

// ready connects conn, and examines the journal once. The names of tables stay
// what they were then, whatever search_path says later.
func (j *Journal) ready(ctx context.Context, conn Conn) (*statements, error) {
	if err := conn.Ready(ctx); err != nil {
		return nil, err
	}
	if o := j.opened.Load(); o != nil {
		return o.q, nil
	}
	names, err := j.dialect.Names(ctx, conn)
	if err != nil {
		return nil, err
	}
	q := newStatements(names, j.dialect.Spelling(names))
	if err := j.examine(ctx, conn, q); err != nil {
		return nil, err
	}
	j.opened.CompareAndSwap(nil, &opened{names, q})
	return j.opened.Load().q, nil
}

// examine refuses tables that this program cannot use.
func (j *Journal) examine(ctx context.Context, conn Conn, q *statements) error {
	found, err := layoutOf(func(s Stmt) (Result, error) { return single(ctx, conn, Read, s) }, q)
	if err != nil {
		return err
	}
	if found == 0 {
		return branches.ErrNotInstalled
	}
	if found != Layout {
		return &journal.Layout{Found: found, Known: Layout}
	}
	return nil
}

// layoutOf is 0 for nothing there, and 1 for the bare table of the seeds, which
// has no row that says so.
func layoutOf(run func(Stmt) (Result, error), q *statements) (int, error) {
	res, err := run(Ask(q.Tables))
	if err != nil {
		return 0, err
	}
	row, err := oneRow(res)
	if err != nil {
		return 0, err
	}
	meta, err := asInt[int](row[0])
	if err != nil || meta == 0 {
		bare, bareErr := asInt[int](row[1])
		return bare, errors.Join(err, bareErr)
	}
	if res, err = run(Ask(q.layout)); err != nil {
		return 0, err
	}
	if row, err = oneRow(res); err != nil {
		return 0, err
	}
	return asInt[int](row[0])
}

// with runs f over a place of its own, for what is not part of a commit.
func (j *Journal) with(ctx context.Context, f func(conn Conn, q *statements) error) error {
	conn, err := j.pool.Take(ctx, true)
	if err != nil {
		return err
	}
	defer conn.Release()
	q, err := j.ready(ctx, conn)
	if err != nil {
		return err
	}
	return f(conn, q)
}

// single runs one statement in a transaction of its own.
func single(ctx context.Context, conn Conn, m Mode, s Stmt) (Result, error) {
	res, err := conn.Run(ctx, m, s)
	if err != nil {
		return Result{}, err
	}
	if len(res) != 1 {
		return Result{}, fmt.Errorf("the database answered %d statements of 1", len(res))
	}
	return res[0], nil
}

// hit reads the answer of a compare-and-set of one record.
func hit(res Result) (bool, error) {
	switch res.Affected {
	case 0:
		return false, nil
	case 1:
		return true, nil
	}
	// A key that is not unique, a rule, a trigger: whatever it was, it is not
	// the answer to a compare-and-set.
	return false, fmt.Errorf("%d rows changed where a record is one row", res.Affected)
}
