package postgres

import (
	"context"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

// The names of our tables are format (docs/journal.md).
const (
	appliedTable = "dat_applied"
	metaTable    = "dat_meta"
)

// tables are the full names of our tables, quoted.
type tables struct {
	schema  string // as it is, not quoted
	applied string
	meta    string
}

func newTables(schema string) *tables {
	return &tables{
		schema:  schema,
		applied: quote(schema) + "." + appliedTable,
		meta:    quote(schema) + "." + metaTable,
	}
}

// known returns the tables' names. Where the URL fixed no schema they are what
// current_schema() is to a new connection of the store's own: the application's
// sessions may have changed theirs.
func (s *Store) known(ctx context.Context) (*tables, error) {
	if t := s.tables.Load(); t != nil {
		return t, nil
	}
	err := s.run(ctx, func(session *Session) error {
		_, err := s.knownBy(ctx, session)
		return err
	})
	return s.tables.Load(), err
}

// knownBy is known, over a connection of the store's own.
func (s *Store) knownBy(ctx context.Context, session *Session) (*tables, error) {
	if t := s.tables.Load(); t != nil {
		return t, nil
	}
	got, err := ask(ctx, session.client(), "SELECT pg_catalog.current_schema()")
	if err != nil {
		return nil, err
	}
	schema := got.cell(0, 0)
	if schema == "" {
		return nil, &branches.Error{
			Store: s.name, Doing: "find schema", Cause: "no schema of its search_path exists",
			Way:  "name one with schema= in the URL",
			Asks: branches.Permanent,
		}
	}
	s.tables.CompareAndSwap(nil, newTables(schema))
	return s.tables.Load(), nil
}

// missing reports whether err says that a table of ours is not there.
func missing(err error) bool {
	pgErr := serverError(err)
	return pgErr != nil && pgErr.Code == codeUndefinedTable &&
		(strings.Contains(pgErr.Message, appliedTable) || strings.Contains(pgErr.Message, metaTable))
}

// explain turns the absence of our tables into ErrNotInstalled.
func (s *Store) explain(doing string, err error) error {
	if missing(err) {
		err = branches.ErrNotInstalled
	}
	return s.fail(doing, err)
}
