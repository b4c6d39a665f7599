package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"

	_ "github.com/rhizodat/rhizodat-go" // reads the table
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// history is an Iceberg table in which each unit leaves a row, in a warehouse of
// its own: a SQL catalog in a SQLite file beside it. It is read by SQL, as an
// application would.
type history struct {
	db  *sql.DB
	way string
}

func openHistory(_ context.Context, s *stack) (rig.Companion, error) {
	dir, err := os.MkdirTemp("", "rhizodat-lake-")
	if err != nil {
		return nil, fmt.Errorf("make warehouse: %w", err)
	}
	h := &history{way: "iceberg+sqlite://" + filepath.Join(dir, "catalog.db") + "?warehouse=file://" + filepath.Join(dir, "warehouse")}
	h.db, err = sql.Open("rhizodat", "history="+h.way)
	s.closers = append(s.closers, func() error { return errors.Join(h.close(), os.RemoveAll(dir)) })
	return h, err
}

func (h *history) close() error {
	if h.db == nil {
		return nil
	}
	return h.db.Close()
}

// Way leads to the catalog.
func (h *history) Way() string { return h.way }

// Book is what the units have left.
func (h *history) Book(ctx context.Context) (book rig.Book, err error) {
	rows, err := h.db.QueryContext(ctx, `SELECT dat_txn, product, count(*), sum(quantity) FROM history GROUP BY dat_txn, product`)
	if err != nil {
		return nil, fmt.Errorf("read book of history: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	book = rig.Book{}
	for rows.Next() {
		var txn string
		var product int
		var sum rig.Sum
		if err := rows.Scan(&txn, &product, &sum.Rows, &sum.Total); err != nil {
			return nil, fmt.Errorf("read book of history: %w", err)
		}
		book[rig.Entry{Txn: txn, Part: strconv.Itoa(product)}] = sum
	}
	return book, rows.Err()
}

// Unfinished lists the units that have left nothing.
func (h *history) Unfinished(ctx context.Context, txns []string) ([]string, error) {
	return absent(ctx, h, txns)
}

// Busy is false: there is no server that could go on after its client.
func (h *history) Busy(context.Context) (bool, error) { return false, nil }

// Meddle makes rows wrong.
func (h *history) Meddle(ctx context.Context, lost, doubled, copied rig.Entry) error {
	if _, err := h.db.ExecContext(ctx, `DELETE FROM history WHERE dat_txn = ?`, lost.Txn); err != nil {
		return fmt.Errorf("meddle with history: %w", err)
	}
	return errors.Join(h.again(ctx, doubled.Txn, doubled.Txn), h.again(ctx, copied.Txn, uuid.NewString()))
}

// again inserts the row of a unit once more, as another's or its own.
func (h *history) again(ctx context.Context, txn, as string) error {
	var customer, product, quantity int
	err := h.db.QueryRowContext(ctx, `SELECT customer, product, quantity FROM history WHERE dat_txn = ?`, txn).Scan(&customer, &product, &quantity)
	if err == nil {
		_, err = h.db.ExecContext(ctx, `INSERT INTO history (at, customer, product, quantity, dat_txn) VALUES (?, ?, ?, ?, ?)`,
			time.Now(), customer, product, quantity, as)
	}
	if err != nil {
		return fmt.Errorf("meddle with history: %w", err)
	}
	return nil
}
