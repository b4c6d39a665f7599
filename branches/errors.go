package branches

import (
	"errors"
	"fmt"
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
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
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
