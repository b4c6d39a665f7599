package postgres

import (
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches"
)

// errNotConfirmed: the server said that it had stopped waiting for a
// synchronous standby. The commit may be lost in a fail-over.
var errNotConfirmed = errors.New("the server stopped waiting for its synchronous standby: the write may not survive a fail-over")

// sqlState of err, empty where the server did not answer.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// Classify implements sqljournal.Dialect (design/protocol.md, section 9).
func (d *dialect) Classify(err error) branches.Kind {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classifyState(e)
	}
	var network net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &network) || errors.As(err, &connect) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, errNotConfirmed) {
		return branches.Transient
	}
	return branches.Permanent
}

func classifyState(e *pgconn.PgError) branches.Kind {
	switch e.Code {
	case "40001", "40P01", "55P03", // serialization, deadlock, lock timeout
		"57014", "57P01", "57P02", "57P03", // timeout or cancel, shutdown, crash, starting
		"53300", "25P03", "25006": // connections, idle timeout, a server that became a standby
		return branches.Transient
	case "53100":
		return branches.StoreFull
	case "0A000":
		// BEGIN READ WRITE on a standby: a fail-over is under way, or the
		// connection reached the old primary.
		if e.Routine == "check_transaction_read_only" {
			return branches.Transient
		}
	}
	if len(e.Code) == 5 {
		switch e.Code[:2] {
		case "08":
			return branches.Transient
		case "23":
			return branches.Constraint
		}
	}
	return branches.Permanent
}
