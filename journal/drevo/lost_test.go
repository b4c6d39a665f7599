package drevo_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/journal"
)

// A COMMIT that was sent and never answered may have taken effect, and the
// session must be usable for finding out.
func TestLostReplies(t *testing.T) {
	for _, fault := range []struct {
		name    string
		arrives bool
		exits   bool
	}{
		{"commit:before:drop", false, false},
		{"commit:after:drop", true, false},
		{"commit:before:exit", false, true},
		{"commit:after:exit", true, true},
	} {
		t.Run(fault.name, func(t *testing.T) {
			cluster := drevotest.Own(t)
			b := newBed(t, cluster)
			// lose starts the server so that it loses its next COMMIT, of run.
			lose := func(doing string, run func() error) {
				t.Helper()
				cluster.Restart(t, "--fault", fault.name)
				err := run()
				if _, refused := errors.AsType[*journal.Conflict](err); err == nil || refused || !branches.IsUnknown(err) {
					t.Fatalf("%s whose reply was lost: %v, want an error that proves nothing", doing, err)
				}
				if fault.exits {
					cluster.Wait(t)
					cluster.Start(t)
				}
			}
			decided, aborted := b.active(t), b.active(t)

			lost := journal.Record{Txn: newTxn(t)}
			lose("Create", func() error { return b.session.Create(t.Context(), &lost) })
			b.expectAbort(t, lost.Txn, journal.StateAborted)

			lose("Decide", func() error { return b.session.Decide(t.Context(), decision(decided)) })
			want := journal.StateAborted
			if fault.arrives {
				want = journal.StateCommitted
			}
			b.expectAbort(t, decided.Txn, want)

			lose("Abort", func() error {
				_, err := b.session.Abort(t.Context(), aborted.Txn, journal.Forced)
				return err
			})
			err := b.session.Decide(t.Context(), decision(aborted))
			conflict, refused := errors.AsType[*journal.Conflict](err)
			if fault.arrives && (!refused || conflict.Found != journal.StateAborted) || !fault.arrives && err != nil {
				t.Fatalf("Decide after a lost ABORTED that arrived (%t): %v", fault.arrives, err)
			}
		})
	}
}

// A server that was restarted has left only dead connections. What was not sent
// on them is sent again.
func TestRestartWhileOpen(t *testing.T) {
	cluster := drevotest.Own(t)
	b := newBed(t, cluster)
	cluster.Restart(t)
	rec := b.active(t)
	for _, step := range []func() error{
		func() error { return b.session.Prepare(t.Context(), decision(rec)) },
		func() error {
			return b.session.Decide(t.Context(), journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime})
		},
		func() error { return b.journal.Harden(t.Context()) },
		func() error {
			_, err := b.journal.Finish(t.Context(), []branches.TxnID{rec.Txn})
			return err
		},
	} {
		cluster.Restart(t)
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	cluster.Restart(t)
	b.expectState(t, rec.Txn, journal.StateDone)
}

// decisionSize is the size of the record that decides rec, the last that was
// written: drevo logs the whole node, and only the state has another length.
func (b *bed) decisionSize(t *testing.T) int64 {
	t.Helper()
	log, err := os.ReadFile(b.graph.Log())
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(log[:len(log)-1], '\n') + 1
	return int64(len(log) - last + len(journal.StateCommitted) - len(journal.StateActive))
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// The server says that it could not write its log. That is no refusal: what it
// wrote of the record may be all of it but the newline, and a restart then takes
// the decision for made.
func TestFullDisk(t *testing.T) {
	for _, c := range []struct {
		name  string
		short int64 // by how many bytes the record is too long
		want  journal.State
	}{
		{"half of the record", 100, journal.StateAborted},
		{"all but the newline", 1, journal.StateCommitted},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := drevotest.Own(t)
			b := newBed(t, cluster)
			rec := b.active(t)
			b.graph.LimitLog(t, b.decisionSize(t)-c.short)
			err := b.session.Decide(t.Context(), decision(rec))
			if !branches.IsUnknown(err) || b.journal.Classify(err) != branches.StoreFull {
				t.Fatalf("Decide on a full disk: %v, want one that proves nothing, and StoreFull", err)
			}
			if state, err := b.session.Abort(t.Context(), rec.Txn, journal.Forced); err == nil {
				t.Fatalf("Abort on a full disk: %s", state)
			}
			cluster.Restart(t)
			b.expectAbort(t, rec.Txn, c.want)
		})
	}
}

// A decision whose record has lost nothing but its newline is there after a
// restart, and the record behind it shares its line: at the next start drevo drops
// both without a word. Whoever acts on the decision has hardened it before, and
// then the server refuses to start instead.
func TestHardenedDecisionIsNotLostInSilence(t *testing.T) {
	for name, harden := range map[string]func(*testing.T, *bed, branches.TxnID){
		"Harden": func(t *testing.T, b *bed, _ branches.TxnID) {
			t.Helper()
			if err := b.journal.Harden(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"Abort": func(t *testing.T, b *bed, txn branches.TxnID) {
			t.Helper()
			b.expectAbort(t, txn, journal.StateCommitted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := drevotest.Own(t)
			b := newBed(t, cluster)
			rec := b.active(t)
			if err := b.session.Decide(t.Context(), decision(rec)); err != nil {
				t.Fatal(err)
			}
			cluster.Kill(t)
			end := size(t, b.graph.Log()) - 1
			if err := os.Truncate(b.graph.Log(), end); err != nil {
				t.Fatal(err)
			}
			cluster.Start(t)
			b.expectState(t, rec.Txn, journal.StateCommitted)
			harden(t, b, rec.Txn)
			cluster.Kill(t)
			if err := cluster.TryStart(t); err == nil {
				b.expectState(t, rec.Txn, journal.StateCommitted)
				return
			}
			// What docs/journal.md tells the operator to do.
			log, err := os.ReadFile(b.graph.Log())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(log[end:], []byte("{")) {
				t.Fatalf("behind the decision stands %q", log[end:])
			}
			if err := os.WriteFile(b.graph.Log(), slices.Insert(log, int(end), '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
			cluster.Start(t)
			b.expectState(t, rec.Txn, journal.StateCommitted)
		})
	}
}
