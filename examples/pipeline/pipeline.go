package main

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"sync"
	"time"

	rhizodat "github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/lease"
)

const (
	batch   = 50 // lines in a unit
	perTurn = 10 // units in a turn, so that other processes get theirs
)

type pipeline struct {
	db         *sql.DB
	dir        string
	workers    int
	every, ttl time.Duration
	out        reporter
}

// ClickHouse makes its table at once and could not take it back: that comes
// first, and on its own. The driver fills in dat_txn and dat_tx_time.
const makeEvents = `store:events CREATE TABLE readings (
	source LowCardinality(String), at Int64, meter Int32, value Int64, fence Int64, dat_txn UUID, dat_tx_time Int64,
	INDEX dat_txn dat_txn TYPE bloom_filter GRANULARITY 1
) ENGINE = MergeTree ORDER BY (source, at)`

// No key of readings forbids a line a second time, which a table of your own may
// well do. ClickHouse has no such keys, and here PostgreSQL shows what is true
// without: a line is there once because its source's progress moves with it.
var makeMain = []string{
	`CREATE TABLE readings (source text NOT NULL, at bigint NOT NULL, meter int NOT NULL, value bigint NOT NULL,
		fence bigint NOT NULL, dat_txn uuid NOT NULL)`,
	`CREATE TABLE progress (source text PRIMARY KEY, next_at bigint NOT NULL, fence bigint NOT NULL)`,
}

// found makes the tables.
func (p *pipeline) found(ctx context.Context) error {
	if _, err := p.db.ExecContext(ctx, makeEvents); err != nil {
		return err
	}
	_, err := rhizodat.Run(ctx, p.db, rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
		for _, statement := range makeMain {
			if _, err := tx.ExecContext(rhizodat.WithStore(ctx, "main"), statement); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// work follows every source until ctx ends, or one of them cannot be followed.
func (p *pipeline) work(ctx context.Context) error {
	names, err := sources(p.dir)
	if err != nil {
		return err
	}
	following, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	var wg sync.WaitGroup
	for _, source := range names {
		wg.Go(func() { failed(p.follow(following, source)) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil // asked to end
	}
	return context.Cause(following)
}

// follow takes turns at a source: this process's are those in which no other one
// has its lease.
func (p *pipeline) follow(ctx context.Context, source string) error {
	// Its row has to be there before anybody can find it locked.
	_, err := rhizodat.Run(ctx, p.db, rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `store:main INSERT INTO progress VALUES ($1, 0, 0) ON CONFLICT DO NOTHING`, source)
		return err
	})
	if err != nil {
		return err
	}
	return lease.RunEvery(ctx, p.db, "pipeline/"+source, p.every, func(turn context.Context) error {
		return p.turn(ctx, turn, source)
	}, lease.WithTTL(p.ttl))
}

// turn copies what is new in a source. Its context ends with the lease, and ctx
// with the process.
//
// A unit that is under way when the lease lapses is not broken off: for as long as
// nobody else was granted the lease it counts. Whether somebody was, its decision
// finds out, and nobody before.
func (p *pipeline) turn(ctx, turn context.Context, source string) error {
	held, _ := lease.FromContext(turn)
	next, err := p.progress(turn, source)
	for range perTurn {
		if err != nil || turn.Err() != nil {
			break
		}
		var lines []reading
		if lines, next, err = read(p.dir, source, next, batch); len(lines) == 0 {
			break
		}
		err = p.copy(rhizodat.WithLease(ctx, held), source, lines, next, held.Fence())
	}
	var fenced *lease.Fenced
	if err == nil || turn.Err() != nil || errors.As(err, &fenced) {
		return err // the end of a lease is no failure of the pipeline, and RunEvery knows it
	}
	// The next turn, whoever has it, begins where the last unit that was decided ends.
	log.Printf("%s: %v", source, err)
	return nil
}

// progress tells where the source's next line begins. It is asked once in a turn:
// from then on nobody else moves it.
//
// The last holder's last unit may be decided and not finished yet: its row of
// progress is then part of a prepared transaction. FOR UPDATE finds it locked, and
// is tried again, now and in the next turn; a plain SELECT would find the row as it
// was before, and the lines of that unit would be copied twice. NOWAIT, because a
// holder that was stopped may keep its locks for long, and whoever waits in the
// database keeps a connection from the other partitions.
func (p *pipeline) progress(ctx context.Context, source string) (next int64, err error) {
	err = rhizodat.Retry(ctx, rhizodat.Policy{}, func(ctx context.Context) error {
		tx, err := p.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // it was only read
		return tx.QueryRowContext(ctx, `store:main SELECT next_at FROM progress WHERE source = $1 FOR UPDATE NOWAIT`, source).Scan(&next)
	})
	return next, err
}

// copy is one unit: lines into both stores, each with the fence it was copied
// under, and the source's progress. It takes no lock and compares nothing: under
// the fence of its lease this process is the only one that moves the source.
func (p *pipeline) copy(ctx context.Context, source string, lines []reading, next int64, fence lease.Fence) error {
	policy := rhizodat.Policy{OnRetry: func(ctx context.Context, _ int, err error) {
		p.out.tell(rhizodat.Tracked(ctx).Outcome(), err) // aborted, and tried again under a new dat_txn
	}}
	outcome, err := rhizodat.Run(ctx, p.db, policy, func(ctx context.Context, tx *sql.Tx) error {
		rows := make([][]any, len(lines))
		for i, l := range lines {
			rows[i] = []any{source, l.at, l.meter, l.value, int64(fence)}
		}
		columns := []string{"source", "at", "meter", "value", "fence"}
		if _, err := rhizodat.Append(ctx, tx, "events", "readings", columns, rhizodat.CopyRows(rows)); err != nil {
			return err
		}
		txn := rhizodat.Tracked(ctx).Outcome().DatTxn.String()
		for i := range rows {
			rows[i] = append(rows[i], txn)
		}
		if _, err := rhizodat.CopyFrom(ctx, tx, "main", "readings", append(columns, "dat_txn"), rhizodat.CopyRows(rows)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `store:main UPDATE progress SET next_at = $2, fence = $3 WHERE source = $1`, source, next, int64(fence))
		return err
	})
	p.out.tell(outcome, err)
	return err
}
