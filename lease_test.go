package rhizodat_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/lease"
)

func acquire(t *testing.T, db *sql.DB, name string, fence lease.Fence, opts ...lease.Option) *lease.Lease {
	t.Helper()
	l, err := lease.Acquire(t.Context(), db, name, opts...)
	if err != nil || l.Fence() != fence {
		t.Fatalf("Acquire: %+v, %v, want fence %v", l, err, fence)
	}
	t.Cleanup(func() { _ = l.Release(context.WithoutCancel(t.Context())) })
	return l
}

// lapse makes every lease lapse by the journal's clock.
func (r *rig) lapse(t *testing.T) {
	t.Helper()
	r.cluster.Exec(t, pgtest.Name(r.journal), `UPDATE dat_lease SET expires_at = 0`)
}

// expectFenced wants an abort by a later fence, which no loop runs again.
func expectFenced(t *testing.T, err error, fence, current lease.Fence) {
	t.Helper()
	aborted, ok := errors.AsType[*rhizodat.Aborted](err)
	if !ok || aborted.Kind != rhizodat.Permanent || rhizodat.IsRetryable(err) {
		t.Fatalf("Commit: %v, want *Aborted that is not retryable", err)
	}
	if fenced, ok := errors.AsType[*lease.Fenced](err); !ok || fenced.Fence != fence || fenced.Current != current {
		t.Fatalf("Commit: %v, want fence %v fenced by %v", err, fence, current)
	}
}

// A late commit after a transfer loses its condition, and nothing of it is ever
// readable, however many branches it has.
func TestLateCommitIsFenced(t *testing.T) {
	for name, stores := range map[string][]string{"two branches": {"a", "b"}, "one branch": {"b"}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			db := r.open(t)
			insert := func(l *lease.Lease, id int) *sql.Tx {
				t.Helper()
				tx := begin(t, rhizodat.WithLease(t.Context(), l), db)
				for _, store := range stores {
					exec(t, tx, "store:"+store+" INSERT INTO item (id) VALUES ($1)", id)
				}
				return tx
			}
			first := acquire(t, db, "p", 1)
			late := insert(first, 1)
			r.lapse(t)
			second := acquire(t, db, "p", 2)
			if err := insert(second, 2).Commit(); err != nil {
				t.Fatal(err)
			}
			expectFenced(t, late.Commit(), 1, 2)
			if len(stores) == 2 {
				r.want(t, "2", "2")
			} else {
				r.want(t, "", "2")
			}
			r.states(t, "ABORTED=1 DONE=1")
			if got := r.cluster.Strings(t, pgtest.Name(r.journal), `SELECT lease || ' ' || fence || ' ' || state FROM dat_journal ORDER BY fence`); strings.Join(got, ", ") != "p 1 ABORTED, p 2 DONE" {
				t.Errorf("records: %v", got)
			}
			// The holder that was replaced cannot even begin, once it knows.
			if err := first.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := db.BeginTx(rhizodat.WithLease(t.Context(), first), nil); !errors.Is(err, lease.ErrReleased) {
				t.Errorf("BeginTx under a lease that is over: %v", err)
			}
		})
	}
}

// Run does not try again what is fenced.
func TestRunUnderALease(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	first := acquire(t, db, "p", 1)
	run := func(l *lease.Lease, id int, meanwhile func()) (tries int, out rhizodat.Outcome, err error) {
		out, err = rhizodat.Run(rhizodat.WithLease(t.Context(), l), db, rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
			tries++
			_, err := tx.ExecContext(ctx, "INSERT INTO item (id) VALUES ($1)", id)
			meanwhile()
			return err
		})
		return tries, out, err
	}
	if tries, out, err := run(first, 1, func() {}); err != nil || tries != 1 || !out.Journaled {
		t.Errorf("%d tries, %+v, %v", tries, out, err)
	}
	tries, _, err := run(first, 2, func() {
		r.lapse(t)
		acquire(t, db, "p", 2)
	})
	expectFenced(t, err, 1, 2)
	if tries != 1 {
		t.Errorf("a fenced unit was run %d times", tries)
	}
	r.want(t, "1", "")
}

