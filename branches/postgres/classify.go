package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Classify says what kind of error err is, by the table of the protocol's
// section on error kinds.
func (*Store) Classify(err error) branches.Kind { return classify(err) }

func classify(err error) branches.Kind {
	switch {
	case err == nil:
		return branches.Permanent
	case branches.DeviceFull(err):
		return branches.StoreFull
	case callerGaveUp(err):
		return branches.Permanent
	}
	if pgErr := serverError(err); pgErr != nil {
		return classifyCode(pgErr)
	}
	if connectionLost(err) || errors.Is(err, errUnsynced) {
		return branches.Transient
	}
	return branches.Permanent
}

// callerGaveUp: the caller's own context ended, so there is nobody to try
// again for. A deadline inside of a connect may be connect_timeout instead.
func callerGaveUp(err error) bool {
	if errors.Is(err, context.Canceled) {
		return true
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return errors.Is(err, context.DeadlineExceeded) && !connecting
}

func classifyCode(err *pgconn.PgError) branches.Kind {
	switch err.Code {
	case codeSerialization, codeDeadlock, codeNoSuchStatement, codeLockNotAvailable,
		codeAdminShutdown, codeCrashShutdown, codeCannotConnect, codeIdleTimeout,
		codeTooManyClients, codeIdleInTxTimeout, codeReadOnly, codeCanceled:
		return branches.Transient
	case codeOutOfMemory:
		if slotsUsedUp(err) {
			return branches.Transient
		}
	case codeNotSupported:
		switch err.Routine {
		case "RevalidateCachedQuery": // "cached plan must not change result type": pgx has dropped the plan
			return branches.Transient
		case "check_transaction_read_only", "check_XactReadOnly": // READ WRITE on what is a standby since a fail-over
			return branches.Transient
		}
	case codeDiskFull:
		return branches.StoreFull
	}
	switch {
	case strings.HasPrefix(err.Code, "08"):
		return branches.Transient
	case strings.HasPrefix(err.Code, "23"):
		return branches.Constraint
	}
	return branches.Permanent
}

func connectionLost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		return false
	}
	if branches.Untrusted(err) {
		return false
	}
	if branches.ConnectionLost(err) {
		return true
	}
	for _, lost := range []error{errSessionLost, driver.ErrBadConn, pgconn.ErrConnClosed} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return unsent(err)
}
