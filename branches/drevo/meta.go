package drevo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
)

var (
	_ branches.Keeper    = (*Store)(nil)
	_ branches.Installer = (*Store)(nil)
)

// layout is the version of our nodes. It is format: a version that was released
// never changes.
const layout = 1

// The meta node is format: label and title DatMeta.
const (
	createMeta = "CREATE (:DatMeta {title: 'DatMeta', layout: $layout, store_id: $id, journal_id: '', journal_place: '', sweeps: 0})"
	findMeta   = "MATCH (m:DatMeta {title: 'DatMeta'}) RETURN m.layout, m.store_id, m.journal_id, m.journal_place, m.sweeps"
	setJournal = "MATCH (m:DatMeta {title: 'DatMeta'}) SET m.journal_id = $id, m.journal_place = $place"
	setSweeps  = "MATCH (m:DatMeta {title: 'DatMeta'}) SET m.sweeps = $to"
)

// errSettled ends a transaction that has nothing to write.
var errSettled = errors.New("there is nothing to write")

// Install makes the meta node and the graph's identity; markers need nothing. It
// refuses nodes of a layout that it does not know.
func (s *Store) Install(ctx context.Context) error {
	if s.isInstalled(ctx) {
		return nil // also under the fence, which refuses a transaction that writes nothing
	}
	err := s.control.Write(ctx, func(tx *bolt.Tx) error {
		if _, err := s.control.Identify(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.Run(ctx, findMeta, nil)
		if err != nil {
			return err
		}
		if _, err := s.readMeta(rows); !errors.Is(err, branches.ErrNotInstalled) {
			return err
		}
		id, err := uuid.NewRandom()
		if err != nil {
			return err
		}
		_, err = tx.Run(ctx, createMeta, map[string]any{"layout": int64(layout), "id": id.String()})
		return err
	})
	return s.fail("install nodes", err)
}

// isInstalled: an error is left to whoever asks again.
func (s *Store) isInstalled(ctx context.Context) bool {
	if _, err := s.control.Place(ctx); err != nil {
		return false
	}
	_, err := s.Meta(ctx)
	return err == nil
}

// InstallSQL is Cypher that does what Install does in an empty graph. $id is a
// random UUID of its own in each statement.
func (s *Store) InstallSQL() string {
	return "CREATE (:DatGraph {title: 'DatGraph', id: $id});\n" +
		"CREATE (:DatMeta {title: 'DatMeta', layout: 1, store_id: $id, journal_id: '', journal_place: '', sweeps: 0});\n"
}

// Meta reads the meta node.
func (s *Store) Meta(ctx context.Context) (branches.Meta, error) {
	rows, err := s.control.Read(ctx, findMeta, nil)
	if err != nil {
		return branches.Meta{}, s.fail("read meta node", err)
	}
	meta, err := s.readMeta(rows)
	return meta, s.fail("read meta node", err)
}

func (s *Store) readMeta(rows [][]any) (branches.Meta, error) {
	if len(rows) == 0 {
		return branches.Meta{}, branches.ErrNotInstalled
	}
	row, err := bolt.Only(rows, nil)
	if err != nil {
		return branches.Meta{}, err
	}
	version, numbered := row[0].(int64)
	id, idOK := row[1].(string)
	journal, journalOK := row[2].(string)
	place, placeOK := row[3].(string)
	sweeps, sweepsOK := row[4].(int64)
	switch {
	case !numbered || version < 1:
		return branches.Meta{}, errors.New("the node DatMeta has no layout")
	case version > layout:
		return branches.Meta{}, &branches.Error{
			Store: s.name, Doing: "open store", Way: "use a newer rhizodat",
			Cause: fmt.Sprintf("its nodes have layout version %d, this program knows up to %d", version, layout),
			Asks:  branches.Permanent,
		}
	case !idOK || !journalOK || !placeOK || !sweepsOK:
		return branches.Meta{}, errors.New("the node DatMeta is incomplete")
	}
	return branches.Meta{StoreID: id, JournalID: journal, JournalPlace: branches.Place(place), Sweeps: sweeps}, nil
}

// Bind ties the store to a journal, where the node still equals old.
func (s *Store) Bind(ctx context.Context, old, bound branches.Meta) (bool, error) {
	err := s.changeMeta(ctx, func(found branches.Meta) (string, map[string]any) {
		if found != old {
			return "", nil
		}
		return setJournal, map[string]any{"id": bound.JournalID, "place": string(bound.JournalPlace)}
	})
	if errors.Is(err, errSettled) {
		return false, nil
	}
	return err == nil, s.fail("bind store", err)
}

// RaiseSweeps raises the counter to at least to. Under the fence of a prepared
// transaction of ours nobody can write it, and that is when a sweep is needed: the
// counter is then raised as soon as this store has resolved that transaction. What
// such a sweep may miss is said in docs/drevo.md.
func (s *Store) RaiseSweeps(ctx context.Context, to int64) error {
	if fenced, err := s.fencedByUs(ctx); err != nil {
		return s.fail("raise sweeps", err)
	} else if fenced {
		s.owe(to)
		return nil
	}
	return s.fail("raise sweeps", s.raise(ctx, to))
}

func (s *Store) raise(ctx context.Context, to int64) error {
	err := s.changeMeta(ctx, func(found branches.Meta) (string, map[string]any) {
		if found.Sweeps >= to {
			return "", nil
		}
		return setSweeps, map[string]any{"to": to}
	})
	if errors.Is(err, errSettled) {
		return nil
	}
	return err
}

func (s *Store) owe(to int64) {
	for owed := s.owed.Load(); to > owed && !s.owed.CompareAndSwap(owed, to); owed = s.owed.Load() {
	}
}

// payment bounds the wait for the graph of an owed sweep. What is not paid now is
// by the next one.
const payment = time.Second

// pay raises the counter after the fence is down.
func (s *Store) pay(ctx context.Context) {
	owed := s.owed.Load()
	if owed == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, payment)
	defer cancel()
	if s.raise(ctx, owed) == nil {
		s.owed.CompareAndSwap(owed, 0)
	}
}

// fencedByUs: what is prepared in the graph has a gid of our form.
func (s *Store) fencedByUs(ctx context.Context) (bool, error) {
	all, err := s.held(ctx)
	for _, h := range all {
		if _, err := branches.ParseGID(h.gid); err == nil {
			return true, nil
		}
	}
	return false, err
}

// changeMeta writes what change makes of the meta node as it stands, in one
// transaction; errSettled where that is nothing.
func (s *Store) changeMeta(ctx context.Context, change func(branches.Meta) (string, map[string]any)) error {
	return s.control.Write(ctx, func(tx *bolt.Tx) error {
		rows, err := tx.Run(ctx, findMeta, nil)
		if err != nil {
			return err
		}
		found, err := s.readMeta(rows)
		if err != nil {
			return err
		}
		statement, params := change(found)
		if statement == "" {
			return errSettled
		}
		_, err = tx.Run(ctx, statement, params)
		return err
	})
}