// One store, its own database, and a journal in a file: the branch is prepared
// and decided there all the same.
func TestLeaseWithOneStore(t *testing.T) {
	cluster := pgtest.Server(t)
	url := cluster.Database(t, "one")
	cluster.Exec(t, pgtest.Name(url), `CREATE TABLE item (id int PRIMARY KEY)`)
	dsn := "pg=" + url + " journal=file://" + filepath.Join(t.TempDir(), "journal.db")
	if err := connector(t, dsn, nil).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := openDSN(t, dsn)
	db.SetMaxOpenConns(1)
	l := acquire(t, db, "p", 1, lease.WithHolder("a"))
	tx := begin(t, rhizodat.WithLease(t.Context(), l), db)
	exec(t, tx, "INSERT INTO item VALUES (1)")
	// The pool's only connection is taken: the journal was asked for once.
	second := acquire(t, db, "p", 2, lease.WithHolder("a"))
	expectFenced(t, tx.Commit(), 1, 2)
	for i, read := range []string{"SELECT 1", "INSERT INTO item VALUES (2)"} {
		tx = begin(t, rhizodat.WithLease(t.Context(), second), db)
		exec(t, tx, read)
		if err := tx.Commit(); err != nil {
			t.Fatalf("unit %d: %v", i, err)
		}
	}
	if got := cluster.Strings(t, pgtest.Name(url), `SELECT id::text FROM item`); len(got) != 1 || got[0] != "2" {
		t.Errorf("items %v, want 2", got)
	}
	if left := cluster.Prepared(t, pgtest.Name(url)); len(left) > 0 {
		t.Errorf("left prepared: %v", left)
	}
}

// Also where the lease's row is in the store's own database a transaction of one
// branch is decided by the journal: the store's session and the journal's may be led
// to two servers, a primary and its copy, that say the same of themselves.
func TestLeaseInTheStoresDatabase(t *testing.T) {
	cluster := pgtest.Server(t)
	url := cluster.Database(t, "one")
	cluster.Exec(t, pgtest.Name(url), `CREATE TABLE item (id int PRIMARY KEY)`)
	dsn := "pg=" + url + " journal=" + url
	if err := connector(t, dsn, nil).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := openDSN(t, dsn)
	for i, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		first := acquire(t, db, "p", lease.Fence(2*i+1), lease.WithHolder("a"))
		insert := func(l *lease.Lease, id int) *sql.Tx {
			t.Helper()
			tx, err := db.BeginTx(rhizodat.WithLease(t.Context(), l), &sql.TxOptions{Isolation: level})
			if err != nil {
				t.Fatal(err)
			}
			exec(t, tx, "INSERT INTO item VALUES ($1)", id)
			return tx
		}
		late := insert(first, -1)
		second := acquire(t, db, "p", lease.Fence(2*i+2), lease.WithHolder("a"))
		good := insert(second, i)
		expectFenced(t, late.Commit(), first.Fence(), second.Fence())
		if err := good.Commit(); err != nil {
			t.Errorf("%s: %v", level, err)
		}
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(cluster.Strings(t, pgtest.Name(url), `SELECT id::text FROM item ORDER BY id`), " "); got != "0 1 2" {
		t.Errorf("items %q, want 0 1 2", got)
	}
	if got := strings.Join(cluster.Strings(t, pgtest.Name(url), `SELECT state || '=' || count(*) FROM dat_journal GROUP BY state ORDER BY state`), " "); got != "ABORTED=3 DONE=3" {
		t.Errorf("records %q, want ABORTED=3 DONE=3", got)
	}
	if left := cluster.Prepared(t, pgtest.Name(url)); len(left) > 0 {
		t.Errorf("left prepared: %v", left)
	}
}

// A fence says nothing in another journal.
func TestLeaseOfAnotherJournal(t *testing.T) {
	r, other := newRig(t), newRig(t)
	db := r.open(t)
	l := acquire(t, db, "p", 1)
	if _, err := other.open(t).BeginTx(rhizodat.WithLease(t.Context(), l), nil); err == nil || !strings.Contains(err.Error(), "another journal") {
		t.Errorf("BeginTx in another deployment: %v", err)
	}
	tx := begin(t, rhizodat.WithLease(t.Context(), l), r.open(t)) // another pool, the same journal
	exec(t, tx, "INSERT INTO item (id) VALUES (1)")
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	none := openDSN(t, "a="+r.a)
	if _, err := lease.Acquire(t.Context(), none, "p"); !errors.Is(err, journal.ErrNone) {
		t.Errorf("Acquire without a journal: %v", err)
	}
	if _, err := none.BeginTx(rhizodat.WithLease(t.Context(), l), nil); !errors.Is(err, journal.ErrNone) {
		t.Errorf("BeginTx without a journal: %v", err)
	}
	if _, err := db.BeginTx(rhizodat.WithLease(t.Context(), nil), nil); err == nil || !strings.Contains(err.Error(), "nil") {
		t.Errorf("BeginTx under no lease: %v", err)
	}
}

