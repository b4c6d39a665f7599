package rhizodat_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// graphed is a deployment of two PostgreSQL stores and a journal in drevo.
type graphed struct {
	*rig
	graph *drevotest.Graph
}

func newGraphed(t *testing.T, drevo *drevotest.Cluster, options ...string) *graphed {
	t.Helper()
	pg := pgtest.Server(t)
	g := &graphed{rig: &rig{cluster: pg, a: pg.Database(t, "a"), b: pg.Database(t, "b")}, graph: drevo.Graph(t, "coord")}
	g.journal = g.graph.URL()
	g.dsn = strings.Join(append([]string{"a=" + g.a, "b=" + g.b, "journal=" + g.journal, "default=a"}, options...), " ")
	for _, url := range []string{g.a, g.b} {
		pg.Exec(t, pgtest.Name(url), `CREATE TABLE item (id int PRIMARY KEY, name text, at timestamptz DEFAULT now())`)
	}
	if err := connector(t, g.dsn, nil).Install(t.Context()); err != nil {
		t.Fatalf("install: %v", err)
	}
	return g
}

// states counts the journal's records by state, once they have settled.
func (g *graphed) states(t *testing.T, label, want string) {
	t.Helper()
	var got string
	await.UntilSaid(t, func() bool {
		var counts []string
		for _, row := range g.graph.Rows(t, "MATCH (j:"+label+") RETURN j.state AS state, count(j) AS n ORDER BY state", nil) {
			counts = append(counts, fmt.Sprintf("%v=%v", row[0], row[1]))
		}
		got = strings.Join(counts, " ")
		return got == want
	}, func() string { return fmt.Sprintf("journal holds %q, want %q", got, want) })
}

// One Commit over two PostgreSQL stores, decided in drevo.
func TestCommitWithJournalInDrevo(t *testing.T) {
	g := newGraphed(t, drevotest.Server(t), "journal_label=Coord")
	db := g.open(t)
	for id := range 3 {
		tx := begin(t, t.Context(), db)
		exec(t, tx, "store:a "+insert, id, "x")
		exec(t, tx, "store:b "+insert, id, "x")
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	g.want(t, "0 1 2", "0 1 2")
	g.states(t, "Coord", "DONE=3")
	if err := db.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
}

// A process that dies leaves its unit to recovery, which reads in drevo what was
// decided.
func TestRecoveryWithJournalInDrevo(t *testing.T) {
	for _, c := range []struct{ point, items, state string }{
		{"S4.after", "", "ABORTED=1"},
		{"S6.before", "", "ABORTED=1"},
		{"S7.before", "", "ABORTED=1"},
		{"S7.after", "1", "DONE=1"},
	} {
		t.Run(c.point, func(t *testing.T) {
			g := newGraphed(t, drevotest.Server(t))
			dieAt(t, g.dsn, c.point)
			report := passOver(t, g.dsn)
			if want := len(c.items); report.RolledForward != want || report.Pending != 0 {
				t.Errorf("a pass after a death at %s: %+v, want %d rolled forward", c.point, report, want)
			}
			g.want(t, c.items, c.items)
			g.states(t, "DatJournal", c.state)
		})
	}
}

// dropper restarts the journal's server before S7, so that it loses the COMMIT of
// S7 or its answer.
type dropper struct{ lose func() }

func (d dropper) Step(_ context.Context, e rhizodat.StepEvent) {
	if e.Point() == "S7.before" {
		d.lose()
	}
}

func (dropper) Outcome(context.Context, rhizodat.OutcomeEvent) {}

// A lost S7 is read back: what the application is told is what stands.
func TestLostDecisionInDrevo(t *testing.T) {
	for _, c := range []struct {
		fault, items string
		aborted      bool
	}{
		{"commit:after:drop", "1", false},
		{"commit:before:drop", "", true},
	} {
		t.Run(c.fault, func(t *testing.T) {
			cluster := drevotest.Own(t)
			g := newGraphed(t, cluster)
			observer := dropper{lose: func() { cluster.Restart(t, "--fault", c.fault) }}
			tx := begin(t, t.Context(), sql.OpenDB(connector(t, g.dsn, observer)))
			exec(t, tx, "store:a "+insert, 1, "x")
			exec(t, tx, "store:b "+insert, 1, "x")
			err := tx.Commit()
			aborted, is := errors.AsType[*rhizodat.Aborted](err)
			if is != c.aborted || !is && err != nil {
				t.Errorf("Commit: %v, want aborted: %t", err, c.aborted)
			}
			if is && !rhizodat.IsRetryable(aborted) {
				t.Errorf("Commit: %v, want one that may be run again", err)
			}
			g.want(t, c.items, c.items)
		})
	}
}

// relay is another way to a server, as a host's second name or a proxy is.
func relay(t *testing.T, addr string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				_ = client.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					_ = way[0].Close()
				}()
			}
		}
	}()
	return listener.Addr().String()
}

