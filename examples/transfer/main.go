// Command transfer moves money between the accounts of two databases, and tells
// a third store, ClickHouse, what was booked: one sql.Tx over all of them, which
// commits in all or in none, whenever the program is killed.
//
//	transfer -dsn "bank_a=postgres://… bank_b=postgres://… events=clickhouse://… journal=postgres://…" -init
//	transfer -dsn "…" -workers 8 -n 1000
//
// A DSN without the store events leaves the events out.
//
// "rhizorecover init" with the same DSN comes first. Each outcome is printed as
// a line "dat_txn verdict"; with -ack the program goes on only when a line has
// come back on its standard input, so that who started it knows everything that
// it knew (make demo kills it).
package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	rhizodat "github.com/rhizodat/rhizodat-go"
)

const (
	accounts = 100 // in each bank
	opening  = 100 // in each account
	highest  = 60  // transfer: now and then an account cannot pay it
)

func main() {
	dsn := flag.String("dsn", os.Getenv("RHIZODAT_DSN"), "stores bank_a, bank_b and events, and a journal (default: RHIZODAT_DSN)")
	install := flag.Bool("init", false, "make the tables, fill the accounts, and end")
	workers := flag.Int("workers", 8, "transfers at a time")
	number := flag.Int64("n", 0, "transfers in all; 0 goes on until SIGTERM")
	ack := flag.Bool("ack", false, "wait for a line on standard input after each outcome")
	flag.Parse()

	b, err := openBanks(*dsn)
	if err != nil {
		log.Fatal(err)
	}
	defer b.db.Close() //nolint:errcheck // the program ends; what it still owes the journal, recovery writes
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if *install {
		err = b.found(ctx)
	} else {
		err = b.work(ctx, *workers, *number, &reporter{ack: *ack, in: bufio.NewReader(os.Stdin)})
	}
	if err != nil {
		log.Fatal(err) //nolint:gocritic // see above
	}
}

// banks is both banks, and whether events of them are wanted.
type banks struct {
	db     *sql.DB
	events bool
}

func openBanks(dsn string) (*banks, error) {
	config, err := rhizodat.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	_, events := config.Stores["events"]
	db, err := sql.Open("rhizodat", dsn)
	return &banks{db: db, events: events}, err
}

const makeEvents = `store:events CREATE TABLE events (
	at DateTime64(6), bank LowCardinality(String), account Int32, amount Int64, dat_txn UUID, dat_tx_time Int64,
	INDEX dat_txn dat_txn TYPE bloom_filter GRANULARITY 1
) ENGINE = MergeTree PARTITION BY bank ORDER BY (account, at)`

// found makes both banks in one transaction, too. ClickHouse would make its table
// at once and could not take it back: that comes first, and on its own.
func (b *banks) found(ctx context.Context) error {
	if b.events {
		if _, err := b.db.ExecContext(ctx, makeEvents); err != nil {
			return err
		}
	}
	_, err := rhizodat.Run(ctx, b.db, rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
		for _, bank := range []string{"bank_a", "bank_b"} {
			for _, statement := range []string{
				`CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL)`,
				`CREATE TABLE transfers (dat_txn uuid PRIMARY KEY, account int NOT NULL, amount bigint NOT NULL)`,
				fmt.Sprintf(`INSERT INTO accounts SELECT id, %d FROM generate_series(1, %d) id`, opening, accounts),
			} {
				if _, err := tx.ExecContext(ctx, "store:"+bank+" "+statement); err != nil {
					return err
				}
			}
			if err := b.tell(ctx, tx, bank, 0, opening*accounts); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// work runs transfers until enough were tried or ctx ends.
func (b *banks) work(ctx context.Context, workers int, number int64, out *reporter) error {
	var tried atomic.Int64
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil && ctx.Err() == nil && (tried.Add(1) <= number || number == 0) {
				errs[i] = b.transfer(ctx, out)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// transfer moves a random amount between two random accounts, one in each
// bank, and tells how that ended.
func (b *banks) transfer(ctx context.Context, out *reporter) error {
	from, to := 1+rand.IntN(accounts), 1+rand.IntN(accounts) //nolint:gosec // no secrets
	amount := rand.Int64N(2*highest+1) - highest             //nolint:gosec // from bank_a to bank_b, or back
	policy := rhizodat.Policy{OnRetry: func(ctx context.Context, _ int, _ error) {
		out.tell(rhizodat.Tracked(ctx).Outcome()) // aborted, and tried again under a new dat_txn
	}}
	outcome, err := rhizodat.Run(ctx, b.db, policy, func(ctx context.Context, tx *sql.Tx) error {
		// Always bank_a first: two stores cannot see each other's locks, so an
		// order is all that keeps two transfers from waiting for each other.
		if err := b.book(ctx, tx, "bank_a", from, -amount); err != nil {
			return err
		}
		return b.book(ctx, tx, "bank_b", to, amount)
	})
	out.tell(outcome)
	var doubt *rhizodat.InDoubt
	if err != nil && !errors.Is(err, errPoor) && !errors.As(err, &doubt) && ctx.Err() == nil {
		return err
	}
	return nil // done, or nothing happened, or recovery decides: it was told, and the next transfer is another
}

var errPoor = errors.New("the account cannot pay this")

// book changes one account.
func (b *banks) book(ctx context.Context, tx *sql.Tx, bank string, account int, amount int64) error {
	paid, err := tx.ExecContext(rhizodat.WithStore(ctx, bank),
		`UPDATE accounts SET balance = balance + $1 WHERE id = $2 AND balance + $1 >= 0`, amount, account)
	if err != nil {
		return err
	}
	if n, err := paid.RowsAffected(); err != nil {
		return err
	} else if n == 0 {
		return errPoor
	}
	return b.tell(ctx, tx, bank, account, amount)
}

// tell writes down what was booked: in the bank itself, with the dat_txn, so that
// anybody can ask later what this transaction did here; and as an event, where
// the driver fills in the dat_txn.
func (b *banks) tell(ctx context.Context, tx *sql.Tx, bank string, account int, amount int64) error {
	_, err := tx.ExecContext(rhizodat.WithStore(ctx, bank), `INSERT INTO transfers (dat_txn, account, amount) VALUES ($1, $2, $3)`,
		rhizodat.Tracked(ctx).Outcome().DatTxn.String(), account, amount)
	if err != nil || !b.events {
		return err
	}
	_, err = tx.ExecContext(ctx, `store:events INSERT INTO events (at, bank, account, amount) VALUES (?, ?, ?, ?)`,
		time.Now(), bank, account, amount)
	return err
}

// reporter prints outcomes, one at a time.
type reporter struct {
	mu  sync.Mutex
	ack bool
	in  *bufio.Reader
}

func (r *reporter) tell(o rhizodat.Outcome) {
	if o.DatTxn.IsZero() {
		return // it never began
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Println(o.DatTxn, o.Verdict)
	if r.ack {
		_, _ = r.in.ReadString('\n') // at its end nobody listens any more
	}
}
