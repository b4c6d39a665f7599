package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	rhizodat "github.com/rhizodat/rhizodat-go"
)

const (
	customers = 20
	products  = 20
	onShelf   = 200 // of each product: in a long run some are sold out
	most      = 3   // pieces in an order

	attemptsAtMostEvery = 300 * time.Millisecond
)

// shop is the stores.
type shop struct {
	db   *sql.DB
	with map[string]bool // stores that the DSN names
}

func openShop(dsn string) (*shop, error) {
	config, err := rhizodat.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	s := &shop{with: map[string]bool{}}
	for name := range config.Stores {
		s.with[name] = true
	}
	s.db, err = sql.Open("rhizodat", dsn)
	return s, err
}

// These stores make their tables at once and could not take them back: outside of
// a transaction, then.
var makeTables = map[string]string{
	"events": `CREATE TABLE events (at DateTime64(6), customer Int32, product Int32, quantity Int64, dat_txn UUID, dat_tx_time Int64,
		INDEX dat_txn dat_txn TYPE bloom_filter GRANULARITY 1) ENGINE = MergeTree ORDER BY (customer, at)`,
	"history": `CREATE TABLE history (at timestamptz, customer int, product int, quantity long, dat_txn string)`,
}

// found opens the shop, one store after the other: nobody orders yet.
func (s *shop) found(ctx context.Context) error {
	for store, statement := range makeTables {
		if s.with[store] {
			if _, err := s.db.ExecContext(rhizodat.WithStore(ctx, store), statement); err != nil {
				return err
			}
		}
	}
	_, err := rhizodat.Run(ctx, s.db, rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
		for _, statement := range []string{
			`CREATE TABLE stock (product int PRIMARY KEY, pieces bigint NOT NULL)`,
			`CREATE TABLE orders (dat_txn uuid PRIMARY KEY, customer int NOT NULL, product int NOT NULL, quantity bigint NOT NULL)`,
			fmt.Sprintf(`INSERT INTO stock SELECT n, %d FROM generate_series(1, %d) n`, onShelf, products),
		} {
			if _, err := tx.ExecContext(rhizodat.WithStore(ctx, "shop"), statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !s.with["relations"] {
		return err
	}
	_, err = rhizodat.Run(ctx, s.db, rhizodat.Policy{}, introduce)
	return err
}

// introduce makes the nodes of customers and products.
func introduce(ctx context.Context, tx *sql.Tx) error {
	for label, n := range map[string]int{"Customer": customers, "Product": products} {
		for i := range n {
			if _, err := tx.ExecContext(ctx, "store:relations CREATE (:"+label+" {title: $title})", sql.Named("title", title(label, i+1))); err != nil {
				return err
			}
		}
	}
	return nil
}

func title(label string, n int) string { return fmt.Sprintf("%s %d", label, n) }

// order is who orders how many pieces of what.
type order struct{ customer, product, quantity int }

func anyOrder() order {
	return order{1 + rand.IntN(customers), 1 + rand.IntN(products), 1 + rand.IntN(most)} //nolint:gosec // no secrets
}

var errSoldOut = errors.New("the product is sold out")

// write writes an order to every store. drevo comes last: a graph has one writer
// at a time, and who comes late to it has little to do again.
func (s *shop) write(ctx context.Context, tx *sql.Tx, o order) error {
	txn := rhizodat.Tracked(ctx).Outcome().DatTxn.String() // for rows that are to be found by it
	taken, err := tx.ExecContext(ctx, `store:shop UPDATE stock SET pieces = pieces - $2 WHERE product = $1 AND pieces >= $2`, o.product, o.quantity)
	if err != nil {
		return err
	}
	if n, err := taken.RowsAffected(); err != nil {
		return err
	} else if n == 0 {
		return errSoldOut
	}
	for _, w := range []struct {
		store, statement string
		args             []any
	}{
		{
			"shop", `INSERT INTO orders (dat_txn, customer, product, quantity) VALUES ($1, $2, $3, $4)`,
			[]any{txn, o.customer, o.product, o.quantity},
		},
		{
			"events", `INSERT INTO events (at, customer, product, quantity) VALUES (?, ?, ?, ?)`,
			[]any{time.Now(), o.customer, o.product, o.quantity},
		},
		{
			"history", `INSERT INTO history (at, customer, product, quantity, dat_txn) VALUES (?, ?, ?, ?, ?)`,
			[]any{time.Now(), o.customer, o.product, o.quantity, txn},
		},
		{
			"relations", `MATCH (c:Customer {title: $1}) MATCH (p:Product {title: $2}) CREATE (c)-[:ORDERED {dat_txn: $3, quantity: $4}]->(p)`,
			[]any{title("Customer", o.customer), title("Product", o.product), txn, o.quantity},
		},
	} {
		if !s.with[w.store] {
			continue
		}
		if _, err := tx.ExecContext(rhizodat.WithStore(ctx, w.store), w.statement, w.args...); err != nil {
			return err
		}
	}
	return nil
}
