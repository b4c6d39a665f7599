package branches

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

// Kind says what an error asks of the caller. The zero Kind is Permanent: what
// nobody classified is not re-run.
type Kind int

// The kinds of the seeds' table, and Invalid for the unit's own validation.
const (
	Permanent  Kind = iota // re-running cannot help
	Transient              // worth re-running the whole unit
	StoreFull              // the store's device is out of space
	Constraint             // the store's own rule refused the data
	Invalid                // the unit's validation refused it
)

func (k Kind) String() string {
	switch k {
	case Permanent:
		return "permanent"
	case Transient:
		return "transient"
	case StoreFull:
		return "store full"
	case Constraint:
		return "constraint"
	case Invalid:
		return "invalid"
	}
	return "permanent"
}

// Classify asks the store what kind of error err is. A device out of space is
// StoreFull whoever raised it; an adapter without Classifier is asked
// IsRetryable.
func Classify(s Store, err error) Kind {
	var k interface{ Kind() Kind }
	if errors.As(err, &k) {
		return k.Kind()
	}
	if DeviceFull(err) {
		return StoreFull
	}
	if c, ok := s.(Classifier); ok {
		return c.Classify(err)
	}
	if r, ok := s.(Retryable); ok && r.IsRetryable(err) {
		return Transient
	}
	return Permanent
}

// DeviceFull reports whether the operating system has said that there is no room.
func DeviceFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Untrusted reports whether a server's certificate was refused. That looks like a
// connection that was lost, and another try meets the same certificate.
func Untrusted(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}

// ConnectionLost reports whether err is of a connection that could not be made or
// broke, in the words of the standard library. A client library has more of its
// own.
func ConnectionLost(err error) bool {
	if Untrusted(err) {
		return false
	}
	if _, ok := errors.AsType[net.Error](err); ok { // *url.Error is one, too
		return true
	}
	for _, lost := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// ErrNotInstalled says that the store has no marker or meta table. `rhizorecover init`
// makes them.
var ErrNotInstalled = errors.New("rhizodat: store not installed: run rhizorecover init with the same DSN")

// ErrReadOnlyUnit says that a write was tried inside sql.TxOptions{ReadOnly: true}.
var ErrReadOnlyUnit = errors.New("rhizodat: write refused: the transaction is read-only")

// unknownError marks an error that proves nothing about what happened.
type unknownError struct{ err error }

// Unknown marks err as an answer that proves nothing: the request may have
// taken effect, may take effect yet, or never will.
func Unknown(err error) error {
	if err == nil || IsUnknown(err) {
		return err
	}
	return &unknownError{err}
}

// IsUnknown reports whether err was marked by Unknown.
func IsUnknown(err error) bool {
	var u *unknownError
	return errors.As(err, &u)
}

func (e *unknownError) Error() string { return "outcome unknown: " + e.err.Error() }
func (e *unknownError) Unwrap() error { return e.err }

// Error is what an adapter adds to an error of its store: which store, what was
// being done, and where it is known the cause and the way out. The client
// library's own error stays findable with errors.As.
type Error struct {
	Store string
	Doing string // "prepare branch"
	Cause string // what it means; empty where the store's words say it
	Way   string // the way out; empty where there is none to name
	Err   error  // may be nil where Cause is the whole story

	// Asks is what it asks of the caller: the kind of Err, or another where more
	// is known where it was met.
	Asks Kind
	// ByHand: no further try of the adapter mends it, and Way says what does.
	ByHand bool
	// Mask takes out of the text what nobody may read, a password in the words of
	// a client library. Nil changes nothing.
	Mask func(text string) string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("rhizodat: " + e.Doing + ": store " + e.Store)
	if e.Cause != "" {
		b.WriteString(": " + e.Cause)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Way != "" {
		b.WriteString(" (" + e.Way + ")")
	}
	if e.Mask != nil {
		return e.Mask(b.String())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Kind is the error's kind for the whole unit.
func (e *Error) Kind() Kind { return e.Asks }

// StatementError is a statement that a unit cannot hold, or an argument that its
// store cannot take. It is PERMANENT. It has changed nothing, and the unit goes on
// without it.
//
// Adapters that read statements before the server does make it; what PostgreSQL
// refuses is PostgreSQL's own error.
type StatementError struct {
	Store  string
	Reason string
	Way    string // the way out; empty where there is none to name
}

func (e *StatementError) Error() string {
	text := "rhizodat: run statement: store " + e.Store + ": " + e.Reason
	if e.Way != "" {
		text += " (" + e.Way + ")"
	}
	return text
}

// Kind of a refused statement.
func (e *StatementError) Kind() Kind { return Permanent }

// Heuristic says that the store resolved a branch by itself, against the decision or
// without one. It is final; a person ends it.
type Heuristic struct {
	Store string
	GID   GID
	// Committed: the branch took effect although the unit was aborted.
	// False: it was rolled back although the unit was decided.
	Committed bool
	Evidence  string // what proved it
}

func (e *Heuristic) Error() string {
	if e.Committed {
		return fmt.Sprintf("rhizodat: abort branch %s: the store had committed it: %s", e.GID, e.Evidence)
	}
	return fmt.Sprintf("rhizodat: commit branch %s: the store had rolled it back: %s", e.GID, e.Evidence)
}
