package drevo

import (
	"context"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
)

// meta reads the journal's own node. branches.ErrNotInstalled where there is none.
func (j *Journal) meta(ctx context.Context) (own, error) {
	return metaOf(j.graph.Read(ctx, j.words.meta, j.metaParams(nil)))
}

// metaIn is meta inside of a transaction.
func (j *Journal) metaIn(ctx context.Context, tx *bolt.Tx) (own, error) {
	return metaOf(tx.Run(ctx, j.words.meta, j.metaParams(nil)))
}

func metaOf(rows [][]any, err error) (own, error) {
	if err == nil && len(rows) == 0 {
		err = branches.ErrNotInstalled
	}
	row, err := bolt.Only(rows, err)
	if err != nil {
		return own{}, err
	}
	return decodeMeta(row)
}

func (j *Journal) setMeta(ctx context.Context, tx *bolt.Tx, props map[string]any) error {
	return one(tx.Run(ctx, j.words.changeMeta, j.metaParams(props)))
}

func (j *Journal) metaParams(props map[string]any) map[string]any {
	return map[string]any{"meta": j.words.metaTitle(), "props": props}
}

// Identify implements journal.Registry.
func (j *Journal) Identify(ctx context.Context) (journal.Identity, error) {
	var id journal.Identity
	err := j.with(ctx, func() error {
		meta, err := j.meta(ctx)
		if err != nil {
			return err
		}
		id.ID, id.Place, id.Layout = meta.id, meta.place, meta.layout
		id.Here, err = j.graph.Place(ctx)
		return err
	})
	return id, journal.Wrap("identify journal", err)
}

// Place implements branches.Placer: which graph the journal is in, however it is
// reached.
func (j *Journal) Place(ctx context.Context) (branches.Place, error) {
	id, err := j.Identify(ctx)
	return id.Here, err
}

// Adopt implements journal.Adopter.
func (j *Journal) Adopt(ctx context.Context, place branches.Place) error {
	return journal.Wrap("adopt journal", j.with(ctx, func() error {
		return j.write(ctx, func(tx *bolt.Tx) error {
			if _, err := j.metaIn(ctx, tx); err != nil {
				return err
			}
			return j.setMeta(ctx, tx, map[string]any{"place": string(place)})
		})
	}))
}

// Clock implements journal.Timekeeper: the server's own clock.
func (j *Journal) Clock(ctx context.Context) (time.Time, error) {
	var meta own
	err := j.with(ctx, func() (err error) {
		meta, err = j.meta(ctx)
		return err
	})
	if err != nil {
		return time.Time{}, journal.Wrap("read journal's clock", err)
	}
	return time.UnixMilli(meta.nowMS), nil
}

// HighWater implements journal.Timekeeper. The records are read first: what
// compaction removes after that is in the node that is read then.
func (j *Journal) HighWater(ctx context.Context) (hlc.Time, error) {
	var highest hlc.Time
	err := j.with(ctx, func() error {
		row, err := bolt.Only(j.graph.Read(ctx, j.words.highest, nil))
		if err != nil {
			return err
		}
		if highest, err = asInt[hlc.Time](row[0]); err != nil {
			return err
		}
		meta, err := j.meta(ctx)
		highest = max(highest, meta.hlc, meta.fence)
		return err
	})
	return highest, journal.Wrap("read journal's highest time", err)
}

// Horizon implements journal.Compactor.
func (j *Journal) Horizon(ctx context.Context) (time.Time, error) {
	var meta own
	err := j.with(ctx, func() (err error) {
		meta, err = j.meta(ctx)
		return err
	})
	if err != nil || meta.horizonMS == 0 {
		return time.Time{}, journal.Wrap("read compaction horizon", err)
	}
	return time.UnixMilli(meta.horizonMS), nil
}
