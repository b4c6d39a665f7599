package postgres

import (
	"context"
	"errors"
	"strconv"

	"github.com/rhizodat/rhizodat-go/branches"
)

var _ branches.Keeper = (*Store)(nil)

// Meta reads the row of dat_meta.
func (s *Store) Meta(ctx context.Context) (branches.Meta, error) {
	var meta branches.Meta
	err := s.run(ctx, func(session *Session) error {
		names, err := s.knownBy(ctx, session)
		if err != nil {
			return err
		}
		got, err := ask(ctx, session.client(), ownTransaction(
			"SELECT store_id,journal_id,journal_place,sweeps,layout FROM "+names.meta))
		if err != nil {
			return err
		}
		if len(got.rows(ownFirst)) == 0 {
			return branches.ErrNotInstalled
		}
		layout, layoutErr := strconv.Atoi(got.cell(ownFirst, 4))
		sweeps, sweepsErr := strconv.ParseInt(got.cell(ownFirst, 3), 10, 64)
		meta = branches.Meta{
			StoreID: got.cell(ownFirst, 0), JournalID: got.cell(ownFirst, 1),
			JournalPlace: branches.Place(got.cell(ownFirst, 2)), Sweeps: sweeps,
		}
		return errors.Join(layoutErr, sweepsErr, s.checkLayout(layout))
	})
	return meta, s.explain("read meta row", err)
}

// Bind ties the store to a journal, where the row still equals old.
func (s *Store) Bind(ctx context.Context, old, bound branches.Meta) (bool, error) {
	changed, err := s.changeMeta(ctx, "journal_id="+literalText(bound.JournalID)+",journal_place="+literalText(string(bound.JournalPlace)),
		"store_id="+literalText(old.StoreID)+"::pg_catalog.uuid AND journal_id="+literalText(old.JournalID)+
			" AND journal_place="+literalText(string(old.JournalPlace))+" AND sweeps="+literalInt(old.Sweeps))
	return changed == 1, s.explain("bind store", err)
}

// RaiseSweeps raises the counter to at least to.
func (s *Store) RaiseSweeps(ctx context.Context, to int64) error {
	changed, err := s.changeMeta(ctx, "sweeps=greatest(sweeps,"+literalInt(to)+")", "true")
	if err == nil && changed == 0 {
		err = branches.ErrNotInstalled
	}
	return s.explain("raise sweeps", err)
}

// changeMeta updates the row, forced: what it says decides later who may roll
// back.
func (s *Store) changeMeta(ctx context.Context, set, where string) (int64, error) {
	var changed int64
	err := s.run(ctx, func(session *Session) error {
		names, err := s.knownBy(ctx, session)
		if err != nil {
			return err
		}
		session.unsynced = false
		got, err := ask(ctx, session.client(), ownTransaction(forced, "UPDATE "+names.meta+" SET "+set+" WHERE "+where))
		switch {
		case err != nil:
			return err
		case session.unsynced:
			return errUnsynced
		case got.last() != tagCommit:
			return errors.New("the server answered with another command tag")
		}
		changed = got.affected(ownFirst + 1)
		return nil
	})
	return changed, err
}
