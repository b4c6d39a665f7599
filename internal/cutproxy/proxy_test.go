package cutproxy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/cutproxy"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a table behind a proxy.
type bench struct {
	*cutproxy.Proxy
	cluster  *pgtest.Cluster
	database string
}

func setUp(t *testing.T) bench {
	t.Helper()
	c := pgtest.Server(t)
	database := c.Database(t, "cutproxy")
	c.Exec(t, database, "CREATE TABLE t (n int PRIMARY KEY)")
	return bench{cutproxy.New(t, c.Addr()), c, database}
}

func (b bench) connect(t *testing.T, mode pgx.QueryExecMode) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(b.DSN(b.database))
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = mode
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // most are cut by then
	return conn
}

// awaitRows waits until the table holds n rows.
func (b bench) awaitRows(t *testing.T, n int64) {
	t.Helper()
	await.Until(t, fmt.Sprintf("%d rows", n), func() bool { return b.cluster.Int(t, b.database, "SELECT count(*) FROM t") == n })
}

// awaitNobody waits until no session of the database is left.
func (b bench) awaitNobody(t *testing.T) {
	t.Helper()
	await.Until(t, "no session is left", func() bool { return b.cluster.Backends(t, b.database) == 0 })
}

var modes = map[string]pgx.QueryExecMode{
	"simple":          pgx.QueryExecModeSimpleProtocol,
	"exec":            pgx.QueryExecModeExec,
	"cache statement": pgx.QueryExecModeCacheStatement,
	"cache describe":  pgx.QueryExecModeCacheDescribe,
	"describe exec":   pgx.QueryExecModeDescribeExec,
}

const insert = "INSERT INTO t VALUES ($1)"

func TestCutAfterLosesOnlyTheReply(t *testing.T) {
	for name, mode := range modes {
		for _, hold := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", held"}[hold], func(t *testing.T) {
				b := setUp(t)
				conn := b.connect(t, mode)
				// Known to the connection before the rule is: a prepared
				// statement is found by its name.
				if _, err := conn.Exec(t.Context(), insert, 1); err != nil {
					t.Fatal(err)
				}
				var options []cutproxy.Option
				if hold {
					options = append(options, cutproxy.HoldServer())
				}
				rule := b.CutAfter(cutproxy.Prefix("insert into t"), options...)
				if _, err := conn.Exec(t.Context(), insert, 2); err == nil {
					t.Error("the reply was delivered")
				}
				if !conn.IsClosed() {
					t.Error("the connection lives")
				}
				b.awaitRows(t, 2)
				b.awaitNobody(t)
				if rule.Hits() != 1 {
					t.Errorf("hits %d, want 1", rule.Hits())
				}
			})
		}
	}
}

func TestCutBeforeLosesTheRequest(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			b := setUp(t)
			conn := b.connect(t, mode)
			rule := b.CutBefore(cutproxy.Contains("Into T"))
			if _, err := conn.Exec(t.Context(), insert, 1); err == nil {
				t.Error("a reply was delivered")
			}
			b.awaitNobody(t)
			b.awaitRows(t, 0)
			if rule.Hits() != 1 {
				t.Errorf("hits %d, want 1", rule.Hits())
			}
		})
	}
}

func TestParsingIsNoHit(t *testing.T) {
	b := setUp(t)
	conn := b.connect(t, pgx.QueryExecModeCacheStatement)
	rule := b.CutAfter(cutproxy.Prefix("INSERT"))
	if _, err := conn.Prepare(t.Context(), "named", insert); err != nil {
		t.Fatal(err)
	}
	if rule.Hits() != 0 {
		t.Error("Parse was a hit")
	}
	if _, err := conn.Exec(t.Context(), "named", 1); err == nil {
		t.Error("Execute was no hit")
	}
}

// A batch goes out whole before the cut, though its second statement matches.
func TestCutAfterForwardsWholeBatch(t *testing.T) {
	b := setUp(t)
	conn := b.connect(t, pgx.QueryExecModeExec)
	b.CutAfter(cutproxy.Contains("/* here */"))
	batch := &pgx.Batch{}
	batch.Queue(insert, 1)
	batch.Queue(insert+" /* here */", 2)
	batch.Queue(insert, 3)
	if err := conn.SendBatch(t.Context(), batch).Close(); err == nil {
		t.Error("a reply was delivered")
	}
	b.awaitRows(t, 3)
}

func TestHeldBackendFinishesAfterTheCut(t *testing.T) {
	b := setUp(t)
	conn := b.connect(t, pgx.QueryExecModeSimpleProtocol)
	// A lock that the test holds keeps the lost backend busy for as long as
	// the test wants.
	blocker := b.connect(t, pgx.QueryExecModeSimpleProtocol)
	if _, err := blocker.Exec(t.Context(), "SELECT pg_advisory_lock(1)"); err != nil {
		t.Fatal(err)
	}
	b.CutAfter(cutproxy.Prefix("INSERT"), cutproxy.HoldServer())
	if _, err := conn.Exec(t.Context(), "INSERT INTO t SELECT 1 FROM pg_advisory_lock(1)"); err == nil {
		t.Error("a reply was delivered")
	}
	if n := b.cluster.Int(t, b.database, "SELECT count(*) FROM t"); n != 0 {
		t.Fatal("the backend was not kept busy")
	}
	if _, err := blocker.Exec(t.Context(), "SELECT pg_advisory_unlock(1)"); err != nil {
		t.Fatal(err)
	}
	b.awaitRows(t, 1)
	await.Until(t, "only the blocker is left", func() bool { return b.cluster.Backends(t, b.database) == 1 })
}

