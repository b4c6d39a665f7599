package fake

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
)

// Work says what a branch has done at S2.
type Work struct {
	Vote    branches.Vote // what S3 will find; VotePrepare by default
	Payload []byte        // of VoteApply
	Certain bool          // the branch knows that it has written
	Doom    error         // why it cannot commit
}

// Branch is one open transaction of a process.
type Branch struct {
	store *Store
	id    branches.TxnID
	work  Work
}

// certainBranch also implements branches.Writer.
type certainBranch struct{ *Branch }

// Wrote implements branches.Writer.
func (certainBranch) Wrote() bool { return true }

var (
	_ branches.Branch = (*Branch)(nil)
	_ branches.Writer = certainBranch{}
)

// Begin opens a transaction on which work was done.
func (s *Store) Begin(id branches.TxnID, work Work) branches.Branch {
	if work.Vote == 0 {
		work.Vote = branches.VotePrepare
	}
	if work.Vote == branches.VoteApply && work.Payload == nil {
		work.Payload = []byte("rows")
	}
	s.s.world.mu.Lock()
	defer s.s.world.mu.Unlock()
	s.s.txns[id] = &txn{state: Open, wrote: work.Vote != branches.VoteReadOnly}
	b := &Branch{store: s, id: id, work: work}
	if work.Certain {
		return certainBranch{b}
	}
	return b
}

// server is the transaction at the server. REQUIRES the world's mutex.
func (b *Branch) server() *txn { return b.store.s.txns[b.id] }

// gone ends the transaction whose session has broken. REQUIRES as above.
func (b *Branch) gone() {
	if t := b.server(); t.state == Open {
		t.state = RolledBack
	}
}

// end moves the open transaction on. REQUIRES as above.
func (b *Branch) end(to TxnState) (answer, error) {
	t := b.server()
	if t.state != Open {
		return answer{}, ErrNoBranch
	}
	t.state = to
	return answer{wrote: t.wrote}, nil
}

func (b *Branch) do(ctx context.Context, r request) error {
	r.txn, r.own, r.lost = b.id, true, b.gone
	_, err := b.store.p.do(ctx, &b.store.s.server, r)
	if unsent := (*unsentError)(nil); errors.As(err, &unsent) && r.op != trace.Stage {
		b.store.s.world.mu.Lock()
		b.gone() // its session is closed: nobody has prepared it
		b.store.s.world.mu.Unlock()
	}
	return err
}

// Stage implements branches.Branch.
func (b *Branch) Stage(ctx context.Context, unit branches.Unit) (branches.Staged, error) {
	err := b.do(ctx, request{op: trace.Stage, effect: func(FaultKind) (answer, error) {
		t := b.server()
		if t.state != Open {
			return answer{}, ErrNoBranch
		}
		t.marker, t.txTime = unit.Marker, unit.TxTime
		return answer{vote: b.work.Vote}, nil
	}})
	if err != nil {
		return branches.Staged{}, err
	}
	staged := branches.Staged{Vote: b.work.Vote}
	if staged.Vote == branches.VoteApply {
		staged.Payload = b.work.Payload
	}
	return staged, nil
}

// Prepare implements branches.Branch.
func (b *Branch) Prepare(ctx context.Context, _ branches.GID) error {
	if b.work.Vote == branches.VoteReadOnly {
		return b.do(ctx, request{op: trace.Ping, effect: func(FaultKind) (answer, error) {
			if b.server().state != Open {
				return answer{}, ErrNoBranch
			}
			return answer{}, nil
		}})
	}
	return b.do(ctx, request{op: trace.Prepare, effect: func(FaultKind) (answer, error) { return b.end(InPrepare) }})
}

// Finish implements branches.Branch.
func (b *Branch) Finish(ctx context.Context, ref branches.Ref) error {
	return b.store.finish(ctx, ref, true)
}

// Commit implements branches.Branch.
func (b *Branch) Commit(ctx context.Context) error {
	return b.do(ctx, request{op: trace.Commit, effect: func(FaultKind) (answer, error) {
		if b.server().state == Tomb {
			return answer{}, ErrTomb
		}
		return b.end(Committed)
	}})
}

// Rollback implements branches.Branch.
func (b *Branch) Rollback(ctx context.Context) error {
	return b.do(ctx, request{op: trace.Rollback, effect: func(FaultKind) (answer, error) {
		if b.server().state != Open {
			return answer{}, nil // its session is lost, and it with it
		}
		return b.end(RolledBack)
	}})
}

// Doomed implements branches.Branch.
func (b *Branch) Doomed() error { return b.work.Doom }
