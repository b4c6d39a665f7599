package iceberg

import (
	"context"
	"errors"

	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
	"github.com/aws/smithy-go"
	"github.com/jackc/pgx/v5/pgconn"
	"gocloud.dev/gcerrors"
	"modernc.org/sqlite"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
)

var _ branches.Classifier = (*Store)(nil)

// Classify says what kind of error err is: a conflict of two commits and a lost
// server are TRANSIENT, a warehouse or a catalog without room is STORE_FULL,
// everything else PERMANENT.
func (*Store) Classify(err error) branches.Kind { return classify(err) }

// Result codes of SQLite (https://sqlite.org/rescode.html).
const (
	sqliteBusy   = 5
	sqliteLocked = 6
	sqliteFull   = 13
)

func classify(err error) branches.Kind {
	switch {
	case err == nil:
		return branches.Permanent
	case branches.DeviceFull(err):
		return branches.StoreFull
	case errors.Is(err, context.Canceled):
		return branches.Permanent // the caller gave up: there is nobody to try again for
	case change.IsConflict(err), errors.Is(err, change.ErrConflict), errors.Is(err, table.ErrCommitDiverged),
		errors.Is(err, rest.ErrCommitStateUnknown), errors.Is(err, rest.ErrServiceUnavailable), errors.Is(err, rest.ErrServerError):
		return branches.Transient
	}
	if own, ok := errors.AsType[interface {
		error
		Kind() branches.Kind
	}](err); ok {
		return own.Kind()
	}
	if kind, ok := classifySQL(err); ok {
		return kind
	}
	if kind, ok := classifyS3(err); ok {
		return kind
	}
	if connectionLost(err) {
		return branches.Transient
	}
	return branches.Permanent
}

func classifySQL(err error) (branches.Kind, bool) {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqliteBusy, sqliteLocked:
			return branches.Transient, true
		case sqliteFull:
			return branches.StoreFull, true
		}
		return branches.Permanent, true
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return 0, false
	}
	switch {
	case e.Code == "53100":
		return branches.StoreFull, true
	case e.Code[:2] == "08", e.Code == "40001", e.Code == "40P01", e.Code == "55P03", e.Code == "57014",
		e.Code == "57P01", e.Code == "57P02", e.Code == "57P03", e.Code == "53300", e.Code == "25006", e.Code == "25P03":
		return branches.Transient, true
	}
	return branches.Permanent, true
}

// classifyS3: gocloud's codes cover every object store; the SDK's own tells more
// of a server that is not there.
func classifyS3(err error) (branches.Kind, bool) {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		switch e.ErrorCode() {
		case "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "ThrottlingException", "503", "500":
			return branches.Transient, true
		case "QuotaExceeded", "InsufficientCapacity", "XMinioStorageFull":
			return branches.StoreFull, true
		}
		return branches.Permanent, true
	}
	// ResourceExhausted is too many requests: an object store has no end.
	code := gcerrors.Code(err)
	return branches.Transient, code == gcerrors.Internal || code == gcerrors.DeadlineExceeded || code == gcerrors.ResourceExhausted
}

// connectionLost: that of the catalog's server, too.
func connectionLost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return !branches.Untrusted(err)
	}
	return branches.ConnectionLost(err)
}
