// Command pipeline copies the lines of many files, its source partitions, into
// PostgreSQL and ClickHouse, each line once in both. As many processes as you like
// run it side by side: each partition is one process's at a time, under a lease,
// and goes to another when its process dies, hangs, or loses the journal.
//
//	mkdir src; seq -f '7 %g' 100000 | split -n r/20 -d - src/part-
//	pipeline -dsn "main=postgres://… events=clickhouse://… journal=postgres://…" -source src -init
//	pipeline -dsn "…" -source src & pipeline -dsn "…" -source src & pipeline -dsn "…" -source src
//
// "rhizorecover init" with the same DSN comes first, and "rhizorecover run" beside
// it finishes what killed processes leave. A line is two numbers: a meter and what
// it read. Files may grow.
//
// Each outcome is printed as a line "dat_txn verdict", with "fenced" behind it if
// the partition was another's by then; with -ack the program goes on only when a
// line has come back on its standard input (make pipeline kills and stops it).
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
	"syscall"
	"time"

	rhizodat "github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/lease"
)

func main() {
	var p pipeline
	dsn := flag.String("dsn", os.Getenv("RHIZODAT_DSN"), "stores main and events, and a journal (default: RHIZODAT_DSN)")
	install := flag.Bool("init", false, "make the tables, and end")
	flag.StringVar(&p.dir, "source", "src", "directory of the files")
	flag.IntVar(&p.workers, "workers", 8, "units at a time")
	flag.DurationVar(&p.every, "every", time.Second, "time between two turns at a partition")
	flag.DurationVar(&p.ttl, "ttl", lease.DefaultTTL, "how long a partition waits for a process that has died")
	flag.BoolVar(&p.out.ack, "ack", false, "wait for a line on standard input after each outcome")
	flag.Parse()
	if err := p.open(*dsn); err != nil {
		log.Fatal(err)
	}
	defer p.db.Close() //nolint:errcheck // the program ends; what it still owes the journal, recovery writes
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	run := p.work
	if *install {
		run = p.found
	}
	if err := run(ctx); err != nil {
		log.Fatal(err) //nolint:gocritic // see above
	}
}

// open opens the stores; nothing connects yet.
func (p *pipeline) open(dsn string) (err error) {
	p.out.in = bufio.NewReader(os.Stdin)
	if p.db, err = sql.Open("rhizodat", dsn); err == nil {
		p.db.SetMaxOpenConns(p.workers)
	}
	return err
}

// reporter prints outcomes, one at a time.
type reporter struct {
	mu  sync.Mutex
	ack bool
	in  *bufio.Reader
}

func (r *reporter) tell(o rhizodat.Outcome, err error) {
	if o.DatTxn.IsZero() {
		return // it never began
	}
	fenced := ""
	if _, ok := errors.AsType[*lease.Fenced](err); ok {
		fenced = " fenced"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Printf("%s %s%s\n", o.DatTxn, o.Verdict, fenced)
	if r.ack {
		_, _ = r.in.ReadString('\n') // at its end nobody listens any more
	}
}