func TestSwallowKeepsTheConnection(t *testing.T) {
	b := setUp(t)
	conn := b.connect(t, pgx.QueryExecModeExec)
	rule := b.Swallow(cutproxy.Prefix("INSERT"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-rule.Hit()
		b.awaitRows(t, 1)
		cancel()
	}()
	if _, err := conn.Exec(ctx, insert, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want only the context's", err)
	}
}

func TestDropLosesTheCancelRequestToo(t *testing.T) {
	b := setUp(t)
	b.Swallow(cutproxy.Contains("INSERT"))
	conn := b.connect(t, pgx.QueryExecModeSimpleProtocol)
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "INSERT INTO t SELECT 1 FROM pg_sleep(1)")
		done <- err
	}()
	await.Until(t, "the statement runs", func() bool {
		return b.cluster.Int(t, b.database, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'PgSleep'`) == 1
	})
	b.Drop() // pgx now asks the server to cancel the statement
	if err := <-done; err == nil {
		t.Error("Exec over a dropped connection succeeded")
	}
	b.awaitRows(t, 1)
}

func TestDelayedRequestArrivesAfterItsClientGaveUp(t *testing.T) {
	b := setUp(t)
	conn := b.connect(t, pgx.QueryExecModeExec)
	rule := b.Delay(cutproxy.Prefix("INSERT"), 300*time.Millisecond, cutproxy.Times(1))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-rule.Hit()
		cancel()
	}()
	if _, err := conn.Exec(ctx, insert, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	b.awaitRows(t, 1)
}

func TestRulesEndByTimesAndByPass(t *testing.T) {
	b := setUp(t)
	once := b.CutBefore(cutproxy.Prefix("INSERT"), cutproxy.Times(1))
	always := b.CutBefore(cutproxy.Prefix("DELETE"))
	failed := func(sql string) bool {
		conn := b.connect(t, pgx.QueryExecModeExec)
		_, err := conn.Exec(t.Context(), sql)
		return err != nil
	}
	got := []bool{
		failed("INSERT INTO t VALUES (1)"), failed("INSERT INTO t VALUES (1)"),
		failed("DELETE FROM t"), failed("DELETE FROM t"),
	}
	b.Pass()
	got = append(got, failed("DELETE FROM t"))
	if diff := cmp.Diff([]bool{true, false, true, true, false}, got); diff != "" {
		t.Error(diff)
	}
	if once.Hits() != 1 || always.Hits() != 2 {
		t.Errorf("hits %d and %d, want 1 and 2", once.Hits(), always.Hits())
	}
}

func TestRefuseAndDrop(t *testing.T) {
	b := setUp(t)
	conn := b.connect(t, pgx.QueryExecModeExec)
	b.Refuse(true)
	if other, err := pgx.Connect(t.Context(), b.DSN(b.database)); err == nil {
		t.Error("a connection was accepted", other.Close(t.Context()))
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Errorf("Refuse touched a connection that existed: %v", err)
	}
	b.Drop()
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("Drop left a connection")
	}
	b.awaitNobody(t)
	b.Refuse(false)
	if err := b.connect(t, pgx.QueryExecModeExec).Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if b.Accepts() < 3 {
		t.Errorf("accepts %d, want at least 3", b.Accepts())
	}
}

// sslmode=prefer asks for TLS first; a proxy that answered nothing would hang.
func TestEncryptionIsDeclined(t *testing.T) {
	b := setUp(t)
	config, err := pgx.ParseConfig(b.DSN(b.database) + "&connect_timeout=10")
	if err != nil {
		t.Fatal(err)
	}
	preferring, err := pgx.ParseConfig("postgres://user@" + b.Addr() + "/db?sslmode=prefer")
	if err != nil {
		t.Fatal(err)
	}
	config.TLSConfig, config.Fallbacks = preferring.TLSConfig, preferring.Fallbacks
	for _, fallback := range config.Fallbacks {
		fallback.Host, fallback.Port = config.Host, config.Port
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Cancelling goes over a connection of its own, whose first message is no start.
func TestCancelRequestPasses(t *testing.T) {
	b := setUp(t)
	conn := b.connect(t, pgx.QueryExecModeExec)
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "SELECT pg_sleep(60)")
		failed <- err
	}()
	await.Until(t, "the statement runs", func() bool {
		return b.cluster.Int(t, "", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = $1",
			pgtest.Name(b.database)) == 1
	})
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("statement was not cancelled")
	}
}
