package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strings"

	"modernc.org/sqlite"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal/sqljournal"
)

// Result codes of SQLite (https://www.sqlite.org/rescode.html).
const (
	codeError  = 1
	codeBusy   = 5
	codeLocked = 6
	codeFull   = 13
)

// dialect is what SQLite spells differently.
type dialect struct{ path string }

var _ sqljournal.Dialect = dialect{}

// Names implements sqljournal.Dialect.
func (d dialect) Names(context.Context, sqljournal.Conn) (sqljournal.Names, error) {
	return sqljournal.Names{
		Journal: `main.dat_journal`, Meta: `main.dat_journal_meta`, Store: `main.dat_store`,
		Lease: `main.dat_lease`, Step: `main.dat_step`,
		ID: `lower(hex(randomblob(16)))`, Place: `'` + strings.ReplaceAll(string(d.place()), `'`, `''`) + `'`,
	}, nil
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// Spelling implements sqljournal.Dialect. One writer at a time makes the locks
// of the fence and of Install needless.
func (dialect) Spelling(n sqljournal.Names) sqljournal.Spelling {
	return sqljournal.Spelling{
		UUID:     `text`,
		Now:      `CAST(unixepoch('subsec') * 1000 AS integer)`,
		Greatest: `max`,
		Fence:    `(SELECT fence FROM ` + n.Meta + `)`,
		Tables: `SELECT (SELECT count(*) FROM main.sqlite_master WHERE type = 'table' AND name = 'dat_journal_meta'),
			(SELECT count(*) FROM main.sqlite_master WHERE type = 'table' AND name = 'dat_journal')`,
		Among: `dat_txn IN (SELECT value FROM json_each($1))`,
		List: func(ids []string) string {
			text, _ := json.Marshal(ids) // strings always marshal
			return string(text)
		},
		Records: func(param string, columns ...string) string {
			for i, c := range columns {
				name, _, _ := strings.Cut(c, " ")
				columns[i] = `json_extract(value, '$.` + name + `') AS ` + name
			}
			return `SELECT ` + strings.Join(columns, ", ") + ` FROM json_each(` + param + `)`
		},
		Light: `branches`, // it never leaves the process
		Param: func(text string) string { return parameter.ReplaceAllString(text, `?$1`) },
	}
}

// Layout implements sqljournal.Dialect.
func (dialect) Layout(v int, n sqljournal.Names) []string {
	switch v {
	case 1:
		return []string{`CREATE TABLE IF NOT EXISTS ` + n.Journal + ` (
			dat_txn text PRIMARY KEY NOT NULL,
			state text NOT NULL,
			dat_tx_time bigint,
			branches text NOT NULL,
			created_ms bigint NOT NULL,
			updated_ms bigint NOT NULL)`}
	case 2:
		return []string{
			`ALTER TABLE ` + n.Journal + ` ADD COLUMN lease text`,
			`ALTER TABLE ` + n.Journal + ` ADD COLUMN fence bigint`,
			`ALTER TABLE ` + n.Journal + ` ADD COLUMN note text`,
			`CREATE INDEX IF NOT EXISTS main.dat_journal_open ON dat_journal (state, updated_ms)
				WHERE state IN ('ACTIVE', 'PREPARED', 'COMMITTED')`,
			`CREATE INDEX IF NOT EXISTS main.dat_journal_final ON dat_journal (updated_ms)
				WHERE state IN ('DONE', 'ABORTED')`,
			`CREATE INDEX IF NOT EXISTS main.dat_journal_tx_time ON dat_journal (dat_tx_time)`,
			`CREATE TABLE IF NOT EXISTS ` + n.Meta + ` (
				one_row integer PRIMARY KEY DEFAULT 1 CHECK (one_row = 1),
				id text NOT NULL,
				place text NOT NULL,
				layout integer NOT NULL,
				horizon_ms bigint NOT NULL DEFAULT 0,
				hlc bigint NOT NULL DEFAULT 0,
				fence bigint NOT NULL DEFAULT 0)`,
			`CREATE TABLE IF NOT EXISTS ` + n.Store + ` (
				name text PRIMARY KEY NOT NULL,
				place text NOT NULL,
				store_id text NOT NULL,
				sweeps bigint NOT NULL DEFAULT 0) WITHOUT ROWID`,
			`INSERT INTO ` + n.Meta + ` (id, place, layout) SELECT ` + n.ID + `, ` + n.Place + `, 2 WHERE true
				ON CONFLICT (one_row) DO NOTHING`,
			`UPDATE ` + n.Meta + ` SET layout = 2 WHERE layout < 2`,
		}
	case 3:
		return []string{
			`CREATE TABLE IF NOT EXISTS ` + n.Lease + ` (
				name text PRIMARY KEY NOT NULL,
				holder text,
				token text NOT NULL,
				expires_at bigint NOT NULL,
				fence bigint NOT NULL,
				UNIQUE (name, fence)) WITHOUT ROWID`,
			`CREATE TABLE IF NOT EXISTS ` + n.Step + ` (
				execution text NOT NULL,
				label text NOT NULL,
				input text NOT NULL,
				holder text NOT NULL,
				token text NOT NULL,
				expires_at bigint NOT NULL,
				value text,
				created_ms bigint NOT NULL,
				updated_ms bigint NOT NULL,
				PRIMARY KEY (execution, label, input))`,
			`CREATE INDEX IF NOT EXISTS main.dat_step_updated ON dat_step (updated_ms)`,
			`UPDATE ` + n.Meta + ` SET layout = 3 WHERE layout < 3`,
		}
	}
	return nil
}

// Place implements sqljournal.Dialect: sqlite: and the real path.
func (d dialect) Place(context.Context, sqljournal.Conn, sqljournal.Names) (branches.Place, error) {
	return d.place(), nil
}

// place follows links: two names of one file are one journal. Before init there
// may be no file to follow.
func (d dialect) place() branches.Place {
	path := d.path
	if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(folder, filepath.Base(path))
	}
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		path = followed
	}
	return branches.Place("sqlite:" + path)
}

// Classify implements sqljournal.Dialect.
func (dialect) Classify(err error) branches.Kind {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return branches.Permanent
	}
	switch e.Code() & 0xff {
	case codeBusy, codeLocked:
		return branches.Transient
	case codeFull:
		return branches.StoreFull
	}
	return branches.Permanent
}
