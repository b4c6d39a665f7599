package branches

import (
	"context"
	"time"
)

// Lister is a store that holds prepared transactions.
type Lister interface {
	// Prepared lists every prepared transaction of this store (not those of
	// other databases of the same server) whose gid has our form. A failed or
	// partial listing is an error: nothing may be concluded from it.
	Prepared(ctx context.Context) ([]Prepared, error)
}

// Prepared is a prepared transaction as a store lists it.
type Prepared struct {
	GID   GID
	Since time.Time
	Owner string
	// Ours: the store proves that it belongs to the deployment whose marker
	// table this store is configured with.
	Ours bool
	// MayFinish: the session's role may commit it or roll it back.
	MayFinish bool
}

// Classifier maps the store's errors to kinds. A store without it is
// classified by Retryable.
type Classifier interface{ Classify(err error) Kind }

// Retryable is what an adapter without Classify offers.
type Retryable interface{ IsRetryable(err error) bool }

// Capacity is a store that can tell its free space, or a branch that can tell
// the space of where it has written; the branch is asked first.
type Capacity interface {
	// Free returns the free bytes; ok is false where the store cannot tell.
	Free(ctx context.Context) (bytes int64, ok bool, err error)
}

// Hinter is a store that can name the likely cause of a statement's error by what
// it knows of the other stores that the unit has reached.
type Hinter interface {
	// Hint adds the cause to err, where it has one. err stays the value it is: programs look at a store's own error directly.
	Hint(ctx context.Context, err error, others map[string]Store)
}

// Place says where a store's markers live, in the server's own words, so that
// two spellings of one place compare equal.
type Place string

// Placer is a store that knows where it is.
type Placer interface {
	Place(ctx context.Context) (Place, error)
}

// Meta is the one row beside the marker table that ties a store to its journal.
type Meta struct {
	StoreID      string // random, made by init
	JournalID    string // of the journal this store belongs to; empty before init
	JournalPlace Place
	Sweeps       int64 // raised by every sweep, after the journal's own count of them
}

// Keeper is a store that keeps a Meta row.
type Keeper interface {
	// Meta reads the row. ErrNotInstalled when there is none.
	Meta(ctx context.Context) (Meta, error)
	// Bind writes JournalID and JournalPlace where the row still equals old,
	// and reports whether it did.
	Bind(ctx context.Context, old, bound Meta) (bool, error)
	// RaiseSweeps sets the counter to the greater of its value and to.
	RaiseSweeps(ctx context.Context, to int64) error
}

// Installer is a store that needs tables of ours.
type Installer interface {
	// Install creates or upgrades the marker and meta tables; it is idempotent.
	Install(ctx context.Context) error
	// InstallSQL is what Install would run, for a DBA to run instead.
	InstallSQL() string
}

// Severity of a Finding.
type Severity int

// The severities, mildest first.
const (
	SeverityOK Severity = iota
	SeverityNote
	SeverityWarning
	SeverityError
)

func (s Severity) String() string {
	switch s {
	case SeverityOK:
		return "ok"
	case SeverityNote:
		return "note"
	case SeverityWarning:
		return "warning"
	case SeverityError:
		return "error"
	}
	return "unknown"
}

// Finding is one line of a doctor's report.
type Finding struct {
	Severity Severity
	Check    string // short, constant: "max_prepared_transactions"
	Text     string // what was seen
	Way      string // the way out, empty when all is well
}

// Examiner is a store that can examine its own set-up.
type Examiner interface {
	Examine(ctx context.Context) ([]Finding, error)
}

// Prober is a store that may turn out unable to take part in a unit of several
// stores (prepared transactions disabled, no marker table). It is asked when a
// unit first reaches a second store, before that unit writes there, and keeps a
// good answer.
type Prober interface {
	Probe(ctx context.Context) error
}

// Cleaner is a store whose markers can be removed.
type Cleaner interface {
	// RemoveMarkers deletes the markers of txns.
	RemoveMarkers(ctx context.Context, txns []TxnID) error
	// RemoveMarkersBefore deletes at most limit markers of units born and staged before t
	// that keep does not name, oldest first, and returns how many it deleted.
	RemoveMarkersBefore(ctx context.Context, t time.Time, keep []TxnID, limit int) (int, error)
}

// Describer is a store that can say what a payload of its own holds.
type Describer interface {
	// Describe tells in lines of text what Finish would do for ref, and what has
	// become of it so far. It changes nothing, and shows no values of rows.
	Describe(ctx context.Context, ref Ref) ([]string, error)
}

// Pinger is a session that can prove it is alive.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Copier is a session with a bulk path.
type Copier interface {
	// CopyFrom writes rows (nil ends them) to table and returns their number.
	CopyFrom(ctx context.Context, table string, columns []string, rows func() ([]any, error)) (int64, error)
}

// Raw is a session that hands out its client's own connection, for Conn.Raw.
type Raw interface{ Raw() any }

// Writer is a branch that may know before Stage that it has written.
type Writer interface {
	// Wrote is true only when it is certain that Stage will vote VotePrepare;
	// its S3 can then run beside S4.
	Wrote() bool
}

// Beginner is a branch whose beginning may wait for its first statement.
type Beginner interface {
	// Begun is false while nothing of the branch has reached the store. A call of
	// its session, or a savepoint of its own, may then return driver.ErrBadConn:
	// the caller begins the branch once more on a new session.
	Begun() bool
}

// Savepointer is a branch with savepoints. Names are the driver's own.
// A branch without it is doomed when the unit rolls back to a savepoint after it has written.
type Savepointer interface {
	Savepoint(ctx context.Context, name string) error
	RollbackTo(ctx context.Context, name string) error
	Release(ctx context.Context, name string) error
}
