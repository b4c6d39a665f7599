package drevo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

var (
	_ branches.Lister = (*Store)(nil)
	_ branches.Prober = (*Store)(nil)
)

const listPrepared = "CALL drevo.tx.listPrepared()"

// held is a prepared transaction as drevo lists it.
type held struct {
	gid    string
	since  time.Time
	writes int64
}

// Prepared lists the prepared transactions of this graph. A graph has one marker
// label, so where it is installed all that have our form are ours.
func (s *Store) Prepared(ctx context.Context) ([]branches.Prepared, error) {
	if _, err := s.Meta(ctx); err != nil {
		return nil, err
	}
	all, err := s.held(ctx)
	if err != nil {
		return nil, s.fail("list prepared transactions", err)
	}
	var list []branches.Prepared
	for _, h := range all {
		if gid, err := branches.ParseGID(h.gid); err == nil {
			list = append(list, branches.Prepared{GID: gid, Since: h.since, Ours: true, MayFinish: true})
		}
	}
	return list, nil
}

func (s *Store) held(ctx context.Context) ([]held, error) {
	rows, err := s.control.Read(ctx, listPrepared, nil)
	if err != nil {
		return nil, err
	}
	list := make([]held, 0, len(rows))
	for _, row := range rows {
		if len(row) != 3 {
			return nil, fmt.Errorf("a prepared transaction has %d columns", len(row))
		}
		gid, isText := row[0].(string)
		at, isTime := row[1].(string)
		writes, isNumber := row[2].(int64)
		if !isText || !isTime || !isNumber {
			return nil, errors.New("a prepared transaction is listed in another form")
		}
		since, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return nil, fmt.Errorf("time of a prepared transaction: %w", err)
		}
		list = append(list, held{gid, since, writes})
	}
	return list, nil
}

// Probe finds out whether the store can take part in a unit of several stores: it
// is installed, and its server knows prepared transactions. A good answer is kept.
func (s *Store) Probe(ctx context.Context) error {
	if s.probed.Load() {
		return nil
	}
	if _, err := s.Meta(ctx); err != nil {
		return err
	}
	if _, err := s.held(ctx); err != nil {
		return s.fail("probe store", err)
	}
	s.probed.Store(true)
	return nil
}
