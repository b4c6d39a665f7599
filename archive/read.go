package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Manifest reads the manifest; an archive that nobody has pushed to has an empty
// one.
func (a *Archive) Manifest(ctx context.Context) (Manifest, error) {
	m, _, err := a.manifest(ctx)
	return m, err
}

// Records reads the records of one part, by dat_txn. *Damaged where it is not
// what the manifest says.
func (a *Archive) Records(ctx context.Context, part Part) ([]journal.Record, error) {
	data, _, err := a.bucket.Get(ctx, part.Name)
	if errors.Is(err, ErrAbsent) {
		return nil, &Damaged{Key: part.Name, Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("rhizodat: read archive's part: %w", err)
	}
	return decode(data, part)
}

// Find reads the record of one transaction, from the first part that holds it.
// journal.ErrNotFound when none does.
func (a *Archive) Find(ctx context.Context, txn branches.TxnID) (journal.Record, error) {
	m, err := a.Manifest(ctx)
	if err != nil {
		return journal.Record{}, err
	}
	id := txn.String()
	for _, part := range m.Parts {
		if id < part.First || id > part.Last {
			continue
		}
		records, err := a.Records(ctx, part)
		if err != nil {
			return journal.Record{}, err
		}
		if i := slices.IndexFunc(records, func(r journal.Record) bool { return r.Txn == txn }); i >= 0 {
			return records[i], nil
		}
	}
	return journal.Record{}, journal.ErrNotFound
}

// Verified is what Verify has found so far.
type Verified struct {
	Parts   int `json:"parts"`   // named by the manifest and whole
	Records int `json:"records"` // different ones
	// Twice are records in more than one part: a push came between its manifest
	// and its journal's delete.
	Twice int `json:"twice"`
	// Unnamed are parts that no manifest names: of a push that is under way, or
	// was cut short.
	Unnamed []string `json:"unnamed,omitempty"`
	// Damage is what is wrong.
	Damage []string `json:"damage,omitempty"`
}

// Verify reads every part and holds it against the manifest. progress, which may
// be nil, is called after each part. What is wrong is in the answer; an error
// means that it could not be looked.
func (a *Archive) Verify(ctx context.Context, progress func(Verified)) (Verified, error) {
	var v Verified
	m, err := a.Manifest(ctx)
	if err != nil {
		return v, err
	}
	seen, named := map[branches.TxnID]bool{}, map[string]bool{}
	for _, part := range m.Parts {
		if named[part.Name] {
			v.Damage = append(v.Damage, part.Name+" is named twice")
			continue
		}
		named[part.Name] = true
		records, err := a.Records(ctx, part)
		if damaged, ok := errors.AsType[*Damaged](err); ok {
			v.Damage = append(v.Damage, damaged.Error())
			continue
		}
		if err != nil {
			return v, err
		}
		v.Parts++
		for _, rec := range records {
			if seen[rec.Txn] {
				v.Twice++
				continue
			}
			seen[rec.Txn] = true
			v.Records++
		}
		if progress != nil {
			progress(v)
		}
	}
	keys, err := a.bucket.List(ctx, partPrefix)
	if err != nil {
		return v, fmt.Errorf("rhizodat: list archive's parts: %w", err)
	}
	for _, key := range keys {
		if !named[key] {
			v.Unnamed = append(v.Unnamed, key)
		}
	}
	return v, nil
}
