package sqltext_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/sqltext"
)

// FuzzScan checks T1, T2 and T3 as far as they can be said without a parser.
// Its seeds are in testdata/fuzz/FuzzScan.
func FuzzScan(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		got, err := sqltext.Scan(text)
		if err != nil {
			checkError(t, text, got, err)
		} else {
			checkStatement(t, text, got)
		}
		checkShortcut(t, text, got, err)
		checkHidden(t, text)
		checkControlBehind(t, text)
	})
}

func checkError(t *testing.T, text string, got sqltext.Statement, err error) {
	t.Helper()
	if got != (sqltext.Statement{}) {
		t.Errorf("Scan(%q) = %+v beside error %v", text, got, err)
	}
	_, store := errors.AsType[*sqltext.InvalidStore](err)
	_, conflict := errors.AsType[*sqltext.Conflict](err)
	_, control := errors.AsType[*sqltext.TransactionControl](err)
	_, savepoint := errors.AsType[*sqltext.InvalidSavepoint](err)
	if !store && !conflict && !control && !savepoint {
		t.Errorf("Scan(%q): error of unknown type %T: %v", text, err, err)
	}
}

// checkStatement is T2.
func checkStatement(t *testing.T, text string, got sqltext.Statement) {
	t.Helper()
	if !isSubsequence(got.Text, text) {
		t.Errorf("Scan(%q): Text %q is not made of it", text, got.Text)
	}
	if got.Store == "" && got.Text != text {
		t.Errorf("Scan(%q): no store, but Text %q", text, got.Text)
	}
	if got.Multi && got.Kind != sqltext.Plain {
		t.Errorf("Scan(%q): %v among several statements", text, got.Kind)
	}
	again, err := sqltext.Scan(got.Text)
	want := got
	want.Store = ""
	if err != nil || again != want {
		t.Errorf("Scan(%q) = %+v, and its text again %+v, %v", text, got, again, err)
	}
}

// checkShortcut compares the quick answer for plain statements with the slow one,
// which a comment behind an empty statement asks for.
func checkShortcut(t *testing.T, text string, got sqltext.Statement, err error) {
	t.Helper()
	want, wantErr := sqltext.Scan(text + "\n; -- c")
	got.Text, want.Text = "", ""
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() || got != want {
		t.Errorf("Scan(%q) = %+v, %v, and read closely %+v, %v", text, got, err, want, wantErr)
	}
}

// checkHidden is T1: whatever the text is, hidden it is nothing.
func checkHidden(t *testing.T, text string) {
	t.Helper()
	hidden := []string{
		"SELECT '" + strings.ReplaceAll(text, "'", "''") + "'",
		"SELECT E'" + strings.NewReplacer("'", `\'`, `\`, `\\`).Replace(text) + "'",
		`SELECT "` + strings.ReplaceAll(text, `"`, `""`) + `"`,
		"SELECT `" + strings.ReplaceAll(text, "`", "``") + "`",
		"SELECT 1 -- " + strings.NewReplacer("\n", " ", "\r", " ").Replace(text),
		"-- c " + strings.NewReplacer("\n", " ", "\r", " ").Replace(text) + "\nSELECT 1",
		"/* c " + strings.NewReplacer("/", " ", "*", " ").Replace(text) + " */ SELECT 1",
		"/* /* " + strings.NewReplacer("/", " ", "*", " ").Replace(text) + " */ */ SELECT 1",
	}
	if !strings.Contains(text, "$q$") && !strings.HasSuffix(text, "$q") {
		hidden = append(hidden, "SELECT $q$"+text+"$q$")
	}
	for _, hiding := range hidden {
		got, err := sqltext.Scan(hiding)
		got.Notify = false // in doubt true: a dollar quote may be code
		if want := (sqltext.Statement{Text: hiding}); err != nil || got != want {
			t.Errorf("Scan(%q) = %+v, %v, want it plain", hiding, got, err)
		}
	}
}

// checkControlBehind is T3: a statement that is complete in itself hides no
// control behind it.
func checkControlBehind(t *testing.T, text string) {
	t.Helper()
	complete := "SELECT '" + strings.ReplaceAll(text, "'", "''") + "'; COMMIT"
	_, err := sqltext.Scan(complete)
	if _, ok := errors.AsType[*sqltext.TransactionControl](err); !ok {
		t.Errorf("Scan(%q) = %v, want a TransactionControl", complete, err)
	}
}

func isSubsequence(part, whole string) bool {
	for i := 0; i < len(whole) && part != ""; i++ {
		if whole[i] == part[0] {
			part = part[1:]
		}
	}
	return part == ""
}
