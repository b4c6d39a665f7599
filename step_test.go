package rhizodat_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/step"
)

var stepKey = step.Key{Execution: "order 7", Label: "book", Input: 5}

// booking is a step's effect: one row in each of the stores.
func booking(stores ...string) func(context.Context, *sql.Tx) (string, error) {
	return func(ctx context.Context, tx *sql.Tx) (string, error) {
		for _, store := range stores {
			if _, err := tx.ExecContext(ctx, "store:"+store+" INSERT INTO item (id) VALUES (1)"); err != nil {
				return "", err
			}
		}
		return "booked", nil
	}
}

// steps shows the journal's steps: label, whether it has a value.
func (r *rig) steps(t *testing.T, want string) {
	t.Helper()
	got := strings.Join(r.cluster.Strings(t, pgtest.Name(r.journal),
		`SELECT label || ' ' || coalesce(convert_from(decode(value, 'base64'), 'UTF8'), 'pending') FROM dat_step ORDER BY label`), ", ")
	if got != want {
		t.Errorf("the journal holds the steps %q, want %q", got, want)
	}
}

// takeOver makes every claim another's.
func (r *rig) takeOver(t *testing.T) {
	t.Helper()
	r.cluster.Exec(t, pgtest.Name(r.journal), `UPDATE dat_step SET holder = 'other', token = 'other'`)
}

// A step whose effect is a transaction takes place exactly once, however many
// branches it has: S7 records the value.
func TestStepIsATransaction(t *testing.T) {
	for name, stores := range map[string][]string{"two branches": {"a", "b"}, "one branch": {"a"}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			db := r.open(t)
			for range 3 {
				v, err := step.DoTx(t.Context(), db, stepKey, booking(stores...)) // a second run would violate the key
				if v != "booked" || err != nil {
					t.Fatalf("got %q, %v", v, err)
				}
			}
			want := map[string]string{"a": "", "b": ""}
			for _, store := range stores {
				want[store] = "1"
			}
			r.want(t, want["a"], want["b"])
			r.states(t, "DONE=1")
			r.steps(t, `book "booked"`)
		})
	}
}

// Where nothing took effect the step is free again, at once.
func TestStepThatIsAborted(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	r.cluster.Exec(t, pgtest.Name(r.b), `ALTER TABLE item ADD CONSTRAINT late UNIQUE (name) DEFERRABLE INITIALLY DEFERRED;
		INSERT INTO item (id, name) VALUES (9, 'taken')`)
	broken := errors.New("broken")
	for name, end := range map[string]func(context.Context, *sql.Tx) error{
		"by the effect": func(context.Context, *sql.Tx) error { return broken },
		"by the commit": func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "store:b INSERT INTO item (id, name) VALUES (2, 'taken')")
			return err
		},
	} {
		_, err := step.DoTx(t.Context(), db, stepKey, func(ctx context.Context, tx *sql.Tx) (string, error) {
			if _, err := booking("a")(ctx, tx); err != nil {
				return "", err
			}
			return "", end(ctx, tx)
		})
		aborted, byCommit := errors.AsType[*rhizodat.Aborted](err)
		byCommit = byCommit && aborted.Kind == rhizodat.Constraint
		if err != broken && !byCommit { //nolint:errorlint // the effect's own
			t.Errorf("%s: got %v", name, err)
		}
		r.want(t, "", "9")
		r.steps(t, "")
	}
	if v, err := step.DoTx(t.Context(), db, stepKey, booking("a", "b")); v != "booked" || err != nil {
		t.Errorf("the next caller got %q, %v", v, err)
	}
	r.want(t, "1", "1 9")
}

