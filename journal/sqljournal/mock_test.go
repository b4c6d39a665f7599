package sqljournal_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/sqljournal"
)

// dialect is a database that answers what the test says.
type dialect struct{}

func (dialect) Names(context.Context, sqljournal.Conn) (sqljournal.Names, error) {
	return sqljournal.Names{
		Journal: "dat_journal", Meta: "dat_journal_meta", Store: "dat_store",
		Lease: "dat_lease", Step: "dat_step",
	}, nil
}

func (dialect) Spelling(sqljournal.Names) sqljournal.Spelling {
	return sqljournal.Spelling{
		UUID: "uuid", Now: "now_ms()", Greatest: "greatest", Fence: "fence()", Tables: "SELECT tables",
		Among: "dat_txn IN $1", List: func(ids []string) string { return strings.Join(ids, ",") }, Light: "branches",
		Records: func(param string, _ ...string) string { return "SELECT records OF " + param },
		Rows:    sqljournal.RowLocks{Share: " SHARE", Hold: " HOLD", Seize: " SEIZE", Touch: " TOUCH"},
	}
}

func (dialect) Layout(v int, _ sqljournal.Names) []string {
	return []string{fmt.Sprintf("LAYOUT %d", v)}
}

func (dialect) Place(context.Context, sqljournal.Conn, sqljournal.Names) (branches.Place, error) {
	return "here", nil
}

func (dialect) Classify(error) branches.Kind { return branches.Transient }

var wall = hlc.NewManual(time.UnixMilli(1_700_000_000_000))

// mocked opens a journal over a mock, past the examination of its layout.
func mocked(t *testing.T) (*sqljournal.Journal, sqlmock.Sqlmock) {
	t.Helper()
	j, mock := unexamined(t)
	expectRead(mock, "SELECT tables", 1, 1)
	expectRead(mock, "SELECT layout FROM dat_journal_meta", sqljournal.Layout)
	return j, mock
}

func unexamined(t *testing.T) (*sqljournal.Journal, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(contains)))
	if err != nil {
		t.Fatal(err)
	}
	begin := func(m sqljournal.Mode) []string {
		return []string{map[sqljournal.Mode]string{
			sqljournal.Read: "BEGIN read", sqljournal.Unforced: "BEGIN unforced", sqljournal.Forced: "BEGIN forced",
		}[m]}
	}
	j := sqljournal.New(sqljournal.NewDBPool(db, 4, 0, begin, nil), dialect{}, journal.Options{Wall: wall})
	t.Cleanup(func() {
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
		mock.ExpectClose()
		_ = j.Close() // a connection that a test has lost closes out of order
	})
	return j, mock
}

// contains compares texts without regard to blanks.
func contains(expected, actual string) error {
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if !strings.Contains(squeeze(actual), squeeze(expected)) {
		return fmt.Errorf("%q is not in %q", expected, squeeze(actual))
	}
	return nil
}

func expectExec(mock sqlmock.Sqlmock, text string) *sqlmock.ExpectedExec {
	return mock.ExpectExec(text).WillReturnResult(sqlmock.NewResult(0, 0))
}

func expectWrite(mock sqlmock.Sqlmock, text string, rows int64) {
	mock.ExpectExec(text).WillReturnResult(sqlmock.NewResult(0, rows))
}

// expectRead is a transaction of one query that answers one row, or none.
func expectRead(mock sqlmock.Sqlmock, text string, row ...driver.Value) {
	expectExec(mock, "BEGIN read")
	expectRows(mock, text, row...)
	expectExec(mock, "COMMIT")
}

func expectRows(mock sqlmock.Sqlmock, text string, row ...driver.Value) {
	names := make([]string, max(1, len(row)))
	for i := range names {
		names[i] = fmt.Sprint("c", i)
	}
	rows := sqlmock.NewRows(names)
	if len(row) > 0 {
		rows.AddRow(row...)
	}
	mock.ExpectQuery(text).WillReturnRows(rows)
}

var txn = branches.TxnID{1, 2, 3}

func session(t *testing.T, j journal.Journal) journal.Session {
	t.Helper()
	s, err := j.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Release)
	return s
}
