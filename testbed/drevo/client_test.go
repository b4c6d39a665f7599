package drevo_test

import (
	"context"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"

	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

type serverError = neo4j.Neo4jError

func isRetryable(err error) bool { return neo4j.IsRetryable(err) }

// rig is one life of a server.
type rig struct {
	t       *story
	cluster *drevotest.Cluster
}

func (r *rig) addr() string { return r.cluster.Addr() }

func (r *rig) kill() { r.cluster.Kill(r.t) }

// wait lets the process end by itself.
func (r *rig) wait() int { return r.cluster.Wait(r.t) }

// A db is one driver (its own pool) with the session settings of a story.
type db struct {
	t     *story
	ctx   context.Context
	drv   neo4j.DriverWithContext
	graph string
	fetch int
}

func (r *rig) open(conf ...func(*config.Config)) *db { return r.openAs("bolt", conf...) }

func (r *rig) openAs(scheme string, conf ...func(*config.Config)) *db {
	conf = append(conf, func(c *config.Config) {
		c.MaxTransactionRetryTime = time.Second
		c.SocketConnectTimeout = 5 * time.Second
		c.ConnectionAcquisitionTimeout = 10 * time.Second
	})
	drv, err := neo4j.NewDriverWithContext(scheme+"://"+r.addr(), neo4j.NoAuth(), conf...)
	r.t.must(err, "driver")
	d := &db{t: r.t, ctx: context.WithoutCancel(r.t.Context()), drv: drv, fetch: neo4j.FetchAll}
	r.t.Cleanup(func() { drv.Close(d.ctx) })
	return d
}

// on is the same driver with sessions on another graph.
func (d *db) on(graph string) *db {
	c := *d
	c.graph = graph
	return &c
}

func (d *db) session() neo4j.SessionWithContext {
	s := d.drv.NewSession(d.ctx, neo4j.SessionConfig{DatabaseName: d.graph, FetchSize: d.fetch})
	d.t.Cleanup(func() { s.Close(d.ctx) })
	return s
}

// onePerPool makes a driver use one connection for everything.
func onePerPool(c *config.Config) { c.MaxConnectionPoolSize = 1 }

type rows = [][]any

// try runs one autocommit statement in a session of its own.
func (d *db) try(cypher string, params map[string]any) (rows, error) {
	s := d.drv.NewSession(d.ctx, neo4j.SessionConfig{DatabaseName: d.graph, FetchSize: d.fetch})
	defer s.Close(d.ctx)
	res, err := s.Run(d.ctx, cypher, params)
	return collect(d.ctx, res, err)
}

func (d *db) run(cypher string, params map[string]any) rows {
	d.t.Helper()
	out, err := d.try(cypher, params)
	d.t.must(err, cypher)
	return out
}

func collect(ctx context.Context, res neo4j.ResultWithContext, err error) (rows, error) {
	if err != nil {
		return nil, err
	}
	recs, err := res.Collect(ctx)
	out := rows{}
	for _, r := range recs {
		out = append(out, r.Values)
	}
	return out, err
}

// A tx is an explicit transaction with its session.
type tx struct {
	d *db
	s neo4j.SessionWithContext
	neo4j.ExplicitTransaction
}

func (d *db) begin() *tx {
	d.t.Helper()
	s := d.session()
	x, err := s.BeginTransaction(d.ctx)
	d.t.must(err, "BEGIN")
	return &tx{d: d, s: s, ExplicitTransaction: x}
}

func (x *tx) try(cypher string, params map[string]any) (rows, error) {
	res, err := x.Run(x.d.ctx, cypher, params)
	return collect(x.d.ctx, res, err)
}

func (x *tx) run(cypher string, params map[string]any) rows {
	x.d.t.Helper()
	out, err := x.try(cypher, params)
	x.d.t.must(err, cypher)
	return out
}

func (x *tx) commit() error   { return x.Commit(x.d.ctx) }
func (x *tx) rollback() error { return x.Rollback(x.d.ctx) }

func (x *tx) prepare(gid string) error {
	_, err := x.try("CALL drevo.tx.prepare($gid)", gidOf(gid))
	return err
}

// prepared runs the statements and prepares them, then ends as one must.
func (d *db) prepared(gid string, cypher ...string) {
	d.t.Helper()
	x := d.begin()
	for _, c := range cypher {
		x.run(c, nil)
	}
	d.t.must(x.prepare(gid), "prepare "+gid)
	d.t.must(x.commit(), "COMMIT after prepare")
}

func gidOf(gid string) map[string]any { return map[string]any{"gid": gid} }

func (d *db) resolve(action, gid string) error {
	_, err := d.try("CALL drevo.tx."+action+"($gid)", gidOf(gid))
	return err
}

// gids lists the prepared transactions.
func (d *db) gids() []string {
	d.t.Helper()
	out := []string{}
	for _, r := range d.run("CALL drevo.tx.listPrepared() YIELD gid RETURN gid", nil) {
		out = append(out, r[0].(string))
	}
	return out
}

func (d *db) count(label string) int64 {
	d.t.Helper()
	return d.run("MATCH (n:"+label+") RETURN count(n) AS n", nil)[0][0].(int64)
}

const (
	outdated   = "Neo.TransientError.Transaction.Outdated"
	fenced     = "Neo.TransientError.Transaction.LockAcquisitionTimeout"
	semantic   = "Neo.ClientError.Statement.SemanticError"
	syntax     = "Neo.ClientError.Statement.SyntaxError"
	execution  = "Neo.DatabaseError.Statement.ExecutionFailed"
	unknown    = "Neo.DatabaseError.General.UnknownError"
	badFormat  = "Neo.ClientError.Request.InvalidFormat"
	badRequest = "Neo.ClientError.Request.Invalid"

	conflictText = "=transaction conflict: the graph changed since the transaction began; retry"
)

func fenceText(gid string) string {
	return "writes are paused while prepared transaction(s) " + gid + " await resolution; retry"
}
