package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/archive"
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
