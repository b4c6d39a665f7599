package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "init", "run", "once", "status", "list", "show", "compact", "archive", "leases", "steps", "resolve", "adopt", "doctor", "completion"} {
		args := strings.Fields(name + " --help")
		got := call(t, "", "", args...)
		if got.code != 0 || got.err != "" {
			t.Errorf("%v: exit %d, %s", args, got.code, got.err)
		}
		golden(t, strings.TrimPrefix("help-"+name, "-"), got.out)
	}
	if got := call(t, "", "", "--version"); got.code != 0 || !strings.HasPrefix(got.out, "rhizorecover ") {
		t.Errorf("--version: %+v", got)
	}
}

// Every mistake has exit code 2 and its own words.
func TestUsage(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const dsn = "a=postgres://app:s3cret@127.0.0.1:1/a b=postgres://app:s3cret@127.0.0.1:1/b"
	for _, c := range []struct {
		name, dsn string
		args      []string
		want      string
	}{
		{"no command", "", nil, "expected one of"},
		{"unknown command", "", []string{"recover"}, "unexpected argument recover"},
		{"unknown flag", "", []string{"once", "--fast"}, "--fast"},
		{"no DSN", "", []string{"once"}, "RHIZODAT_DSN"},
		{"two DSNs", "", []string{"once", "--dsn", "x", "--dsn-file", empty}, "exclude each other"},
		{"no such file", "", []string{"once", "--dsn-file", empty + "x"}, "no such file"},
		{"an empty file", "", []string{"once", "--dsn-file", empty}, "is empty"},
		{"a DSN that does not parse", "a=postgres://app:s3cret@h/a colour=red", []string{"once"}, "colour"},
		{"no journal", dsn, []string{"once"}, "no journal"},
		{"a bad id", dsn + " journal=postgres://app@127.0.0.1:1/j", []string{"show", "42"}, "dat_txn"},
		{"a bad state", dsn, []string{"list", "--state", "GONE"}, "GONE"},
		{"a bad shell", dsn, []string{"completion", "tcsh"}, "tcsh"},
		{"no reason", dsn, []string{"resolve", "x", "--store", "a", "--as", "skipped"}, "--reason"},
		{"adopt what", dsn, []string{"adopt"}, "--store"},
		{"negative retain", dsn, []string{"compact", "--retain=-1s"}, "negative"},
		{"no interval", dsn, []string{"run", "--interval=0s"}, "interval"},
	} {
		got := call(t, c.dsn, "", c.args...)
		if got.code != exitUsage || !strings.Contains(got.err, c.want) {
			t.Errorf("%s: exit %d, %q; want 2 and %q", c.name, got.code, got.err, c.want)
		}
		if strings.Contains(got.err+got.out, "s3cret") {
			t.Errorf("%s: a secret was printed: %s%s", c.name, got.out, got.err)
		}
	}
}

// --dsn works, and warns that ps shows it.
func TestDSNOnTheCommandLineWarns(t *testing.T) {
	t.Parallel()
	r := installed(t)
	got := call(t, "", "", "once", "--dsn", r.dsn)
	if got.code != 0 || !strings.Contains(got.err, "ps") {
		t.Errorf("exit %d, %q; want 0 and a warning", got.code, got.err)
	}
	file := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(file, []byte(r.dsn+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := call(t, "", "", "once", "--dsn-file", file); got.code != 0 || strings.Contains(got.err, "ps)") {
		t.Errorf("--dsn-file: exit %d, %q; want 0 and no warning", got.code, got.err)
	}
}

// A server that cannot be reached, or has no tables, is exit code 1.
func TestErrors(t *testing.T) {
	t.Parallel()
	down := "a=postgres://app:s3cret@127.0.0.1:1/a journal=postgres://app:s3cret@127.0.0.1:1/j"
	for _, args := range [][]string{{"once"}, {"status"}, {"list"}, {"init"}} {
		got := call(t, down, "", args...)
		if got.code != exitError || got.err == "" || strings.Contains(got.err+got.out, "s3cret") {
			t.Errorf("%v without a server: exit %d, %q", args, got.code, got.err)
		}
	}
	r := newRig(t)
	if got := call(t, r.dsn, "", "once"); got.code != exitError || !strings.Contains(got.err, "rhizorecover init") {
		t.Errorf("once without tables: exit %d, %q; want 1 and the way out", got.code, got.err)
	}
}

// An output that cannot be written is not success.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	var errs strings.Builder
	code := run(t.Context(), console{
		args: []string{"completion", "bash"}, out: fullDisk{}, err: &errs,
		env: func(string) (string, bool) { return "", false },
	})
	if code != exitError || !strings.Contains(errs.String(), "full") {
		t.Errorf("exit %d, %q; want 1 and the reason", code, errs.String())
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// The scripts are what their shells can read, and bash completes with them.
func TestCompletion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := call(t, "", "", "completion", shell)
		if got.code != 0 {
			t.Fatalf("%s: exit %d: %s", shell, got.code, got.err)
		}
		for _, word := range []string{"resolve", "dsn-file", "skipped", "COMMITTED"} {
			if !strings.Contains(got.out, word) {
				t.Errorf("%s: the script lacks %q", shell, word)
			}
		}
		file := filepath.Join(dir, shell)
		if err := os.WriteFile(file, []byte(got.out), 0o600); err != nil {
			t.Fatal(err)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // the words are checked all the same
		}
		if out, err := exec.CommandContext(t.Context(), path, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s cannot read its script: %v: %s", shell, err, out)
		}
	}
	for _, c := range []struct{ line, want string }{
		{"re", "resolve"}, {"resolve --as s", "skipped"}, {"list --state CO", "COMMITTED"}, {"completion f", "fish"}, {"once --js", "--json"},
	} {
		words := strings.Fields("rhizorecover " + c.line)
		script := `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rhizorecover; echo "${COMPREPLY[@]}"`
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-c", script, "bash", filepath.Join(dir, "bash")}, words...)...)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != c.want {
			t.Errorf("%q completes to %q (%v), want %q", c.line, out, err, c.want)
		}
	}
}
