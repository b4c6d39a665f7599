package sqltext_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/internal/sqltext"
)

func TestScanRefuses(t *testing.T) {
	const twoPhase = "tx.Commit (two-phase commit is the driver's own)"
	const alone = "a call of its own for each savepoint statement"
	control := func(keyword, instead string) error {
		return &sqltext.TransactionControl{Keyword: keyword, Instead: instead}
	}
	invalid := func(word string) error { return &sqltext.InvalidStore{Word: word} }
	for text, want := range map[string]error{
		"store:a /* store:b */ SELECT 1":          &sqltext.Conflict{First: "a", Second: "b"},
		"/* store:a */ store:b SELECT 1":          &sqltext.Conflict{First: "a", Second: "b"},
		"/* store:a */ -- store:b\nSELECT 1":      &sqltext.Conflict{First: "a", Second: "b"},
		"store:a store:b SELECT 1":                &sqltext.Conflict{First: "a", Second: "b"},
		"-- store:b\n/* x */ store:a COMMIT; a":   &sqltext.Conflict{First: "b", Second: "a"},
		"store: SELECT 1":                         invalid("store:"),
		"store:CH SELECT 1":                       invalid("store:CH"),
		"STORE:ch SELECT 1":                       invalid("STORE:ch"),
		"store:9a SELECT 1":                       invalid("store:9a"),
		"store:_a SELECT 1":                       invalid("store:_a"),
		"store:a-b SELECT 1":                      invalid("store:a-b"),
		"store:ch;SELECT 1":                       invalid("store:ch;SELECT"),
		"store:ch(SELECT 1)":                      invalid("store:ch(SELECT"),
		"store:'ch' SELECT 1":                     invalid("store:'ch'"),
		"store:ch/* c */ SELECT 1":                invalid("store:ch/*"),
		"store:chä SELECT 1":                      invalid("store:chä"),
		"/* store:CH */ SELECT 1":                 invalid("store:CH"),
		"-- store:\nSELECT 1":                     invalid("store:"),
		"--Store:ch\nSELECT 1":                    invalid("Store:ch"),
		"store:a23456789012345678901234567890123": invalid("store:a23456789012345678901234567890123"),

		"BEGIN; SELECT 1":                       control("BEGIN", "db.BeginTx"),
		"SELECT 1; START TRANSACTION READ ONLY": control("BEGIN", "db.BeginTx"),
		"SELECT 1; COMMIT":                      control("COMMIT", "tx.Commit"),
		"SELECT 1;/* c */commit;":               control("COMMIT", "tx.Commit"),
		"SELECT 1; END; SELECT 2":               control("COMMIT", "tx.Commit"),
		"COMMIT AND CHAIN; SELECT 1":            control("COMMIT", "tx.Commit"),
		"COMMIT; ROLLBACK":                      control("COMMIT", "tx.Commit"),
		"SELECT 1; ABORT":                       control("ROLLBACK", "tx.Rollback"),
		"ROLLBACK; SELECT 1":                    control("ROLLBACK", "tx.Rollback"),
		"SELECT 1; PREPARE TRANSACTION 'x'":     control("PREPARE TRANSACTION", twoPhase),
		"COMMIT PREPARED 'x'; SELECT 1":         control("COMMIT PREPARED", twoPhase),
		"SELECT 1; ROLLBACK PREPARED 'x'":       control("ROLLBACK PREPARED", "tx.Rollback (two-phase commit is the driver's own)"),
		"SAVEPOINT a; SELECT 1":                 control("SAVEPOINT", alone),
		"SELECT 1; ROLLBACK TO a":               control("ROLLBACK TO SAVEPOINT", alone),
		"SELECT 1; RELEASE a":                   control("RELEASE SAVEPOINT", alone),
		"SAVEPOINT; SELECT 1":                   control("SAVEPOINT", alone),

		// What looks like a body or a literal and is none hides nothing.
		"SELECT begin atomic FROM t; COMMIT":                                                     control("COMMIT", "tx.Commit"),
		"SELECT begin atomic FROM t; END":                                                        control("COMMIT", "tx.Commit"),
		"CREATE FUNCTION f(begin atomic) RETURNS int AS 'x' LANGUAGE sql; END":                   control("COMMIT", "tx.Commit"),
		"CREATE TABLE t (a int); BEGIN":                                                          control("BEGIN", "db.BeginTx"),
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; COMMIT; END":                     control("COMMIT", "tx.Commit"),
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END; COMMIT":                     control("COMMIT", "tx.Commit"),
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1 case; SELECT 2; END; END":         control("COMMIT", "tx.Commit"),
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN a THEN b END; END; ABORT": control("ROLLBACK", "tx.Rollback"),
		`SELECT 'a\'; COMMIT; --'`:                                                               control("COMMIT", "tx.Commit"),
		"SELECT E'a'/**/'b\\'; COMMIT--'":                                                        control("COMMIT", "tx.Commit"),
		"SELECT a$$; COMMIT; SELECT b$$":                                                         control("COMMIT", "tx.Commit"),
		"SELECT (1; COMMIT)":                                                                     control("COMMIT", "tx.Commit"),
		"SELECT 1 --c\r; COMMIT":                                                                 control("COMMIT", "tx.Commit"),
		"SELECT /*/*/**/*/*/ 1; COMMIT":                                                          control("COMMIT", "tx.Commit"),
		"DO $$BEGIN END$$; COMMIT":                                                               control("COMMIT", "tx.Commit"),
		"SELECT 'unclosed; COMMIT'; END":                                                         control("COMMIT", "tx.Commit"),

		"SAVEPOINT":                      &sqltext.InvalidSavepoint{Keyword: "SAVEPOINT"},
		"SAVEPOINT a b":                  &sqltext.InvalidSavepoint{Keyword: "SAVEPOINT"},
		"SAVEPOINT 'a'":                  &sqltext.InvalidSavepoint{Keyword: "SAVEPOINT"},
		`SAVEPOINT ""`:                   &sqltext.InvalidSavepoint{Keyword: "SAVEPOINT"},
		`SAVEPOINT "a`:                   &sqltext.InvalidSavepoint{Keyword: "SAVEPOINT"},
		`SAVEPOINT "a""`:                 &sqltext.InvalidSavepoint{Keyword: "SAVEPOINT"},
		`SAVEPOINT U&"a"`:                &sqltext.InvalidSavepoint{Keyword: "SAVEPOINT"},
		"SAVEPOINT `a`":                  &sqltext.InvalidSavepoint{Keyword: "SAVEPOINT"},
		"SAVEPOINT $1":                   &sqltext.InvalidSavepoint{Keyword: "SAVEPOINT"},
		"ROLLBACK TO":                    &sqltext.InvalidSavepoint{Keyword: "ROLLBACK TO SAVEPOINT"},
		"ROLLBACK TO SAVEPOINT a.b":      &sqltext.InvalidSavepoint{Keyword: "ROLLBACK TO SAVEPOINT"},
		"RELEASE;":                       &sqltext.InvalidSavepoint{Keyword: "RELEASE SAVEPOINT"},
		"store:pg RELEASE SAVEPOINT a b": &sqltext.InvalidSavepoint{Keyword: "RELEASE SAVEPOINT"},
	} {
		got, err := sqltext.Scan(text)
		if diff := cmp.Diff(want, err); diff != "" {
			t.Errorf("Scan(%q) (-want +got):\n%s", text, diff)
		}
		if got != (sqltext.Statement{}) {
			t.Errorf("Scan(%q) = %+v beside its error", text, got)
		}
	}
}

