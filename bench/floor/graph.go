package floor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"
)

// Graph is the opponent over one PostgreSQL database, one drevo graph and one
// journal row: native pgx and the official Bolt driver, both prepares and both
// commits in parallel, no marker. It is as unsafe as Floor.
type Graph struct {
	bank, journal *pgxpool.Pool
	driver        neo4j.DriverWithContext
	name          string
}

// Fence is how long a graph was closed to others, and what that was made of.
type Fence struct {
	Up      time.Duration // from the last answer to prepare to that of commitPrepared
	Journal time.Duration // one forced write of the journal
	Release time.Duration // commitPrepared
}

// OpenGraph connects a pool of size conns to each database.
func OpenGraph(ctx context.Context, bank, journal, bolt, name string, conns int) (*Graph, error) {
	g := &Graph{name: name}
	var err error
	if g.bank, err = pool(ctx, bank, conns); err != nil {
		return nil, err
	}
	if g.journal, err = pool(ctx, journal, conns); err != nil {
		return nil, err
	}
	if err = makeJournal(ctx, g.journal); err != nil {
		return nil, err
	}
	g.driver, err = neo4j.NewDriverWithContext(bolt, neo4j.NoAuth(), func(c *config.Config) { c.MaxConnectionPoolSize = 3 * conns })
	return g, err
}

// Close ends the pools.
func (g *Graph) Close(ctx context.Context) error {
	g.bank.Close()
	g.journal.Close()
	return g.driver.Close(ctx)
}

// Transfer takes 1 from an account of the bank and gives it to one of the graph. It
// tries again when another writer of the graph was faster, within the bounds of full
// jitter, and returns how often it tried.
func (g *Graph) Transfer(ctx context.Context, from int64, to string, base, most time.Duration) (attempts int, f Fence, err error) {
	for bound := base; ; bound = min(2*bound, most) {
		attempts++
		if f, err = g.attempt(ctx, from, to); err == nil || !neo4j.IsRetryable(err) {
			return attempts, f, err
		}
		time.Sleep(rand.N(bound)) //nolint:gosec // jitter, not a secret
	}
}

func (g *Graph) attempt(ctx context.Context, from int64, to string) (f Fence, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return f, err
	}
	bank, err := g.bank.Acquire(ctx)
	if err != nil {
		return f, err
	}
	defer bank.Release()
	if _, err = bank.Exec(ctx, "begin"); err != nil {
		return f, err
	}
	if _, err = bank.Exec(ctx, "UPDATE account SET balance = balance - $1 WHERE id = $2", 1, from); err != nil {
		return f, errors.Join(err, end(ctx, bank.Conn(), "ROLLBACK"))
	}
	session := g.session(ctx)
	defer func() { err = errors.Join(err, session.Close(ctx)) }()
	tx, err := session.BeginTransaction(ctx)
	if err == nil {
		err = consume(tx.Run(ctx, "MATCH (a:Account {title: $to}) SET a.balance = a.balance + $amount", map[string]any{"to": to, "amount": 1}))(ctx)
	}
	if err != nil {
		return f, errors.Join(err, end(ctx, bank.Conn(), "ROLLBACK"))
	}
	if err = g.prepare(ctx, bank.Conn(), tx, id.String()); err != nil {
		return f, err
	}
	began := time.Now()
	detached := make(chan error, 1)
	go func() { detached <- tx.Commit(ctx) }() // what is prepared is the connection's no more once this has come back
	_, err = g.journal.Exec(ctx, "INSERT INTO floor_journal VALUES ($1, 'COMMITTED')", id)
	f.Journal = time.Since(began)
	if err == nil {
		err = parallel(func() error { return end(ctx, bank.Conn(), fmt.Sprintf("COMMIT PREPARED '%s'", id)) }, func() error {
			sent := time.Now()
			err := g.call(ctx, "CALL drevo.tx.commitPrepared($gid)", id.String())
			f.Release, f.Up = time.Since(sent), time.Since(began)
			return err
		})
	}
	return f, errors.Join(err, <-detached)
}

// prepare prepares both. Where drevo refuses, its own transaction is gone, and the
// bank's is rolled back.
func (g *Graph) prepare(ctx context.Context, bank *pgx.Conn, tx neo4j.ExplicitTransaction, gid string) error {
	var refused error
	if err := parallel(func() error { return end(ctx, bank, fmt.Sprintf("PREPARE TRANSACTION '%s'", gid)) }, func() error {
		refused = consume(tx.Run(ctx, "CALL drevo.tx.prepare($gid)", map[string]any{"gid": gid}))(ctx)
		return nil
	}); err != nil {
		return fmt.Errorf("prepare bank: %w", err) // never here: the benchmark ends
	}
	if refused != nil {
		return errors.Join(refused, end(ctx, bank, fmt.Sprintf("ROLLBACK PREPARED '%s'", gid)))
	}
	return nil
}

// Answer is one round trip to the graph that writes nothing.
func (g *Graph) Answer(ctx context.Context) error { return g.call(ctx, "RETURN 1", "") }

func (g *Graph) call(ctx context.Context, cypher, gid string) error {
	session := g.session(ctx)
	err := consume(session.Run(ctx, cypher, map[string]any{"gid": gid}))(ctx)
	return errors.Join(err, session.Close(ctx))
}

func (g *Graph) session(ctx context.Context) neo4j.SessionWithContext {
	return g.driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: g.name, FetchSize: neo4j.FetchAll})
}

// consume reads a result to its end.
func consume(result neo4j.ResultWithContext, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err == nil {
			_, err = result.Consume(ctx)
		}
		return err
	}
}

func end(ctx context.Context, conn *pgx.Conn, sql string) error {
	_, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}
