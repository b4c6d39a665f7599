// Command orders takes orders in four stores at once: the order in PostgreSQL, an
// event in ClickHouse, a row of history in an Iceberg table, and in drevo that the
// customer ordered the product. One sql.Tx over all of them commits in all or in
// none, whenever the program is killed.
//
//	orders -dsn "shop=postgres://… events=clickhouse://… history=iceberg+sqlite://… relations=bolt://… journal=postgres://…" -init
//	orders -dsn "…" -workers 8 -n 1000
//
// The journal may be in drevo too, in a graph of its own. A DSN without one of the
// stores but shop leaves that out. "rhizorecover init" with the same DSN comes
// first. Each outcome is printed as a line "dat_txn verdict"; with -ack the program
// goes on only when a line has come back on its standard input (make demo kills it).
package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	rhizodat "github.com/rhizodat/rhizodat-go"
)

func main() {
	dsn := flag.String("dsn", os.Getenv("RHIZODAT_DSN"), "stores shop, events, history and relations, and a journal (default: RHIZODAT_DSN)")
	install := flag.Bool("init", false, "make the tables, fill the shelves, and end")
	workers := flag.Int("workers", 8, "orders at a time")
	number := flag.Int64("n", 0, "orders in all; 0 goes on until SIGTERM")
	ack := flag.Bool("ack", false, "wait for a line on standard input after each outcome")
	flag.Parse()

	s, err := openShop(*dsn)
	if err != nil {
		log.Fatal(err)
	}
	defer s.db.Close() //nolint:errcheck // the program ends; what it still owes the journal, recovery writes
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if *install {
		err = s.found(ctx)
	} else {
		err = s.work(ctx, *workers, *number, &reporter{ack: *ack, in: bufio.NewReader(os.Stdin)})
	}
	if err != nil {
		log.Fatal(err) //nolint:gocritic // see above
	}
}

// work takes orders until enough were tried or ctx ends.
func (s *shop) work(ctx context.Context, workers int, number int64, out *reporter) error {
	var tried atomic.Int64
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil && ctx.Err() == nil && (tried.Add(1) <= number || number == 0) {
				errs[i] = s.take(ctx, anyOrder(), out)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// take takes one order and tells how that ended.
func (s *shop) take(ctx context.Context, o order, out *reporter) error {
	policy := rhizodat.Policy{
		// drevo lets one of those through that write to a graph at the same moment,
		// and the others are run again.
		Attempts: 200, Max: attemptsAtMostEvery,
		OnRetry: func(ctx context.Context, _ int, _ error) {
			out.tell(rhizodat.Tracked(ctx).Outcome()) // aborted, and tried again under a new dat_txn
		},
	}
	outcome, err := rhizodat.Run(ctx, s.db, policy, func(ctx context.Context, tx *sql.Tx) error { return s.write(ctx, tx, o) })
	out.tell(outcome)
	var doubt *rhizodat.InDoubt
	if err != nil && !errors.Is(err, errSoldOut) && !errors.As(err, &doubt) && ctx.Err() == nil && !rhizodat.IsRetryable(err) {
		return err
	}
	return nil // done, or nothing happened, or recovery decides: it was told, and the next order is another
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
