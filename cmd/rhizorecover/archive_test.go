package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/archive"
	"github.com/rhizodat/rhizodat-go/archive/s3bucket"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/s3gateway"
	"github.com/rhizodat/rhizodat-go/internal/s3test"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/sqljournal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// Records leave the journal for the archive, and can be looked up there.
func TestArchive(t *testing.T) {
	r := installed(t)
	decided, undecided := r.leave(t, true), r.leave(t, false)
	r.older(t, time.Hour)
	if got := call(t, r.dsn, "", "once"); got.code != exitOK {
		t.Fatalf("once: exit %d: %s%s", got.code, got.out, got.err)
	}
	root := t.TempDir()
	where := "--archive=file://" + root
	if got := call(t, "", "", "archive", "list", where); got.code != exitOK || !strings.Contains(got.out, "nothing was ever pushed") {
		t.Errorf("list of nothing: %+v", got)
	}
	if got := call(t, r.dsn, "", "compact", "--retain=1ns", where); got.code != exitOK || !strings.Contains(got.out, "removed 2 records") {
		t.Fatalf("compact: %+v", got)
	}
	if n := r.cluster.Int(t, r.journal, "SELECT count(*) FROM dat_journal"); n != 0 {
		t.Errorf("the journal still holds %d records", n)
	}
	var m archive.Manifest
	if got := call(t, "", "", "archive", "list", where, "--json"); json.Unmarshal([]byte(got.out), &m) != nil || len(m.Parts) != 1 || m.Parts[0].Records != 2 {
		t.Fatalf("list: %+v", got)
	}
	if got := call(t, "", "", "archive", "list", where); !strings.Contains(got.out, m.Parts[0].Name) {
		t.Errorf("list: %+v", got)
	}
	for txn, state := range map[string]string{decided.String(): `"DONE"`, undecided.String(): `"ABORTED"`} {
		got := call(t, "", "", "archive", "show", txn, where)
		if got.code != exitOK || !strings.Contains(got.out, txn) || !strings.Contains(got.out, state) {
			t.Errorf("show: %+v, want %s", got, state)
		}
	}
	if got := call(t, "", "", "archive", "show", "01940000-0000-7000-8000-000000000001", where); got.code != exitError || !strings.Contains(got.err, "no record of") {
		t.Errorf("show of another: %+v", got)
	}
	if got := call(t, "", "", "archive", "verify", where); got.code != exitOK || !strings.HasPrefix(got.out, "1 parts are whole, with 2 records") {
		t.Errorf("verify: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(root, m.Parts[0].Name), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := call(t, "", "", "archive", "verify", where, "--json"); got.code != exitPerson || !strings.Contains(got.out, `"damage"`) {
		t.Errorf("verify of damage: %+v", got)
	}
}

// Where the archive cannot be written, nothing leaves the journal.
func TestArchiveThatRefuses(t *testing.T) {
	r := installed(t)
	r.leave(t, true)
	r.older(t, time.Hour)
	if got := call(t, r.dsn, "", "once"); got.code != exitOK {
		t.Fatalf("once: %+v", got)
	}
	root := t.TempDir()
	foreign := `{"version":1,"journal":"another","parts":[]}`
	if err := os.WriteFile(filepath.Join(root, "manifest.json"), []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "manifest.json")
	for url, want := range map[string]string{
		"file://" + root:            "it holds the records of journal another",
		"file://" + file:            "probe archive's bucket",
		"ftp://x":                   "neither an s3:// nor a file:// URL",
		"s3://k:fixture-secret@b/p": "holds no credentials",
	} {
		got := call(t, r.dsn, "", "compact", "--retain=1ns", "--archive="+url)
		if got.code == exitOK || !strings.Contains(got.err, want) || strings.Contains(got.err, "fixture-secret") {
			t.Errorf("compact to %s: %+v, want %q", url, got, want)
		}
	}
	if n := r.cluster.Int(t, r.journal, "SELECT count(*) FROM dat_journal"); n != 1 {
		t.Errorf("the journal holds %d records, want the one that could not be archived", n)
	}
}

// watched is a journal that looks, before it removes records, whether the
// archive's manifest names them.
type watched struct {
	*sqljournal.Journal
	t       *testing.T
	look    *archive.Archive
	removed *atomic.Int64
}

func (w watched) Remove(ctx context.Context, txns []branches.TxnID) (int, error) {
	for _, txn := range txns {
		if _, err := w.look.Find(ctx, txn); err != nil {
			w.t.Errorf("%s is about to leave the journal: %v", txn, err)
		}
	}
	n, err := w.Journal.Remove(ctx, txns)
	w.removed.Add(int64(n))
	return n, err
}

// Two machines compact one journal into one bucket of a real server, twenty
// rounds each, through 412, 409, 404, 503 and lost replies: nothing leaves the
// journal before the manifest names it, and the manifest names every part once.
func TestTwoMachinesArchive(t *testing.T) {
	const rounds, each = 20, 3
	r := installed(t)
	g := s3test.Server(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s3gateway.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", g.Secret())
	front, bucket := g.Front(t), g.Bucket(t, "archive")
	where := "s3://" + bucket + "/prod?region=us-east-1&path_style=true&endpoint="
	look := openedArchive(t, where+g.Endpoint(), archive.Options{})
	own, ok := r.config.Journal.(*sqljournal.Journal)
	if !ok {
		t.Fatalf("the journal is a %T", r.config.Journal)
	}
	var removed atomic.Int64
	cfg := r.config
	cfg.Journal = watched{own, t, look, &removed}
	var machines sync.WaitGroup
	var again func()
	for i := range 2 {
		to := openedArchive(t, where+front.URL, archive.Options{Journal: "j", Pusher: fmt.Sprint(i), Stalled: 50})
		worker, err := recovery.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		again = func() { compacts(t, worker, to) }
		machines.Go(func() {
			for range rounds {
				aborted(t, own, each)
				compacts(t, worker, to)
			}
		})
	}
	front.Set(s3test.Storm())
	machines.Wait()
	front.Set(nil)
	await.Until(t, "an empty journal", func() bool { // a record of this very millisecond is not past retain yet
		again()
		return r.cluster.Int(t, r.journal, "SELECT count(*) FROM dat_journal") == 0
	})
	if removed.Load() != 2*rounds*each {
		t.Errorf("%d records were removed, want %d", removed.Load(), 2*rounds*each)
	}
	m, err := look.Manifest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, part := range m.Parts {
		names = append(names, part.Name)
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("the manifest names a part twice: %v", names)
	}
	v, err := look.Verify(t.Context(), nil)
	if err != nil || v.Records != 2*rounds*each || len(v.Damage) != 0 {
		t.Errorf("Verify: %+v, %v, want %d records", v, err, 2*rounds*each)
	}
	for _, kind := range []string{"412", "409", "404", "503", "lost"} {
		if front.Injected()[kind] == 0 {
			t.Errorf("nothing of %s was injected: %v", kind, front.Injected())
		}
	}
	t.Logf("%d parts, %d records in two of them, injected: %v", v.Parts, v.Twice, front.Injected())
}

func openedArchive(t *testing.T, location string, opts archive.Options) *archive.Archive {
	t.Helper()
	bucket, err := s3bucket.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(t.Context(), bucket, opts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// aborted leaves final records in the journal.
func aborted(t *testing.T, j journal.Journal, n int) {
	t.Helper()
	session, err := j.Session(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	defer session.Release()
	for range n {
		txn, err := branches.NewTxnID()
		if err == nil {
			_, err = session.Abort(t.Context(), txn, journal.Forced)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// compacts compacts until it was done: a push may end in an error, and then
// nothing has left the journal.
func compacts(t *testing.T, worker *recovery.Worker, to *archive.Archive) {
	t.Helper()
	var err error
	for range 20 {
		if _, err = worker.Compact(t.Context(), recovery.CompactOptions{Retain: time.Nanosecond, Archive: to.Push}); err == nil {
			return
		}
	}
	t.Errorf("compact: %v", err)
}