func TestRefusalNamesTheCallToUse(t *testing.T) {
	for kind, want := range map[sqltext.Kind]string{
		sqltext.Plain:              "",
		sqltext.Begin:              "rhizodat: scan statement: transaction control in the text: BEGIN: use db.BeginTx",
		sqltext.Commit:             "rhizodat: scan statement: transaction control in the text: COMMIT: use tx.Commit",
		sqltext.Rollback:           "rhizodat: scan statement: transaction control in the text: ROLLBACK: use tx.Rollback",
		sqltext.PrepareTransaction: "rhizodat: scan statement: transaction control in the text: PREPARE TRANSACTION: use tx.Commit (two-phase commit is the driver's own)",
		sqltext.CommitPrepared:     "rhizodat: scan statement: transaction control in the text: COMMIT PREPARED: use tx.Commit (two-phase commit is the driver's own)",
		sqltext.RollbackPrepared:   "rhizodat: scan statement: transaction control in the text: ROLLBACK PREPARED: use tx.Rollback (two-phase commit is the driver's own)",
		sqltext.Savepoint:          "",
		sqltext.RollbackTo:         "",
		sqltext.Release:            "",
	} {
		err := kind.Refusal()
		if want == "" {
			if err != nil {
				t.Errorf("%v.Refusal() = %v, want nil", kind, err)
			}
			continue
		}
		if _, ok := errors.AsType[*sqltext.TransactionControl](err); !ok || err.Error() != want {
			t.Errorf("%v.Refusal() = %v, want %q", kind, err, want)
		}
	}
}

func TestErrorsSayWhatWasWrong(t *testing.T) {
	for text, words := range map[string][]string{
		"store:CH SELECT 1":            {`"store:CH"`, "[a-z][a-z0-9_]{0,31}"},
		"store:a /* store:b */ SELECT": {"a and b"},
		"SAVEPOINT a; SELECT 1":        {"SAVEPOINT", "a call of its own"},
		"RELEASE":                      {"RELEASE SAVEPOINT", "one plain or quoted name"},
	} {
		_, err := sqltext.Scan(text)
		if err == nil {
			t.Errorf("Scan(%q) = nil", text)
			continue
		}
		for _, word := range append(words, "rhizodat: scan statement: ") {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("Scan(%q) = %q, which does not say %q", text, err, word)
			}
		}
	}
}
