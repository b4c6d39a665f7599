package sqljournal

import (
	"context"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal/internal/places"
)

// Stmt is one statement. Args are int64, string or nil; parameters are written
// $1, $2, … and carry their type in the text, because not every protocol mode
// can infer it.
type Stmt struct {
	Text string
	Args []any
	Rows bool // it returns rows
	// Under is an expression that takes a lock, evaluated in an earlier
	// statement of the same transaction; empty for none.
	Under string
}

// Do is a statement that returns no rows.
func Do(text string, args ...any) Stmt { return Stmt{Text: text, Args: args} }

// Ask is a statement that returns rows.
func Ask(text string, args ...any) Stmt { return Stmt{Text: text, Args: args, Rows: true} }

// Result is the answer to one statement: the affected rows, and the returned
// ones. Values are int64, string or nil.
type Result struct {
	Affected int64
	Rows     [][]any
}

// Mode is what a transaction is for.
type Mode int

// The modes. A transaction that changes something says whether it is forced to
// the disk before it is acknowledged.
const (
	Read Mode = iota
	Unforced
	Forced
)

// Pool hands out the journal's places.
type Pool interface {
	// Take waits for a place as long as ctx allows. spare also takes the place
	// that is kept back from commits.
	Take(ctx context.Context, spare bool) (Conn, error)
	// Reserved takes the place that is for one purpose alone.
	Reserved(ctx context.Context, purpose places.Purpose) (Conn, error)
	// Close ends the connections that are not taken now, and the others when
	// they are released.
	Close() error
}

// Conn is one place and, once it was needed, its connection. It is not safe
// for concurrent use.
type Conn interface {
	// Ready makes sure that there is a connection that has not failed.
	Ready(ctx context.Context) error

	// Run executes stmts in one transaction, READ COMMITTED and READ WRITE
	// whatever the role's defaults are, in one round trip where the client can,
	// and commits it. Results are returned only when the commit was
	// acknowledged with the durability that was asked for. After an error
	// nothing is known; the next call takes a new connection if this one failed.
	// In mode Read a row that the role may not see is an error. A missing table
	// is branches.ErrNotInstalled.
	Run(ctx context.Context, mode Mode, stmts ...Stmt) ([]Result, error)

	// Work is the same, Forced, for statements that depend on each other's answers.
	// An error of f rolls everything back.
	Work(ctx context.Context, f func(run func(Stmt) (Result, error)) error) error

	// Release gives the place back.
	Release()
}

// Dialect is what SQL databases spell or do differently.
type Dialect interface {
	// Names fixes where the tables are. It is called once, over the first
	// connection; without a connection (nil) it answers as far as it can.
	Names(ctx context.Context, conn Conn) (Names, error)
	// Spelling returns the words of the shared statements.
	Spelling(Names) Spelling
	// Layout returns the statements that make layout version v out of v-1.
	// They are idempotent where the database's SQL allows it.
	Layout(v int, n Names) []string
	// Place asks the server where this journal is.
	Place(ctx context.Context, conn Conn, n Names) (branches.Place, error)
	// Classify says what kind of error of this database err is.
	Classify(err error) branches.Kind
}

// Names of the journal's tables, quoted and with their schema, fixed at the
// first connection.
type Names struct {
	Schema  string // as the server says it, not quoted; empty where there are none
	Journal string
	Meta    string
	Store   string
	Lease   string
	Step    string
	Fence   string // the sequence of the read fence; empty where Meta holds it
	// SQL expressions for the journal's own row, evaluated by init.
	ID, Place string
}

// Spelling is how a dialect writes what the shared statements need.
type Spelling struct {
	UUID     string // type of dat_txn
	Now      string // the database's clock, milliseconds since 1970
	Greatest string // the function of two integers
	Fence    string // scalar expression: the read fence
	// Share is the expression that S4 is under: the lock that waits for a
	// reader who is raising the fence. Empty where one writer at a time makes it
	// needless.
	Share string
	// Lock is the first statement of Install, which keeps others out; empty
	// where a transaction does that.
	Lock string
	// Tables is a query of two numbers, 0 or 1: whether there is the table Meta,
	// and the table Journal.
	Tables string
	// Among is the condition that dat_txn is one of parameter $1, which List
	// encodes.
	Among string
	List  func(ids []string) string
	// Records is a query of the columns ("name type") of the objects of a JSON
	// list, which the parameter holds.
	Records func(param string, columns ...string) string
	Rows    RowLocks
	// Light is the expression for branches without large payloads.
	Light string
	// Param rewrites $1; nil keeps it.
	Param func(text string) string
}
