package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

var _ branches.Hinter = (*Store)(nil)

// Hint tells a wait for a lock that was given up (55P03) from others where
// another store of the unit lies in the same database: then the likely cause is
// the unit's own other branch, which is waiting for this one to end. It is in
// the error's Hint.
func (s *Store) Hint(ctx context.Context, err error, others map[string]branches.Store) {
	pgErr := serverError(err)
	if pgErr == nil || pgErr.Code != codeLockNotAvailable {
		return
	}
	for name, other := range others {
		store, ok := other.(*Store)
		if !ok || !sameDatabase(ctx, s, store) {
			continue
		}
		hint := fmt.Sprintf("Stores %s and %s of this transaction lie in one database: the likely cause is that this statement waited for a lock of the transaction's own statements in store %s. Write each table by one of the two stores.",
			s.name, name, name)
		pgErr.Hint = strings.TrimSpace(pgErr.Hint + " " + hint)
		return
	}
}

func sameDatabase(ctx context.Context, a, b *Store) bool {
	first, err := a.Place(ctx)
	if err != nil {
		return false
	}
	second, err := b.Place(ctx)
	return err == nil && databaseOf(first) == databaseOf(second)
}

// databaseOf is a place without its schema.
func databaseOf(p branches.Place) string {
	return string(p)[:strings.LastIndexByte(string(p), '/')+1]
}
