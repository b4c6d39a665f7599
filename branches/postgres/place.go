package postgres

import (
	"context"

	"github.com/rhizodat/rhizodat-go/branches"
)

var _ branches.Placer = (*Store)(nil)

// Place is pg:<system identifier>/<database>/<schema>, in the server's words:
// two spellings of one host compare equal, and so do a store and a journal. A
// physical copy of the server says the same of itself.
func (s *Store) Place(ctx context.Context) (branches.Place, error) {
	var place branches.Place
	err := s.run(ctx, func(session *Session) error {
		names, err := s.knownBy(ctx, session)
		if err != nil {
			return err
		}
		got, err := ask(ctx, session.client(), ownTransaction(
			"SELECT system_identifier, pg_catalog.current_database() FROM pg_catalog.pg_control_system()"))
		if err != nil {
			return err
		}
		place = branches.Place("pg:" + got.cell(ownFirst, 0) + "/" + got.cell(ownFirst, 1) + "/" + names.schema)
		return nil
	})
	return place, s.fail("find place", err)
}