// An owner that was replaced commits nothing: its unit is aborted by the decision.
func TestStepThatWasTakenOver(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	_, err := step.DoTx(t.Context(), db, stepKey, func(ctx context.Context, tx *sql.Tx) (string, error) {
		v, err := booking("a", "b")(ctx, tx)
		r.takeOver(t) //nolint:contextcheck // by somebody else
		return v, err
	})
	aborted, ok := errors.AsType[*rhizodat.Aborted](err)
	superseded, found := errors.AsType[*step.Superseded](err)
	if !ok || !found || aborted.Kind != rhizodat.Permanent || superseded.Key.Label != "book" || rhizodat.IsRetryable(err) {
		t.Errorf("got %v, want *Aborted with *Superseded", err)
	}
	r.want(t, "", "")
	r.states(t, "ABORTED=1")
	r.steps(t, "book pending")
}

// 64 callers in 4 processes: one effect, equal values. With the owner killed
// between effect and record: one more, under the same idempotency key.
func TestStepOverProcesses(t *testing.T) {
	if dsn := os.Getenv("RHIZODAT_TEST_CALLERS"); dsn != "" {
		callers(t, dsn)
		return
	}
	for name, kill := range map[string]bool{"alive": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.cluster.Exec(t, pgtest.Name(r.a), `CREATE TABLE asked (id serial, key text)`)
			env := []string{"RHIZODAT_TEST_CALLERS=" + r.dsn}
			var processes []*process
			if kill {
				owner := program(t, "^TestStepOverProcesses$", append(env, "RHIZODAT_TEST_STAY=1")...)
				owner.expect(t, "asked")
				processes = append(processes, owner)
			}
			for range 4 {
				processes = append(processes, program(t, "^TestStepOverProcesses$", env...))
			}
			effects := 1
			if kill {
				if err := processes[0].cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = processes[0].cmd.Wait()
				processes, effects = processes[1:], 2
			}
			for _, p := range processes {
				p.expect(t, "16 callers got paid")
				p.end(t)
			}
			keys := r.cluster.Strings(t, pgtest.Name(r.a), `SELECT DISTINCT key FROM asked`)
			if n := r.cluster.Int(t, pgtest.Name(r.a), `SELECT count(*) FROM asked`); int(n) != effects || len(keys) != 1 || keys[0] == "" {
				t.Errorf("%d effects under the keys %v, want %d under one", n, keys, effects)
			}
			r.steps(t, `book "paid"`)
		})
	}
}

// callers is one of the processes.
func callers(t *testing.T, dsn string) {
	t.Helper()
	db := openDSN(t, dsn)
	stay := os.Getenv("RHIZODAT_TEST_STAY") != ""
	n := 16
	if stay {
		n = 1
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			v, err := step.Do(t.Context(), db, stepKey, func(ctx context.Context) (string, error) {
				id, _ := step.IdempotencyKey(ctx)
				if _, err := db.ExecContext(ctx, "store:a INSERT INTO asked (key) VALUES ($1)", id); err != nil {
					return "", err
				}
				if stay {
					fmt.Println("asked")
					<-ctx.Done() // until it is killed
				}
				return "paid", nil
			}, step.WithTTL(time.Second))
			if v != "paid" || err != nil {
				t.Errorf("got %q, %v", v, err)
			}
		})
	}
	wg.Wait()
	if !t.Failed() {
		fmt.Println("16 callers got paid")
	}
}

// A journal in a file serves as well, over one connection.
func TestStepWithAJournalInAFile(t *testing.T) {
	cluster := pgtest.Server(t)
	url := cluster.Database(t, "one")
	cluster.Exec(t, pgtest.Name(url), `CREATE TABLE item (id int PRIMARY KEY)`)
	dsn := "a=" + url + " journal=file://" + filepath.Join(t.TempDir(), "journal.db")
	if err := connector(t, dsn, nil).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := openDSN(t, dsn)
	db.SetMaxOpenConns(1)
	for range 2 {
		if v, err := step.DoTx(t.Context(), db, stepKey, booking("a")); v != "booked" || err != nil {
			t.Fatalf("got %q, %v", v, err)
		}
	}
	if got := cluster.Int(t, pgtest.Name(url), `SELECT count(*) FROM item`); got != 1 {
		t.Errorf("%d rows", got)
	}
}
