package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/postgres"
)

const secret = "s3cr3t"

func TestOpenDoesNotConnect(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	j, err := postgres.Open("postgres://u:"+secret+"@"+listener.Addr().String()+"/d?sslmode=disable", postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := j.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Release()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := listener.(*net.TCPListener).SetDeadline(pastDeadline); err != nil {
		t.Fatal(err)
	}
	if conn, err := listener.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("somebody connected: %v, %v", conn, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, tc := range []struct{ location, want string }{
		{"", "not a postgres:// URL"},
		{"mysql://u:" + secret + "@h/d", "not a postgres:// URL"},
		{"host=h password=" + secret, "not a postgres:// URL"},
		{"postgres://u:" + secret + "/x@h:1/d", "%2F"},
		{"postgres://u:" + secret + "%zz@h/d", "%25"},
		{"postgres://u:" + secret + "@h:port/d", "not a postgres:// URL"},
		{"postgres://u:" + secret + "@h/d?schema=", "schema="},
		{"postgres://u:" + secret + "@h/d?schema=%zz", "schema="},
		{"postgres://u:" + secret + "@h/d?sslmode=maybe", "sslmode"},
		{"postgres://u@h/d?sslmode=maybe&password=" + secret, "sslmode"},
		{"postgres://u:" + secret + "@h/d?default_query_exec_mode=quick", "default_query_exec_mode"},
		{"postgres://u:%73" + secret + "@h/d?connect_timeout=soon&password=" + secret, "connect_timeout"},
	} {
		_, err := postgres.Open(tc.location, postgres.Options{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error with %q", tc.location, err, tc.want)
		}
		if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, secret) {
			t.Errorf("the error shows the password: %s", text)
		}
	}
}

// Nothing that a connection fails with may show what it was made with.
func TestNoSecretInErrors(t *testing.T) {
	cluster := pgtest.Server(t)
	role := cluster.Role(t, "locked", "NOSUPERUSER")
	cluster.Exec(t, "", "ALTER ROLE "+role.Name+" PASSWORD 'another'")
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing.Close()
	for name, location := range map[string]string{
		"wrong password": cluster.DSNAs(role, "postgres"),
		"no server":      "postgres://u:" + role.Password + "@" + refusing.Addr().String() + "/d",
		"no database":    strings.Replace(cluster.DSN("postgres"), "/postgres", "/no_such_database", 1),
	} {
		j := open(t, location, journal.Options{})
		err := j.Harden(t.Context())
		if err == nil {
			t.Errorf("%s: Harden was acknowledged", name)
		}
		text := fmt.Sprintf("%v %+v %#v", err, err, errors.Unwrap(err))
		for _, password := range []string{role.Password, cluster.Password()} {
			if password != "" && strings.Contains(text, password) {
				t.Errorf("%s: the error shows the password: %s", name, text)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	cluster := pgtest.Server(t)
	dsn := cluster.Database(t, "journal")
	role := cluster.Role(t, "rotating", "SUPERUSER")
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	opts := postgres.Options{
		ConnConfig: config,
		Schema:     "mine",
		BeforeConnect: func(_ context.Context, c *pgx.ConnConfig) error {
			asked++
			c.User, c.Password = role.Name, role.Password
			c.RuntimeParams["application_name"] = "journal of mine"
			return nil
		},
	}
	j, err := postgres.Open("", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	install(t, j)
	rec := active(t, session(t, j))
	if asked == 0 || config.User == role.Name {
		t.Errorf("BeforeConnect was asked %d times, and the caller's config names %s", asked, config.User)
	}
	if got := cluster.Int(t, dsn, "SELECT count(*) FROM mine.dat_journal WHERE dat_txn = $1", rec.Txn.String()); got != 1 {
		t.Errorf("schema mine holds %d records", got)
	}
	if got := cluster.Int(t, dsn, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'journal of mine' AND usename = $1", role.Name); got == 0 {
		t.Error("BeforeConnect changed nothing")
	}

	refused := errors.New("vault is sealed")
	opts.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return refused }
	j, err = postgres.Open("", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Harden(t.Context()); !errors.Is(err, refused) {
		t.Errorf("Harden: %v, want BeforeConnect's error", err)
	}
	opts.BeforeConnect = nil
	opts.AfterConnect = func(context.Context, *pgx.Conn) error { return refused }
	j, err = postgres.Open("", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Harden(t.Context()); !errors.Is(err, refused) {
		t.Errorf("Harden: %v, want AfterConnect's error", err)
	}
	await.Until(t, "the connection that AfterConnect refused is closed", func() bool { return cluster.Backends(t, dsn) <= 1 })
}

func TestClassify(t *testing.T) {
	cluster := pgtest.Server(t)
	j, dsn := installed(t, cluster)
	classify := j.(branches.Classifier).Classify
	for state, want := range map[string]branches.Kind{
		"40001": branches.Transient, "40P01": branches.Transient, "55P03": branches.Transient,
		"57014": branches.Transient, "57P01": branches.Transient, "57P02": branches.Transient, "57P03": branches.Transient,
		"53300": branches.Transient, "25P03": branches.Transient, "25006": branches.Transient,
		"08006": branches.Transient, "08P01": branches.Transient,
		"53100": branches.StoreFull, "53200": branches.Permanent,
		"23505": branches.Constraint, "23514": branches.Constraint,
		"42501": branches.Permanent, "28P01": branches.Permanent, "0A000": branches.Permanent,
	} {
		if got := classify(raised(t, dsn, state)); got != want {
			t.Errorf("%s is %v, want %v", state, got, want)
		}
	}
	for _, tc := range []struct {
		err  error
		want branches.Kind
	}{
		{&journal.Conflict{}, branches.Permanent},
		{&journal.Drift{}, branches.Permanent},
		{&journal.Layout{}, branches.Permanent},
		{journal.ErrFull, branches.Permanent},
		{context.Canceled, branches.Permanent},
		{context.DeadlineExceeded, branches.Transient},
		{fmt.Errorf("write: %w", syscall.ECONNRESET), branches.Transient},
		{fmt.Errorf("write: %w", syscall.ENOSPC), branches.StoreFull},
		{errors.New("something else"), branches.Permanent},
	} {
		if got := classify(fmt.Errorf("wrapped: %w", tc.err)); got != tc.want {
			t.Errorf("%v is %v, want %v", tc.err, got, tc.want)
		}
	}
	down := open(t, "postgres://u@127.0.0.1:1/d", journal.Options{})
	if err := down.Harden(t.Context()); classify(err) != branches.Transient {
		t.Errorf("a server that is down is %v: %v", classify(err), err)
	}
}

// raised makes the server raise a SQLSTATE.
func raised(t *testing.T, dsn, state string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "DO $$BEGIN RAISE EXCEPTION USING ERRCODE = '"+state+"'; END$$")
	if err == nil {
		t.Fatalf("%s was not raised", state)
	}
	return err
}
