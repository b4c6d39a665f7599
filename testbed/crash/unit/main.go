// Command unit is the child of the crash tests: one unit of work over the
// stores of RHIZODAT_DSN, as package plan tells it. At the point that it is given
// it says so and waits; there it is killed, frozen, or loses a server.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"

	rhizodat "github.com/rhizodat/rhizodat-go"
	_ "github.com/rhizodat/rhizodat-go/testbed/crash/payload" // makes its store known
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	_ "github.com/rhizodat/rhizodat-go/testbed/crash/pooled" // and this its journal
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "unit:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	todo, err := plan.Read()
	if err != nil {
		return err
	}
	cfg, err := rhizodat.ParseDSN(os.Getenv("RHIZODAT_DSN"))
	if err != nil {
		return err
	}
	parent := &parent{in: bufio.NewReader(os.Stdin)}
	watch := &observer{plan: todo, parent: parent}
	cfg.Observer, cfg.Logger = watch, slog.New(slog.NewTextHandler(os.Stderr, nil))
	connector, err := rhizodat.NewConnector(cfg) //nolint:contextcheck // it connects to nothing
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }() // which writes DONE
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // back to the pool; its sessions may be lost
	for _, statement := range todo.Before {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	watch.conn = conn
	if todo.Step != "" {
		return once(ctx, db, watch)
	}
	if ctx, err = leased(ctx, db, watch); err != nil {
		return err
	}
	for _, work := range [][]string{todo.Work, todo.Then} {
		if len(work) == 0 {
			continue
		}
		outcome, err := unit(ctx, conn, work, watch)
		if outcome.DatTxn.IsZero() {
			return errors.Join(errors.New("the unit did not begin"), err)
		}
		parent.tell(said(ctx, outcome, err, watch).Line())
	}
	return nil
}

// unit runs S1 and S2, which only the application sees, and commits.
func unit(ctx context.Context, conn *sql.Conn, statements []string, watch *observer) (rhizodat.Outcome, error) {
	ctx, handle := rhizodat.Track(ctx)
	watch.reach("S1.before")
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return handle.Outcome(), err
	}
	txn := handle.Outcome().DatTxn.String()
	watch.parent.tell(plan.WordTxn + " " + txn)
	watch.reach("S1.after")
	watch.reach("S2.before")
	for _, statement := range statements {
		if err := work(ctx, tx, statement, txn); err != nil {
			_ = tx.Rollback() // the statement's error says why
			return handle.Outcome(), err
		}
	}
	watch.reach("S2.after")
	if spoil := watch.plan.Spoil; spoil != "" {
		if watch.spoiled, err = session(conn, spoil); err != nil {
			return handle.Outcome(), errors.Join(err, tx.Rollback())
		}
	}
	err = tx.Commit()
	return handle.Outcome(), err
}

func work(ctx context.Context, tx *sql.Tx, statement, txn string) error {
	words := strings.Fields(statement)
	if words[0] != "book" && words[0] != "append" {
		_, err := tx.ExecContext(ctx, strings.ReplaceAll(statement, plan.Txn, txn))
		return err
	}
	stores, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return fmt.Errorf("read statement: %w", err)
	}
	if words[0] == "book" {
		_, err := tx.ExecContext(rhizodat.WithStore(ctx, words[1]), "book", txn, stores, int64(1))
		return err
	}
	rows, err := strconv.ParseInt(words[3], 10, 64)
	if err != nil {
		return fmt.Errorf("read statement: %w", err)
	}
	columns := append([]string{"k", "stores"}, words[4:]...)
	next := int64(0)
	_, err = rhizodat.Append(ctx, tx, words[1], "ledger", columns, func() ([]any, error) {
		if next++; next > rows {
			return nil, nil
		}
		return []any{next, stores, txn}[:len(columns)], nil
	})
	return err
}

// parent takes note of lines, one at a time.
type parent struct {
	mu sync.Mutex
	in *bufio.Reader
}

// tell says a line and waits until the parent has read it.
func (p *parent) tell(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Println(line)
	_, _ = p.in.ReadString('\n') // its end is the parent's: then nobody asks any more
}
