package clickhouse

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Stage is S3: what could make the insert fail after the decision is looked for
// now. With one branch the rows stay here, since no journal will carry them.
func (b *Branch) Stage(ctx context.Context, unit branches.Unit) (branches.Staged, error) {
	s := b.session.store
	if err := b.Doomed(); err != nil {
		return branches.Staged{}, err
	}
	b.unit, b.staged = unit, true
	if b.buffer.empty() {
		return branches.Staged{Vote: branches.VoteReadOnly}, nil
	}
	sealed, err := b.buffer.payload()
	if err != nil {
		return branches.Staged{}, s.fail("stage branch", b.dooms(err))
	}
	b.payload = sealed
	if unit.Marker {
		if unit.TxTime <= 0 {
			return branches.Staged{}, s.fail("stage branch", errNoTime)
		}
		if err := b.examine(ctx); err != nil {
			return branches.Staged{}, err
		}
	}
	staged := branches.Staged{Vote: branches.VoteApply, Payload: []byte{}}
	if !unit.OnePhase {
		staged.Payload = sealed.encode()
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
