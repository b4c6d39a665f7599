package drevo

import (
	"context"
	"fmt"

	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Stores implements journal.Registry.
func (j *Journal) Stores(ctx context.Context) ([]journal.Registered, error) {
	var list []journal.Registered
	err := j.with(ctx, func() error {
		rows, err := j.graph.Read(ctx, j.words.stores, nil)
		if err != nil {
			return err
		}
		for _, row := range rows {
			r, err := decodeStore(row)
			if err != nil {
				return err
			}
			list = append(list, r)
		}
		return nil
	})
	return list, journal.Wrap("list registered stores", err)
}

// findStore reads an entry inside a transaction.
func (j *Journal) findStore(ctx context.Context, tx *bolt.Tx, name string) (r journal.Registered, found bool, err error) {
	rows, err := tx.Run(ctx, j.words.findStore, map[string]any{"title": j.words.storeTitle(name)})
	if err != nil || len(rows) == 0 {
		return r, false, err
	}
	row, err := bolt.Only(rows, nil)
	if err != nil {
		return r, false, err
	}
	r, err = decodeStore(row)
	return r, err == nil, err
}

func (j *Journal) setStore(ctx context.Context, tx *bolt.Tx, name string, props map[string]any) error {
	return one(tx.Run(ctx, j.words.changeStore, map[string]any{"title": j.words.storeTitle(name), "props": props}))
}

func storeProps(r journal.Registered) map[string]any {
	return map[string]any{"name": r.Name, "place": string(r.Place), "store_id": r.StoreID, "sweeps": r.Sweeps}
}

// Register implements journal.Registry.
func (j *Journal) Register(ctx context.Context, r journal.Registered) (journal.Registered, error) {
	var stands journal.Registered
	err := j.with(ctx, func() error {
		return j.write(ctx, func(tx *bolt.Tx) error {
			found, ok, err := j.findStore(ctx, tx, r.Name)
			if err != nil {
				return err
			}
			if ok {
				stands = found
				return errUnchanged
			}
			stands = r
			props := storeProps(r)
			props["title"] = j.words.storeTitle(r.Name)
			_, err = tx.Run(ctx, j.words.createStore, map[string]any{"props": props})
			return err
		})
	})
	if err != nil {
		return journal.Registered{}, journal.Wrap("register store", err)
	}
	return stands, nil
}

// Rebind implements journal.Registry. The sweep counter only rises.
func (j *Journal) Rebind(ctx context.Context, old, r journal.Registered) (bool, error) {
	if old.Name != r.Name {
		return false, fmt.Errorf("rhizodat: rebind store: %q cannot become %q: gids carry the name", old.Name, r.Name)
	}
	won := false
	err := j.with(ctx, func() error {
		return j.write(ctx, func(tx *bolt.Tx) error {
			stands, found, err := j.findStore(ctx, tx, r.Name)
			if err != nil {
				return err
			}
			if won = found && stands.Place == old.Place && stands.StoreID == old.StoreID; !won {
				return errUnchanged
			}
			next := r
			next.Sweeps = max(stands.Sweeps, r.Sweeps)
			return j.setStore(ctx, tx, r.Name, storeProps(next))
		})
	})
	return won && err == nil, journal.Wrap("rebind store", err)
}

// RaiseSweeps implements journal.Registry.
func (j *Journal) RaiseSweeps(ctx context.Context, name string, from int64) (int64, error) {
	err := j.with(ctx, func() error {
		return j.write(ctx, func(tx *bolt.Tx) error {
			stands, found, err := j.findStore(ctx, tx, name)
			if err != nil {
				return err
			}
			if !found || stands.Sweeps != from {
				return &journal.Conflict{}
			}
			return j.setStore(ctx, tx, name, map[string]any{"sweeps": from + 1})
		})
	})
	if err != nil {
		return 0, journal.Wrap("raise sweep counter", err)
	}
	return from + 1, nil
}
