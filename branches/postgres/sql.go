package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches"
)

// The SQLSTATE codes this package decides by.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	codeNotSupported      = "0A000"
	codeDivisionByZero    = "22012"
	codeReadOnly          = "25006"
	codeFailedTransaction = "25P02"
	codeIdleInTxTimeout   = "25P03"
	codeUniqueViolation   = "23505"
	codeSerialization     = "40001"
	codeDeadlock          = "40P01"
	codeNoSuchStatement   = "26000"
	codeNoPrivilege       = "42501"
	codeUndefinedObject   = "42704"
	codeUndefinedTable    = "42P01"
	codeDiskFull          = "53100"
	codeOutOfMemory       = "53200"
	codeTooManyClients    = "53300"
	codeNotInState        = "55000"
	codeLockNotAvailable  = "55P03"
	codeCanceled          = "57014"
	codeAdminShutdown     = "57P01"
	codeCrashShutdown     = "57P02"
	codeCannotConnect     = "57P03"
	codeIdleTimeout       = "57P05"
)

// What pgconn.PgConn.TxStatus tells of a session.
const (
	statusIdle   = 'I'
	statusOpen   = 'T'
	statusFailed = 'E'
)

// ask sends text, one or more statements, as one message of the simple
// protocol and waits for all answers.
func ask(ctx context.Context, conn *pgx.Conn, text string) (answers, error) {
	return conn.PgConn().Exec(ctx, text).ReadAll()
}

// answers hold one result per statement; values are text.
type answers []*pgconn.Result

// tag is the command tag of statement i; empty where there is none.
func (a answers) tag(i int) string {
	if i >= len(a) {
		return ""
	}
	return a[i].CommandTag.String()
}

// last is the command tag of the last statement.
func (a answers) last() string { return a.tag(len(a) - 1) }

// affected is the row count of statement i.
func (a answers) affected(i int) int64 {
	if i >= len(a) {
		return 0
	}
	return a[i].CommandTag.RowsAffected()
}

// rows of statement i.
func (a answers) rows(i int) [][][]byte {
	if i >= len(a) {
		return nil
	}
	return a[i].Rows
}

// cell is the value at a column of the first row of statement i; NULL and
// what is not there read as empty.
func (a answers) cell(i, column int) string {
	rows := a.rows(i)
	if len(rows) == 0 || column >= len(rows[0]) {
		return ""
	}
	return string(rows[0][column])
}

// An ownTransaction is one message that runs statements of ours in a
// transaction of their own. It says its isolation and access mode itself (a
// role's defaults turn answers into errors, and READ WRITE is refused by a
// standby, whose word proves nothing); it acts as the login, whatever a connect
// hook has set; and row level security raises instead of hiding rows.
func ownTransaction(statements ...string) string {
	return "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;" +
		"SET LOCAL ROLE NONE;SET LOCAL row_security=off;" +
		strings.Join(statements, ";") + ";COMMIT"
}

// ownFirst is the index of an ownTransaction's first statement in its answers.
const ownFirst = 3

// forced raises synchronous_commit to at least on for the transaction at hand:
// what it writes is acted upon. A stronger setting of the user's stays. The
// warning that voids the answer (see Session.heard) must not be filtered out.
const forced = "SELECT pg_catalog.set_config('synchronous_commit',CASE" +
	" WHEN pg_catalog.current_setting('synchronous_commit') IN ('off','local','remote_write') THEN 'on'" +
	" ELSE pg_catalog.current_setting('synchronous_commit') END,true)," +
	"pg_catalog.set_config('client_min_messages',CASE" +
	" WHEN pg_catalog.current_setting('client_min_messages') IN ('error','fatal','panic') THEN 'warning'" +
	" ELSE pg_catalog.current_setting('client_min_messages') END,true)"

// quote makes an identifier.
func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// literalGID makes a string literal of a gid. It holds no quote and no
// backslash, or it is not ours and not written.
func literalGID(gid branches.GID) (string, error) {
	if _, err := branches.ParseGID(string(gid)); err != nil {
		return "", err
	}
	return "'" + string(gid) + "'", nil
}

// literalText makes a string literal of any text, whatever
// standard_conforming_strings is.
func literalText(text string) string {
	return "E'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(text) + "'"
}

func literalTxn(txn branches.TxnID) string { return "'" + txn.String() + "'::pg_catalog.uuid" }

func literalInt(n int64) string { return strconv.FormatInt(n, 10) }

// serverError is the server's own error in err, or nil.
func serverError(err error) *pgconn.PgError {
	pgErr, _ := errors.AsType[*pgconn.PgError](err)
	return pgErr
}

// code is the SQLSTATE of err, or empty.
func code(err error) string {
	if pgErr := serverError(err); pgErr != nil {
		return pgErr.Code
	}
	return ""
}

// answered reports whether err is the server's answer to the request: severity
// ERROR. After FATAL, PANIC or an I/O error nobody knows what became of it.
func answered(err error) bool {
	pgErr := serverError(err)
	if pgErr == nil {
		return false
	}
	severity := pgErr.SeverityUnlocalized
	if severity == "" {
		severity = pgErr.Severity
	}
	return severity == "ERROR"
}

// unsent reports whether the request never left this process.
func unsent(err error) bool { return pgconn.SafeToRetry(err) }
