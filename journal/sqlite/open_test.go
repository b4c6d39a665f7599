package sqlite_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/sqlite"
)

func TestOpenRefuses(t *testing.T) {
	for _, tc := range []struct{ location, want string }{
		{"", "scheme"},
		{"journal.db", "scheme"},
		{"sqlite:///tmp/x", "scheme"},
		{"file:journal.db", "relative"},
		{"file:./journal.db", "relative"},
		{"file:", "relative"},
		{"file://", "relative"},
		{"file://host/journal.db", "no host"},
		{"file://localhost/journal.db", "no host"},
		{"file://journal.db", "no host"},
		{"file:///tmp/", "folder"},
		{"file:///", "folder"},
		{"file:///tmp/x?mode=memory", "options"},
		{"file:///tmp/x#y", "options"},
		{"file:///tmp/%00", "NUL"},
		{"file:///tmp/%zz", "not a URL"},
	} {
		_, err := sqlite.Open(tc.location, journal.Options{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "file:///absolute/path") {
			t.Errorf("%q: %v, want an error with %q and the way out", tc.location, err, tc.want)
		}
	}
}

func TestOpenTouchesNoFileAndSaysWhatItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	var log bytes.Buffer
	j := open(t, "file://"+path, journal.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for name, err := range map[string]error{
		"Harden": j.Harden(t.Context()),
		"Scan":   j.Scan(t.Context(), journal.Filter{States: journal.States}, func(journal.Record) error { return nil }),
	} {
		if !errors.Is(err, branches.ErrNotInstalled) {
			t.Errorf("%s: %v, want ErrNotInstalled", name, err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file where no journal was made: %v", err)
	}
	install(t, j)
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "development") {
		t.Errorf("it logged %d lines: %s", lines, log.String())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v, want mode 0600", info.Mode(), err)
	}
}

func TestFilesThatAreNoJournal(t *testing.T) {
	folder := t.TempDir()
	empty, junk := filepath.Join(folder, "empty"), filepath.Join(folder, "junk")
	for path, content := range map[string]string{empty: "", junk: strings.Repeat("no database ", 1000)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(t, "file://"+empty, journal.Options{}).Harden(t.Context()); !errors.Is(err, branches.ErrNotInstalled) {
		t.Errorf("an empty file: %v, want ErrNotInstalled", err)
	}
	j := open(t, "file://"+junk, journal.Options{})
	if err := j.(branches.Installer).Install(t.Context()); err == nil || errors.Is(err, branches.ErrNotInstalled) {
		t.Errorf("a file that is no database: %v", err)
	}
	nowhere := open(t, "file://"+folder+"/no/such/folder/journal.db", journal.Options{})
	if err := nowhere.(branches.Installer).Install(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

// A path may hold what means something in a URL or to SQLite.
func TestOddPaths(t *testing.T) {
	for _, name := range []string{"with blank", "per%cent", "quest?ion", "ha#sh", "plus+", "жук", "it's"} {
		folder := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		escaped := strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23", " ", "%20").Replace(folder)
		j := open(t, "file://"+escaped+"/journal.db", journal.Options{})
		install(t, j)
		if _, err := os.Stat(filepath.Join(folder, "journal.db")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		id, err := j.(journal.Registry).Identify(t.Context())
		if err != nil || !strings.HasSuffix(string(id.Here), name+"/journal.db") {
			t.Errorf("%s: Identify: %+v, %v", name, id, err)
		}
	}
}

// A copied file says that it is one.
func TestCopiedFileHasMoved(t *testing.T) {
	folder := t.TempDir()
	first := open(t, "file://"+folder+"/journal.db", journal.Options{})
	install(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(folder + "/journal.db")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder+"/copy.db", content, 0o600); err != nil {
		t.Fatal(err)
	}
	id, err := open(t, "file://"+folder+"/copy.db", journal.Options{}).(journal.Registry).Identify(t.Context())
	if err != nil || !id.Moved() {
		t.Errorf("a copy: %+v, %v, want one that has moved", id, err)
	}
	// A link to it is the same journal.
	if err := os.Symlink(folder+"/journal.db", folder+"/link.db"); err != nil {
		t.Fatal(err)
	}
	id, err = open(t, "file://"+folder+"/link.db", journal.Options{}).(journal.Registry).Identify(t.Context())
	if err != nil || id.Moved() {
		t.Errorf("a link: %+v, %v, want the same journal", id, err)
	}
}
