package clickhouse

import (
	"context"
	"errors"
	"strconv"

	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

var _ branches.Keeper = (*Store)(nil)

var errMetaRaced = errors.New("the row is being changed by others: try again")

// metaID is the query id of everything that changes dat_meta: the server runs
// them one after the other, which makes a compare-and-set of a conditional
// insert.
func (s *Store) metaID() string { return "dat_meta:" + s.database }

func decimalText(n int) string { return strconv.Itoa(n) }

// Meta reads the row of dat_meta.
func (s *Store) Meta(ctx context.Context) (branches.Meta, error) {
	meta, err := s.readMeta(ctx)
	return meta, s.fail("read meta row", err)
}

func (s *Store) readMeta(ctx context.Context) (meta branches.Meta, err error) {
	var layout uint32
	var place string
	found, err := s.row(ctx, "SELECT layout,toString(store_id),journal_id,journal_place,sweeps FROM "+s.meta+
		" ORDER BY version DESC LIMIT 1", &layout, &meta.StoreID, &meta.JournalID, &place, &meta.Sweeps)
	switch {
	case err != nil:
		return branches.Meta{}, err
	case !found:
		return branches.Meta{}, branches.ErrNotInstalled
	}
	meta.JournalPlace = branches.Place(place)
	return meta, s.checkLayout(int(layout))
}

// Bind ties the store to a journal, where the row still equals old.
func (s *Store) Bind(ctx context.Context, old, bound branches.Meta) (bool, error) {
	changed, err := s.changeMeta(ctx,
		chsql.Text(bound.JournalID)+","+chsql.Text(string(bound.JournalPlace))+",sweeps",
		"toString(store_id)="+chsql.Text(old.StoreID)+" AND journal_id="+chsql.Text(old.JournalID)+
			" AND journal_place="+chsql.Text(string(old.JournalPlace))+" AND sweeps="+literalInt(old.Sweeps))
	return changed, s.fail("bind store", err)
}

// RaiseSweeps raises the counter to at least to.
func (s *Store) RaiseSweeps(ctx context.Context, to int64) error {
	for range rounds {
		meta, err := s.readMeta(ctx)
		if err != nil || meta.Sweeps >= to {
			return s.fail("raise sweeps", err)
		}
		if _, err := s.changeMeta(ctx, "journal_id,journal_place,greatest(sweeps,"+literalInt(to)+")", "sweeps<"+literalInt(to)); err != nil {
			return s.fail("raise sweeps", err)
		}
	}
	return s.busy("raise sweeps", "", errMetaRaced)
}

// changeMeta adds the next version of the row where the newest one fits, and
// reports whether it did. values are those of journal_id, journal_place, sweeps.
func (s *Store) changeMeta(ctx context.Context, values, where string) (bool, error) {
	change := uuid.New()
	query := "INSERT INTO " + s.meta + " (version,change,layout,store_id,journal_id,journal_place,sweeps)" +
		" SELECT version+1," + literalUUID(change) + ",layout,store_id," + values +
		" FROM (SELECT * FROM " + s.meta + " ORDER BY version DESC LIMIT 1) WHERE " + where
	err := s.exclusive(ctx, s.metaID(), func(id string) error {
		return s.exec(ctx, query, options{id: id, settings: map[string]any{"async_insert": 0}})
	})
	if err != nil {
		return false, err
	}
	var mine uint64
	_, err = s.row(ctx, "SELECT count() FROM "+s.meta+" WHERE change="+literalUUID(change), &mine)
	return mine > 0, err
}
