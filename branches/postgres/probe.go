package postgres

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
)

var _ branches.Prober = (*Store)(nil)

// tryPrepare asks whether the server knows PREPARE TRANSACTION at all, which
// those that only speak like PostgreSQL may not. Outside of a transaction it
// does nothing but warn.
const tryPrepare = "PREPARE TRANSACTION 'rhizodat-probe'"

// Probe finds out whether the store can take part in a unit of several stores,
// before such a unit writes anything. A good answer is kept; a bad one is asked
// for again, since the way out of it is an administrator's.
func (s *Store) Probe(ctx context.Context) error {
	if s.probed.Load() {
		return nil
	}
	if err := s.run(ctx, func(session *Session) error { return s.probe(ctx, session) }); err != nil {
		return s.explain("probe store", err)
	}
	s.probed.Store(true)
	return nil
}

func (s *Store) probe(ctx context.Context, session *Session) error {
	names, err := s.knownBy(ctx, session)
	if err != nil {
		return err
	}
	applied := "pg_catalog.to_regclass(" + literalText(names.applied) + ")"
	got, err := ask(ctx, session.client(), ownTransaction(
		"SELECT pg_catalog.current_setting('max_prepared_transactions',true),"+applied+" IS NULL,"+
			"pg_catalog.has_table_privilege("+applied+",'SELECT') AND pg_catalog.has_table_privilege("+applied+",'INSERT'),current_user"))
	if err != nil {
		return err
	}
	switch {
	case got.cell(ownFirst, 1) == "t":
		return branches.ErrNotInstalled
	case got.cell(ownFirst, 2) != "t":
		return &branches.Error{
			Store: s.name, Doing: "use marker table", Cause: "role " + got.cell(ownFirst, 3) + " may not read and write " + names.applied,
			Way:  "GRANT SELECT, INSERT, DELETE on it",
			Asks: branches.Permanent,
		}
	case got.cell(ownFirst, 0) == "0":
		return &branches.Error{Store: s.name, Doing: "probe store", Err: ErrPreparedDisabled, Asks: branches.Permanent}
	}
	layout, err := s.layout(ctx, session, names)
	if err != nil {
		return err
	}
	if layout == 0 {
		return branches.ErrNotInstalled
	}
	if _, err := ask(ctx, session.client(), tryPrepare); err != nil && answered(err) {
		return &branches.Error{Store: s.name, Doing: "probe store", Err: errors.Join(ErrPreparedDisabled, err), Asks: branches.Permanent}
	} else if err != nil {
		return err
	}
	return nil
}