// A journal on the graph of a store is refused however the two are spelled: the
// graph says that it is one.
func TestJournalOnAStoresGraph(t *testing.T) {
	drevo, pg := drevotest.Server(t), pgtest.Server(t)
	graph := drevo.Graph(t, "orders")
	a := pg.Database(t, "a")
	pg.Exec(t, pgtest.Name(a), `CREATE TABLE item (id int PRIMARY KEY, name text, at timestamptz DEFAULT now())`)
	dsn := "a=" + a + " g=" + graph.URL() + " default=a journal="
	_, err := rhizodat.ParseDSN(dsn + strings.Replace(graph.URL(), "127.0.0.1", "localhost", 1))
	if err == nil || !strings.Contains(err.Error(), "fence would block") {
		t.Errorf("by the text: %v", err)
	}

	dsn += "bolt://" + relay(t, drevo.Addr()) + "/" + graph.Name()
	c := connector(t, dsn, nil)
	if _, crowded := errors.AsType[*journal.Crowded](c.Install(t.Context())); !crowded {
		t.Error("init bound the store to the journal on its graph")
	}
	db := sql.OpenDB(c)
	if crowded, ok := errors.AsType[*journal.Crowded](db.PingContext(t.Context())); !ok || crowded.Store != "g" {
		t.Errorf("Ping: %v, want *journal.Crowded that names g", crowded)
	}
	tx := begin(t, t.Context(), db)
	exec(t, tx, "store:a "+insert, 1, "x")
	exec(t, tx, "store:g CREATE (:Item {n: 1})")
	err = tx.Commit()
	aborted, ok := errors.AsType[*rhizodat.Aborted](err)
	if _, crowded := errors.AsType[*journal.Crowded](err); !ok || !crowded || rhizodat.IsRetryable(aborted) {
		t.Errorf("Commit: %v, want *Aborted with *journal.Crowded, not to be run again", err)
	}
	if n := graph.Count(t, "Item"); n != 0 || len(graph.Prepared(t)) != 0 {
		t.Errorf("%d items, prepared %v", n, graph.Prepared(t))
	}
	config, err := connector(t, dsn, nil).Recovery()
	if err != nil {
		t.Fatal(err)
	}
	worker, err := recovery.New(config)
	if err != nil {
		t.Fatal(err)
	}
	report, err := worker.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(report.Stores, func(s recovery.StoreReport) bool { return s.Store == "g" })
	if i < 0 || report.Stores[i].Standing != recovery.StandingRefused || !strings.Contains(report.Stores[i].Way, "graph of its own") {
		t.Errorf("a pass over it: %+v, want store g refused", report.Stores)
	}
	if _, err := worker.Adopt(t.Context(), "g"); err == nil || !strings.Contains(err.Error(), "would block the decision") {
		t.Errorf("Adopt: %v, want a refusal", err)
	}
}