// A holder that is stopped past its expiry, and resumed when another has
// committed, gets Fenced and leaves no row anywhere.
func TestStoppedHolder(t *testing.T) {
	if dsn := os.Getenv("RHIZODAT_TEST_HOLDER"); dsn != "" {
		stoppedHolder(t, dsn)
		return
	}
	r := newRig(t)
	child := program(t, "^TestStoppedHolder$", "RHIZODAT_TEST_HOLDER="+r.dsn)
	child.expect(t, "holding 1")
	if err := child.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	db := r.open(t)
	var l *lease.Lease
	await.UntilSaid(t, func() (ok bool) {
		var err error
		l, err = lease.Acquire(t.Context(), db, "p")
		return err == nil
	}, func() string { return "the lease did not lapse" })
	defer l.Release(t.Context())
	tx := begin(t, rhizodat.WithLease(t.Context(), l), db)
	exec(t, tx, "INSERT INTO item (id) VALUES (2)")
	exec(t, tx, "store:b INSERT INTO item (id) VALUES (2)")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := child.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	child.say(t, "commit")
	child.expect(t, "fenced true retryable false lease over true")
	child.end(t)
	r.want(t, "2", "2")
	r.states(t, "ABORTED=1 DONE=1")
}

// stoppedHolder is the process that is stopped.
func stoppedHolder(t *testing.T, dsn string) {
	t.Helper()
	db := openDSN(t, dsn)
	l, err := lease.Acquire(t.Context(), db, "p", lease.WithTTL(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	tx := begin(t, rhizodat.WithLease(t.Context(), l), db)
	exec(t, tx, "INSERT INTO item (id) VALUES (1)")
	exec(t, tx, "store:b INSERT INTO item (id) VALUES (1)")
	fmt.Println("holding", l.Fence())
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	err = tx.Commit()
	var fenced *lease.Fenced
	fmt.Println("fenced", errors.As(err, &fenced), "retryable", rhizodat.IsRetryable(err), "lease over", l.Context().Err() != nil)
}

// process is another run of this test program.
type process struct {
	cmd  *osexec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	text strings.Builder
}

func program(t *testing.T, test string, env ...string) *process {
	t.Helper()
	p := &process{cmd: osexec.CommandContext(t.Context(), os.Args[0], "-test.run="+test, "-test.count=1")}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

func (p *process) expect(t *testing.T, want string) {
	t.Helper()
	for {
		line, err := p.out.ReadString('\n')
		p.text.WriteString(line)
		if strings.TrimSpace(line) == want {
			return
		}
		if err != nil {
			t.Fatalf("the process did not say %q: %v\n%s", want, err, p.text.String())
		}
	}
}

func (p *process) say(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		t.Fatal(err)
	}
}

func (p *process) end(t *testing.T) {
	t.Helper()
	_, _ = io.Copy(io.Discard, p.out)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the process: %v", err)
	}
}

// A pool that is closed takes its leases along: nobody renews them any more.
func TestLeaseEndsWithItsPool(t *testing.T) {
	r := newRig(t)
	db := openDSN(t, r.dsn)
	l, err := lease.Acquire(t.Context(), db, "p", lease.WithTTL(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	<-l.Context().Done()
	if cause := context.Cause(l.Context()); !errors.Is(cause, journal.ErrClosed) && !errors.Is(cause, lease.ErrLapsed) {
		t.Errorf("the lease ended by %v", cause)
	}
	other := r.open(t)
	await.UntilSaid(t, func() bool {
		next, err := lease.Acquire(t.Context(), other, "p", lease.WithTTL(time.Second))
		return err == nil && next.Fence() == 2
	}, func() string { return "nobody else got it" })
}
