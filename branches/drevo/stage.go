package drevo

import (
	"context"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
)

// Stage is S3: it writes the marker into the branch's own transaction. A branch
// none of whose statements can have written is not prepared.
func (b *Branch) Stage(ctx context.Context, unit branches.Unit) (branches.Staged, error) {
	if b.doom != nil {
		return branches.Staged{}, b.doom
	}
	if !b.Wrote() {
		return b.votes(branches.VoteReadOnly), nil
	}
	if unit.Marker {
		b.marked = true
		if err := b.mark(ctx, unit); err != nil {
			return branches.Staged{}, err
		}
	}
	return b.votes(branches.VotePrepare), nil
}

func (b *Branch) votes(vote branches.Vote) branches.Staged {
	b.vote = vote
	return branches.Staged{Vote: vote}
}

// mark creates the marker. Its title is the engine's to keep unique: a marker or
// a tombstone that stands raises here, one that came since BEGIN at the end.
func (b *Branch) mark(ctx context.Context, unit branches.Unit) error {
	s := b.session.store
	if unit.TxTime <= 0 {
		return s.fail("stage branch", errNoTime)
	}
	_, err := b.ask(ctx, createMarker, markerParams(unit.Txn, unit.TxTime))
	if bolt.IsDuplicateTitle(err) {
		return &branches.Error{
			Store: s.name, Doing: "stage branch", Err: err,
			Cause: "a marker of this unit stands: it was settled by another, or two stores share the graph",
			Asks:  branches.Permanent,
		}
	}
	return s.fail("stage branch", err)
}
