// Package branches is the contract between rhizodat and a store.
//
// A meta-transaction has one branch per store it touches. A store takes part
// by implementing [Store], [Session] and [Branch]; everything else a store may
// be able to do is an interface of its own that the coordinator finds by type
// assertion, as database/sql/driver does:
//
//	Store   [Lister] [Classifier] [Retryable] [Hinter] [Capacity] [Placer]
//	        [Keeper] [Installer] [Examiner] [Cleaner] [Prober]
//	Session [Pinger] [Copier]
//	Branch  [Writer] [Beginner] [Savepointer] [Capacity]
//
// The life of a branch, in the steps of the commit protocol:
//
//	Session.Begin -> Session.Exec/Query ...   S2 work
//	Branch.Stage                              S3 stage
//	Branch.Prepare                            S5 prepare   (two-phase stores)
//	Branch.Finish                             S8 release / S9 roll forward
//	Branch.Commit                             the only writing branch, or one that wrote nothing
//	Branch.Rollback                           before Prepare
//
// From the moment Prepare was called, the branch no longer belongs to its
// session: [Store.Finish] and [Store.Abort] end it from any process, by its
// [Ref] alone. They are what recovery calls.
//
// INVARIANT B1: Finish and Abort are idempotent and safe to run in several
// processes at once.
// INVARIANT B2: an error that does not prove what happened is wrapped by
// [Unknown]; every other error of Prepare or Commit means "nothing took effect".
// INVARIANT B3: a branch's changes are invisible to others until Finish or
// Commit, and gone after Rollback or Abort.
//
// The suite branches/branchtest holds every store to this page.
package branches

import (
	"context"
	"database/sql/driver"

	"github.com/rhizodat/rhizodat-go/hlc"
)

// Store is a participant: one configured store. It is opened once per
// connector (or recovery worker), must not connect when it is opened, and is
// safe for concurrent use.
type Store interface {
	// Connect opens a session for one driver connection.
	Connect(ctx context.Context) (Session, error)

	// Finish rolls a decided branch forward: it commits the prepared
	// transaction or applies the payload. It is idempotent (B1). It returns
	// nil only when the store itself proves that the branch is committed,
	// *Heuristic when the store proves that it never can be, and any other
	// error when it has to be called again.
	Finish(ctx context.Context, ref Ref) error

	// Abort rolls a branch back whose unit is durably ABORTED: a prepared
	// transaction, staged files. A branch that is not there is a success.
	// *Heuristic reports a branch that was committed instead.
	Abort(ctx context.Context, ref Ref) error

	// Applied looks up the marker of txn, and changes nothing.
	Applied(ctx context.Context, txn TxnID) (Fate, error)

	// Settle ends the doubt about a one-phase commit whose answer was lost:
	// it makes sure that the commit either has happened (FateApplied) or never
	// can (FateNever). It waits for a backend that is still committing.
	// An error proves nothing.
	Settle(ctx context.Context, txn TxnID) (Fate, error)

	// Close frees what the store holds. Prepared branches stay as they are.
	Close() error
}

// Session is one driver connection's session with a store. database/sql
// serialises its calls. At most one branch is open on it at a time; while one
// is, its statements belong to that branch.
type Session interface {
	Exec(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error)
	Query(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error)
	Prepare(ctx context.Context, query string) (driver.Stmt, error)

	// Begin opens the branch of txn. A session that turns out dead before
	// anything happened returns driver.ErrBadConn: the caller begins once more
	// on a new one.
	Begin(ctx context.Context, opts BeginOptions) (Branch, error)

	// Usable reports whether another unit may run on this session: it is idle
	// and has had no I/O error.
	Usable() bool

	// Close ends the session. An unprepared branch dies with it, a prepared
	// one stays.
	Close() error
}

// BeginOptions say how a branch begins.
type BeginOptions struct {
	Txn       TxnID
	Isolation driver.IsolationLevel // 0 is the store's own default
	ReadOnly  bool
	// Shared is true when the unit may reach more than one store: the branch
	// then bounds its waits for locks, since two stores can deadlock with each
	// other unseen by either server.
	Shared bool
}

// Branch is one store's part of one unit, from Begin to its end. Its calls are
// serialised with those of its session.
type Branch interface {
	// Stage is S3: everything likely to fail is checked here, the marker is
	// written, a payload is encoded. It votes on how the branch is to end.
	// When unit.OnePhase is set the branch may put its work off to Commit; one that
	// is certain to vote VotePrepare may put off to Prepare what would cost it a
	// request of its own.
	Stage(ctx context.Context, unit Unit) (Staged, error)

	// Prepare is S5. For a branch that voted VoteReadOnly it proves that the
	// session, and with it the locks that guard the unit, is still alive.
	// An error that is not Unknown means the branch is already rolled back.
	Prepare(ctx context.Context, gid GID) error

	// Finish is S8 or S9 over the branch's own session where it still lives,
	// else what Store.Finish does.
	Finish(ctx context.Context, ref Ref) error

	// Commit ends the branch in one phase. An error that is not Unknown means
	// that nothing took effect.
	Commit(ctx context.Context) error

	// Rollback ends a branch that is not prepared. It leaves the session
	// usable where it can.
	Rollback(ctx context.Context) error

	// Doomed returns the error that left this branch unable to commit, or nil.
	Doomed() error
}

// Unit is what a branch learns of its meta-transaction at S3.
type Unit struct {
	Txn    TxnID
	TxTime hlc.Time
	// OnePhase: this is the unit's only branch, Commit follows.
	OnePhase bool
	// Marker: leave the applied marker. False where one store and no journal
	// make the driver the store's own driver and nothing else.
	Marker bool
	// Notice holds a branch to two phases even though no row was written: a
	// statement of it may take effect at COMMIT (NOTIFY).
	Notice bool
}

// Vote is a branch's answer to Stage.
type Vote int

// The votes. The zero Vote is none of them and is refused by the coordinator.
const (
	_            Vote = iota
	VoteReadOnly      // wrote nothing; ended by Commit after the unit's outcome is in force
	VotePrepare       // wrote; prepared at S5, released at S8
	VoteApply         // carries a payload that is applied at S9, after the decision
)

func (v Vote) String() string {
	switch v {
	case VoteReadOnly:
		return "read-only"
	case VotePrepare:
		return "prepare"
	case VoteApply:
		return "apply"
	}
	return "no vote"
}

// Staged is a branch's vote, with what S9 needs.
type Staged struct {
	Vote    Vote
	Payload []byte // self-contained; nil but for VoteApply
}

// Ref names a branch to a process that did not run it.
type Ref struct {
	Txn      TxnID
	Store    string
	GID      GID
	TwoPhase bool
	TxTime   hlc.Time // the final one, from the journal record
	Payload  []byte
}

// Fate is what a store proves about one meta-transaction.
type Fate int

// The fates. The zero Fate proves nothing.
const (
	FateUnknown Fate = iota
	FateAbsent       // no marker: not committed so far
	FateApplied      // committed
	FateNever        // a tombstone stands: it never can commit
)

func (f Fate) String() string {
	switch f {
	case FateUnknown:
		return "unknown"
	case FateAbsent:
		return "absent"
	case FateApplied:
		return "applied"
	case FateNever:
		return "never"
	}
	return "unknown"
}
