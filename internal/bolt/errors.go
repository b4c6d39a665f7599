package bolt

import (
	"context"
	"errors"
	"strings"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Codes of drevo's failures.
const (
	CodeOutdated   = "Neo.TransientError.Transaction.Outdated"
	CodeFenced     = "Neo.TransientError.Transaction.LockAcquisitionTimeout"
	CodeExecution  = "Neo.DatabaseError.Statement.ExecutionFailed"
	CodeSemantic   = "Neo.ClientError.Statement.SemanticError"
	CodeConstraint = "Neo.ClientError.Schema.ConstraintValidationFailed"
	CodeNoGraph    = "Neo.ClientError.Database.DatabaseNotFound"

	// An old drevo's fence, and what the driver makes of it.
	codeStopped       = "Neo.TransientError.Transaction.LockClientStopped"
	codeStoppedClient = "Neo.ClientError.Transaction.LockClientStopped"
)

// Texts of failures that share a code with others.
const (
	textWAL       = "write-ahead log write failed"
	textBroken    = "durable WAL is broken"
	textDuplicate = "duplicate title:"
)

// failure is the server's own answer, nil where it gave none.
func failure(err error) *neo4j.Neo4jError {
	e, ok := errors.AsType[*neo4j.Neo4jError](err)
	if !ok {
		return nil
	}
	return e
}

// Code is the code of the server's answer, empty where it gave none.
func Code(err error) string {
	if e := failure(err); e != nil {
		return e.Code
	}
	return ""
}

// Says reports whether the server answered with a text that holds part.
func Says(err error, part string) bool {
	e := failure(err)
	return e != nil && strings.Contains(e.Msg, part)
}

// IsOutdated reports that the graph has changed since BEGIN. Nothing was written.
func IsOutdated(err error) bool { return Code(err) == CodeOutdated }

// IsFenced reports that a prepared transaction holds the graph. Nothing was written.
func IsFenced(err error) bool {
	switch Code(err) {
	case CodeFenced, codeStopped, codeStoppedClient:
		return true
	}
	return false
}

// IsDuplicateTitle reports that a node has the title that was to be written.
func IsDuplicateTitle(err error) bool { return Says(err, textDuplicate) }

// IsWALFailure reports that the server could not write its log. What it had to write is not
// applied now, and may be after a restart; until then it refuses every write.
func IsWALFailure(err error) bool { return Says(err, textWAL) || Says(err, textBroken) }

// IsLost reports whether err, of a COMMIT or of anything else that ends a
// transaction, proves nothing: there was no answer, or one that a restart may
// belie.
func IsLost(err error) bool {
	e := failure(err)
	switch {
	case err == nil:
		return false
	case e == nil:
		return true
	}
	return !strings.HasPrefix(e.Code, "Neo.ClientError.") && !strings.HasPrefix(e.Code, "Neo.TransientError.")
}

// full are the texts of a full disk: EFBIG, ENOSPC and EDQUOT have no code of
// their own over Bolt.
var full = []string{"os error 28", "os error 122", "os error 27", "No space left on device"}

// IsFull reports that the server's disk is full. Only the writer whose flush failed is told;
// the others hear that the log is broken.
func IsFull(err error) bool {
	for _, text := range full {
		if Says(err, text) {
			return true
		}
	}
	return false
}

// Classify says what kind of error err is (design/drevo.md, section 7).
func Classify(err error) branches.Kind {
	e := failure(err)
	switch {
	case e == nil:
		var connectivity *neo4j.ConnectivityError
		if errors.As(err, &connectivity) || errors.Is(err, context.DeadlineExceeded) {
			return branches.Transient
		}
		return branches.Permanent
	case strings.HasPrefix(e.Code, "Neo.TransientError."), e.Code == codeStoppedClient:
		return branches.Transient
	case IsFull(err):
		return branches.StoreFull
	case e.Code == CodeConstraint, IsDuplicateTitle(err):
		return branches.Constraint
	}
	return branches.Permanent
}
