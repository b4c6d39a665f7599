package sqljournal

import (
	"context"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Identify implements journal.Registry.
func (j *Journal) Identify(ctx context.Context) (journal.Identity, error) {
	var id journal.Identity
	err := j.with(ctx, func(conn Conn, q *statements) error {
		res, err := single(ctx, conn, Read, Ask(q.identify))
		if err != nil {
			return err
		}
		row, err := oneRow(res)
		if err != nil {
			return err
		}
		id.ID, id.Place = asText(row[0]), branches.Place(asText(row[1]))
		if id.Layout, err = asInt[int](row[2]); err != nil {
			return err
		}
		id.Here, err = j.dialect.Place(ctx, conn, j.opened.Load().names)
		return err
	})
	return id, journal.Wrap("identify journal", err)
}

// Place implements branches.Placer: where the server says that the journal is.
func (j *Journal) Place(ctx context.Context) (branches.Place, error) {
	id, err := j.Identify(ctx)
	return id.Here, err
}

// Adopt implements journal.Adopter.
func (j *Journal) Adopt(ctx context.Context, place branches.Place) error {
	err := j.with(ctx, func(conn Conn, q *statements) error {
		res, err := single(ctx, conn, Forced, Do(q.place, string(place)))
		if err != nil {
			return err
		}
		if ok, err := hit(res); err != nil || !ok {
			return fmt.Errorf("%w: %w", branches.ErrNotInstalled, err)
		}
		return nil
	})
	return journal.Wrap("adopt journal", err)
}

// Stores implements journal.Registry.
func (j *Journal) Stores(ctx context.Context) ([]journal.Registered, error) {
	var list []journal.Registered
	err := j.with(ctx, func(conn Conn, q *statements) error {
		res, err := single(ctx, conn, Read, Ask(q.stores))
		if err != nil {
			return err
		}
		for _, row := range res.Rows {
			r, err := registered(row)
			if err != nil {
				return err
			}
			list = append(list, r)
		}
		return nil
	})
	return list, journal.Wrap("list registered stores", err)
}

func registered(row []any) (journal.Registered, error) {
	sweeps, err := asInt[int64](row[3])
	return journal.Registered{
		Name: asText(row[0]), Place: branches.Place(asText(row[1])), StoreID: asText(row[2]), Sweeps: sweeps,
	}, err
}

// Register implements journal.Registry.
func (j *Journal) Register(ctx context.Context, r journal.Registered) (journal.Registered, error) {
	var stands journal.Registered
	err := j.with(ctx, func(conn Conn, q *statements) error {
		results, err := conn.Run(ctx, Forced,
			Do(q.register, r.Name, string(r.Place), r.StoreID, r.Sweeps),
			Ask(q.oneStore, r.Name))
		if err != nil {
			return err
		}
		row, err := oneRow(results[1])
		if err != nil {
			return err
		}
		stands, err = registered(row)
		return err
	})
	return stands, journal.Wrap("register store", err)
}

// Rebind implements journal.Registry. The sweep counter only rises.
func (j *Journal) Rebind(ctx context.Context, old, r journal.Registered) (bool, error) {
	if old.Name != r.Name {
		return false, fmt.Errorf("rhizodat: rebind store: %q cannot become %q: gids carry the name", old.Name, r.Name)
	}
	won := false
	err := j.with(ctx, func(conn Conn, q *statements) error {
		res, err := single(ctx, conn, Forced, Do(q.rebind, r.Name, string(r.Place), r.StoreID, r.Sweeps, string(old.Place), old.StoreID))
		if err != nil {
			return err
		}
		won, err = hit(res)
		return err
	})
	return won, journal.Wrap("rebind store", err)
}

// RaiseSweeps implements journal.Registry.
func (j *Journal) RaiseSweeps(ctx context.Context, name string, from int64) (int64, error) {
	var now int64
	err := j.with(ctx, func(conn Conn, q *statements) error {
		res, err := single(ctx, conn, Forced, Ask(q.sweep, name, from))
		if err != nil {
			return err
		}
		ok, err := hit(res)
		if err != nil {
			return err
		}
		if !ok {
			return &journal.Conflict{}
		}
		row, err := oneRow(res)
		if err != nil {
			return err
		}
		now, err = asInt[int64](row[0])
		return err
	})
	return now, journal.Wrap("raise sweep counter", err)
}
