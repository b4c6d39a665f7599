package clickhouse

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Stage is S3: what could make the insert fail after the decision is looked for
// now. With one branch the rows stay here, since no journal will carry them.
func (b *Branch) Stage(ctx context.Context, unit branches.Unit) (branches.Staged, error) {
	if err := b.Doomed(); err != nil {
		return branches.Staged{}, err
	}
	b.unit = unit
	staged, err := b.stage(ctx)
	if err != nil {
		// Nor may it be committed in another way.
		return branches.Staged{}, b.dooms(err)
	}
	b.staged = true
	return staged, nil
}

func (b *Branch) stage(ctx context.Context) (branches.Staged, error) {
	s := b.session.store
	if b.buffer.empty() {
		return branches.Staged{Vote: branches.VoteReadOnly}, nil
	}
	var err error
	if b.payload, err = b.buffer.payload(); err != nil {
		return branches.Staged{}, s.fail("stage branch", err)
	}
	if b.unit.Marker {
		if b.unit.TxTime <= 0 {
			return branches.Staged{}, s.fail("stage branch", errNoTime)
		}
		if err := b.examine(ctx); err != nil {
			return branches.Staged{}, err
		}
	}
	staged := branches.Staged{Vote: branches.VoteApply, Payload: []byte{}}
	if !b.unit.OnePhase {
		if staged.Payload, err = b.payload.encode(); err != nil {
			return branches.Staged{}, s.fail("stage branch", err)
		}
	}
	return staged, nil
}

// examine looks at the tables and at the marker again, side by side.
func (b *Branch) examine(ctx context.Context) error {
	s := b.session.store
	looked := make(chan error, 1)
	go func() {
		fate, err := s.lookUp(ctx, b.txn)
		switch {
		case err != nil:
			err = s.fail("stage branch", err)
		case fate != branches.FateAbsent:
			err = s.stands("stage branch", fate)
		}
		looked <- err
	}()
	return errors.Join(b.examineTables(ctx), <-looked)
}

func (b *Branch) examineTables(ctx context.Context) error {
	s := b.session.store
	seen := b.buffer.tables()
	names := make([]tableName, len(seen))
	for i, t := range seen {
		names[i] = t.name
	}
	now, err := s.describe(ctx, names)
	if err != nil {
		return s.fail("stage branch", err)
	}
	for _, t := range seen {
		if !t.same(now[t.name]) {
			return s.busy("stage branch", "table "+t.name.String()+" was changed while the unit ran", nil)
		}
		if cause, way := s.fit(now[t.name]); cause != "" {
			return s.refuse("stage branch", cause, way)
		}
	}
	return b.checkConstraints(ctx, now)
}

// stands is the error of a unit whose marker is there before its time.
func (s *Store) stands(doing string, fate branches.Fate) error {
	cause := "a marker of this unit stands: the unit comes twice, or two stores share the table"
	if fate == branches.FateNever {
		cause = "this unit was given up: it was settled by another"
	}
	return s.refuse(doing, cause, "")
}
