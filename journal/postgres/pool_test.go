package postgres_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/postgres"
)

// pastDeadline is a deadline that has passed.
var pastDeadline = time.Unix(1, 0)

// A dead session is replaced in place: its holder keeps its place and gets a
// new connection with the next call.
func TestDeadSessionIsReplacedInPlace(t *testing.T) {
	cluster := pgtest.Server(t)
	_, dsn := installed(t, cluster)
	j := open(t, dsn, journal.Options{Places: 1})
	s := session(t, j)
	rec := active(t, s)
	if n := cluster.Disconnect(t, dsn); n == 0 {
		t.Fatal("nothing was disconnected")
	}
	err := s.Decide(t.Context(), decision(rec))
	if _, refused := errors.AsType[*journal.Conflict](err); err == nil || refused {
		t.Fatalf("Decide over a dead connection: %v", err)
	}
	if state, err := s.Abort(t.Context(), rec.Txn, journal.Forced); err != nil || state != journal.StateAborted {
		t.Fatalf("Abort over the new one: %s, %v", state, err)
	}
}

// A connection that died while it was idle costs no unit.
func TestIdleConnectionsAreAsked(t *testing.T) {
	cluster := pgtest.Server(t)
	_, dsn := installed(t, cluster)
	wall := hlc.NewManual(time.Now())
	j := open(t, dsn, journal.Options{Wall: wall})
	s := session(t, j)
	active(t, s)
	s.Release()
	cluster.Disconnect(t, dsn)
	wall.Advance(2 * time.Second)
	active(t, session(t, j))
}

// What nobody needs any more is closed, and Close leaves nothing behind.
func TestConnectionsAreGivenBack(t *testing.T) {
	cluster := pgtest.Server(t)
	first, dsn := installed(t, cluster)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	wall := hlc.NewManual(time.Now())
	j := open(t, dsn, journal.Options{Wall: wall, MaxDrift: time.Hour})
	var busy []journal.Session
	for range 8 {
		s, err := j.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		active(t, s)
		busy = append(busy, s)
	}
	for _, s := range busy {
		s.Release()
	}
	if n := cluster.Backends(t, dsn); n != 8 {
		t.Fatalf("%d backends for 8 sessions", n)
	}
	for range 3 {
		wall.Advance(3 * time.Minute)
		s, err := j.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		active(t, s)
		s.Release()
	}
	await.Until(t, "idle connections are closed", func() bool { return cluster.Backends(t, dsn) == 1 })

	// An error at every step leaks neither a place nor a connection.
	for range 50 {
		s, err := j.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Decide(t.Context(), journal.Decision{Txn: newTxn(t)}); err == nil {
			t.Fatal("Decide of nothing was acknowledged")
		}
		cluster.Exec(t, dsn, "ALTER TABLE dat_journal RENAME TO hidden")
		if err := s.Create(t.Context(), &journal.Record{Txn: newTxn(t)}); err == nil {
			t.Fatal("Create without a table was acknowledged")
		}
		cluster.Exec(t, dsn, "ALTER TABLE hidden RENAME TO dat_journal")
		s.Release()
	}
	if n := cluster.Backends(t, dsn); n != 1 {
		t.Errorf("%d backends after errors, want 1", n)
	}
	held := session(t, j)
	active(t, held)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	held.Release()
	await.Until(t, "all connections are closed", func() bool { return cluster.Backends(t, dsn) == 0 })
}

// One transaction of the journal is one round trip.
func TestOneRoundTripForEachTransaction(t *testing.T) {
	_, dsn := installed(t, pgtest.Server(t))
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			config, err := pgx.ParseConfig(with(dsn, "default_query_exec_mode", mode))
			if err != nil {
				t.Fatal(err)
			}
			wire := &pgtest.Wire{}
			config.DialFunc = func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
				wire.Conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
				return wire, err
			}
			j, err := postgres.Open("", postgres.Options{ConnConfig: config})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			s := session(t, j)
			if err := s.Decide(t.Context(), decision(active(t, s))); err != nil { // prepares what is prepared
				t.Fatal(err)
			}
			txn := newTxn(t)
			for name, call := range map[string]func() error{
				"S4": func() error { return s.Create(t.Context(), &journal.Record{Txn: newTxn(t)}) },
				"S6 and S7": func() error {
					rec := active(t, s)
					wire.Turns()
					return s.Decide(t.Context(), decision(rec))
				},
				"ABORTED": func() error { // its statements are new
					if _, err := s.Abort(t.Context(), txn, journal.Unforced); err != nil {
						return err
					}
					wire.Turns()
					_, err := s.Abort(t.Context(), txn, journal.Unforced)
					return err
				},
			} {
				wire.Turns()
				if err := call(); err != nil {
					t.Fatal(err)
				}
				if n := wire.Turns(); n != 1 {
					t.Errorf("%s took %d round trips, want 1", name, n)
				}
			}
			s.Release()
		})
	}
}
