package rhizodat_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/await"
)

// Tools that wrap drivers open a pool without a DSN to get hold of the driver.
func TestOpenWithoutDSN(t *testing.T) {
	db, err := sql.Open("rhizodat", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, ok := db.Driver().(*rhizodat.Driver); !ok {
		t.Errorf("driver is %T", db.Driver())
	}
	var dsn *rhizodat.DSNError
	if err := db.PingContext(t.Context()); !errors.As(err, &dsn) {
		t.Errorf("ping: %v, want the error of the DSN", err)
	}
	if _, err := sql.Open("rhizodat", " "); !errors.As(err, &dsn) {
		t.Errorf("a blank DSN: %v, want its error at once", err)
	}
}

// A connection of Driver.Open leaves none behind, the journal's included.
func TestDriverOpenClosesItsConnector(t *testing.T) {
	r := newRig(t)
	backends := func() (n int) {
		for _, url := range []string{r.a, r.b, r.journal} {
			n += r.cluster.Backends(t, url)
		}
		return n
	}
	before := backends() // of the rig's own connector
	made, err := (&rhizodat.Driver{}).Open(r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.(driver.Pinger).Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if backends() == before {
		t.Error("a ping made no connection")
	}
	if err := made.Close(); err != nil {
		t.Error(err)
	}
	await.UntilSaid(t, func() bool { return backends() == before }, func() string { return fmt.Sprint(backends()-before, " connections left") })
}

// A text with a trace's id comes once, and must not push others out of pgx's
// cache of prepared statements.
func TestTracedTextIsNotCached(t *testing.T) {
	r := newRig(t)
	conn, err := r.open(t).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, c := range []struct {
		comment string
		cached  int
	}{{"/*traceparent='00-1-01'*/", 0}, {"/*route='/pay'*/", 2}} {
		text := "INSERT INTO item (id, name) VALUES ($1, $2) " + c.comment
		exec(t, conn, text, c.cached, "x")
		var got int
		if err := conn.QueryRowContext(t.Context(), "SELECT $1::int "+c.comment, 7).Scan(&got); err != nil || got != 7 {
			t.Errorf("%s: %d, %v", c.comment, got, err)
		}
		err := conn.QueryRowContext(t.Context(),
			`SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%' || $1`, c.comment).Scan(&got)
		if err != nil || got != c.cached {
			t.Errorf("%s: %d statements cached, %v, want %d", c.comment, got, err, c.cached)
		}
	}
}
