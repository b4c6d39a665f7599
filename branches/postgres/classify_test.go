package postgres_test

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
)

// TestKinds is the table of error kinds, row by row.
func TestKinds(t *testing.T) {
	store := openStore(t, "postgres://127.0.0.1:1/d", postgres.Options{})
	server := func(code string) error { return &pgconn.PgError{Code: code, Severity: "ERROR"} }
	_, refused := store.Connect(t.Context())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, canceled := store.Connect(ended)
	for name, row := range map[string]struct {
		err  error
		want branches.Kind
	}{
		"nothing":               {nil, branches.Permanent},
		"serialization":         {server("40001"), branches.Transient},
		"deadlock":              {server("40P01"), branches.Transient},
		"lock timeout":          {server("55P03"), branches.Transient},
		"admin shutdown":        {server("57P01"), branches.Transient},
		"crash shutdown":        {server("57P02"), branches.Transient},
		"starting up":           {server("57P03"), branches.Transient},
		"idle session":          {server("57P05"), branches.Transient},
		"connection failure":    {server("08006"), branches.Transient},
		"protocol violation":    {server("08P01"), branches.Transient},
		"too many clients":      {server("53300"), branches.Transient},
		"idle in transaction":   {server("25P03"), branches.Transient},
		"read-only":             {server("25006"), branches.Transient},
		"statement timeout":     {server("57014"), branches.Transient},
		"disk full":             {server("53100"), branches.StoreFull},
		"out of memory":         {server("53200"), branches.Permanent},
		"slots used up":         {&pgconn.PgError{Code: "53200", File: "twophase.c"}, branches.Transient},
		"unique":                {server("23505"), branches.Constraint},
		"check":                 {server("23514"), branches.Constraint},
		"foreign key":           {server("23503"), branches.Constraint},
		"not null":              {server("23502"), branches.Constraint},
		"syntax":                {server("42601"), branches.Permanent},
		"no such table":         {server("42P01"), branches.Permanent},
		"no privilege":          {server("42501"), branches.Permanent},
		"wrong password":        {server("28P01"), branches.Permanent},
		"no such database":      {server("3D000"), branches.Permanent},
		"failed transaction":    {server("25P02"), branches.Permanent},
		"disabled":              {server("55000"), branches.Permanent},
		"not supported":         {server("0A000"), branches.Permanent},
		"cached plan":           {&pgconn.PgError{Code: "0A000", Routine: "RevalidateCachedQuery"}, branches.Transient},
		"standby":               {&pgconn.PgError{Code: "0A000", Routine: "check_transaction_read_only"}, branches.Transient},
		"wrapped":               {fmt.Errorf("insert order: %w", server("40001")), branches.Transient},
		"end of file":           {io.ErrUnexpectedEOF, branches.Transient},
		"reset":                 {&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, branches.Transient},
		"closed":                {net.ErrClosed, branches.Transient},
		"closed connection":     {pgconn.ErrConnClosed, branches.Transient},
		"bad connection":        {driver.ErrBadConn, branches.Transient},
		"no such host":          {&net.DNSError{Err: "no such host", IsNotFound: true}, branches.Transient},
		"certificate":           {&net.OpError{Op: "remote error", Err: &tls.CertificateVerificationError{Err: errors.New("expired")}}, branches.Permanent},
		"nobody listens":        {refused, branches.Transient},
		"caller canceled":       {context.Canceled, branches.Permanent},
		"caller's deadline":     {context.DeadlineExceeded, branches.Permanent},
		"canceled in a connect": {canceled, branches.Permanent},
		"canceled statement":    {errors.Join(context.Canceled, server("57014")), branches.Permanent},
		"no space":              {fmt.Errorf("x: %w", syscall.ENOSPC), branches.StoreFull},
		"quota":                 {&os.PathError{Op: "write", Err: syscall.EDQUOT}, branches.StoreFull},
		"rolled back":           {pgx.ErrTxCommitRollback, branches.Permanent},
		"unknown outcome":       {branches.Unknown(io.ErrUnexpectedEOF), branches.Transient},
		"something else":        {errors.New("something else"), branches.Permanent},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "nothing" && row.err == nil {
				t.Fatal("no error to classify")
			}
			if got := branches.Classify(store, row.err); got != row.want {
				t.Errorf("%v is %s, want %s", row.err, got, row.want)
			}
		})
	}
}

// The errors of a real server, from the statement to the kind.
func TestKindsOfAServer(t *testing.T) {
	p := newPlace(t)
	p.cluster.Exec(t, p.dsn, "CREATE TABLE c (n int NOT NULL CHECK (n > 0), k text REFERENCES t)")
	store := p.open(postgres.Options{})
	for _, row := range []struct {
		before, statement string
		want              branches.Kind
	}{
		{"", "INSERT INTO c VALUES (NULL)", branches.Constraint},
		{"", "INSERT INTO c VALUES (0)", branches.Constraint},
		{"", "INSERT INTO c VALUES (1, 'nobody')", branches.Constraint},
		{"", "INSERT INTO nowhere VALUES (1)", branches.Permanent},
		{"", "INSERT", branches.Permanent},
		{"SET LOCAL statement_timeout = 20", "SELECT pg_sleep(10)", branches.Transient},
		{"SET TRANSACTION READ ONLY", "INSERT INTO c VALUES (1)", branches.Transient},
	} {
		session := connect(t, store)
		u := begin(t, session, branches.BeginOptions{})
		if row.before != "" {
			u.exec(row.before)
		}
		if err := u.try(row.statement); err == nil || branches.Classify(store, err) != row.want {
			t.Errorf("%s: %v is %s, want %s", row.statement, err, branches.Classify(store, err), row.want)
		}
	}
	session := connect(t, store)
	if _, err := session.Exec(t.Context(), "SELECT * FROM t WHERE v > $1", values(1)); err != nil {
		t.Fatal(err)
	}
	p.cluster.Exec(t, p.dsn, "ALTER TABLE t ADD extra text")
	_, err := session.Exec(t.Context(), "SELECT * FROM t WHERE v > $1", values(1))
	if err == nil || branches.Classify(store, err) != branches.Transient {
		t.Errorf("cached plan: %v is %s, want transient", err, branches.Classify(store, err))
	}
}
