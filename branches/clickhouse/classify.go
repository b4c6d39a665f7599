package clickhouse

import (
	"context"
	"errors"
	"strings"

	client "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rhizodat/rhizodat-go/branches"
)

var _ branches.Classifier = (*Store)(nil)

// Error codes of the server (errorCodeToName).
const (
	codeUnknownIdentifier = 47
	codeUnknownTable      = 60
	codeUnknownDatabase   = 81
	codeSameQueryID       = 216
	codeNotEnoughSpace    = 243
	codeTooManyParts      = 252
	codeUnfinished        = 341
	codeCancelled         = 394
	codeConstraint        = 469
	codeCancelledByClient = 735
)

// transient are the codes that another try may not meet.
var transient = map[int32]bool{
	159: true, // TIMEOUT_EXCEEDED
	160: true, // TOO_SLOW
	173: true, // CANNOT_ALLOCATE_MEMORY
	202: true, // TOO_MANY_SIMULTANEOUS_QUERIES
	203: true, // NO_FREE_CONNECTION
	209: true, // SOCKET_TIMEOUT
	210: true, // NETWORK_ERROR
	225: true, // NO_ZOOKEEPER
	236: true, // ABORTED
	241: true, // MEMORY_LIMIT_EXCEEDED
	242: true, // TABLE_IS_READ_ONLY
	254: true, // NO_ACTIVE_REPLICAS
	285: true, // TOO_FEW_LIVE_REPLICAS
	286: true, // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
	319: true, // UNKNOWN_STATUS_OF_INSERT
	439: true, // CANNOT_SCHEDULE_TASK
	473: true, // DEADLOCK_AVOIDED
	692: true, // TOO_MANY_MUTATIONS
	733: true, // TABLE_IS_BEING_RESTARTED
	745: true, // SERVER_OVERLOADED

	codeSameQueryID: true, codeCancelled: true, codeCancelledByClient: true, codeUnfinished: true,
}

// Classify says what kind of error err is, by the table of the protocol's
// section on error kinds.
func (*Store) Classify(err error) branches.Kind { return classify(err) }

func classify(err error) branches.Kind {
	switch {
	case err == nil:
		return branches.Permanent
	case branches.DeviceFull(err):
		return branches.StoreFull
	case errors.Is(err, context.Canceled):
		return branches.Permanent // the caller gave up: there is nobody to try again for
	}
	if ex, ok := errors.AsType[*client.Exception](err); ok {
		return classifyCode(ex)
	}
	if branches.ConnectionLost(err) || errors.Is(err, client.ErrAcquireConnTimeout) {
		return branches.Transient
	}
	return branches.Permanent
}

func classifyCode(ex *client.Exception) branches.Kind {
	switch {
	case ex.Code == codeNotEnoughSpace, full(ex.Message):
		return branches.StoreFull
	case ex.Code == codeConstraint:
		return branches.Constraint
	case ex.Code == codeTooManyParts && !strings.Contains(ex.Message, "partitions"):
		// The same code says "too many partitions for single INSERT block", which
		// is true of these rows for ever.
		return branches.Transient
	case transient[ex.Code]:
		return branches.Transient
	}
	return branches.Permanent
}

// full: a mutation, or a write behind a buffer, wraps the lack of space in
// other codes.
func full(message string) bool {
	return strings.Contains(message, "NOT_ENOUGH_SPACE") || strings.Contains(message, "No space left on device")
}

// code is the server's error code in err, or 0.
func code(err error) int32 {
	if ex, ok := errors.AsType[*client.Exception](err); ok {
		return ex.Code
	}
	return 0
}

// answered reports whether the server has answered, so that the statement is
// over.
func answered(err error) bool { return code(err) != 0 }

// missing reports whether err says that a table of ours is not there. The server
// names the table first and may show the whole query behind it.
func missing(err error) bool {
	ex, ok := errors.AsType[*client.Exception](err)
	if !ok || ex.Code != codeUnknownTable {
		return false
	}
	named, _, _ := strings.Cut(ex.Message, " in scope ")
	return strings.Contains(named, appliedTable) || strings.Contains(named, metaTable)
}
