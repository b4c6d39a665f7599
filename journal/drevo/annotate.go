package drevo

import (
	"context"
	"fmt"
	"slices"

	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Annotate implements journal.Journal. Payloads and keys that the caller does not
// have are left where they are.
func (j *Journal) Annotate(ctx context.Context, rec journal.Record) error {
	note, err := encodeNote(rec.Note)
	if err != nil {
		return journal.Wrap("annotate journal record", err)
	}
	return journal.Wrap("annotate journal record", j.with(ctx, func() error {
		return j.write(ctx, func(tx *bolt.Tx) error {
			stands, found, err := j.find(ctx, tx, rec.Txn)
			if err != nil {
				return err
			}
			if !found || stands.State != rec.State || stands.UpdatedMS != rec.UpdatedMS {
				return &journal.Conflict{Txn: rec.Txn, Found: stands.State}
			}
			props := map[string]any{"note": note}
			if slices.ContainsFunc(rec.Branches, journal.Branch.Amended) {
				if props["branches"], err = amend(stands.Branches, rec.Branches); err != nil {
					return err
				}
			}
			return j.set(ctx, tx, stands, props)
		})
	}))
}

// amend is the text of the branches with the outcomes of others.
func amend(stands, amended []journal.Branch) (string, error) {
	for _, b := range amended {
		i := slices.IndexFunc(stands, func(s journal.Branch) bool { return s.Store == b.Store && s.GID == b.GID })
		if i < 0 {
			return "", fmt.Errorf("the record has no branch %s", b.GID)
		}
		stands[i].Outcome, stands[i].Reason = b.Outcome, b.Reason
	}
	return encodeBranches(stands)
}
