package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	lib "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	rhizodat "github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/hlc"
	recovery "github.com/rhizodat/rhizodat-go/recover"
	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// The names of our stores.
const (
	lake = "lake" // where the peers are
	side = "side" // a second one
)

// ours is this library over a place: the driver, and the store by itself for
// what only a coordinator does.
type ours struct {
	place   *place
	from    *rhizodat.Connector
	db      *sql.DB
	store   *iceberg.Store
	another *iceberg.Store  // as another process has it
	raw     catalog.Catalog // for schema changes, which the SQL has not, and to look at snapshots
	clock   *hlc.Clock
	pending int // transactions that were decided, and left to recovery
}

// longest is how long a commit may take among three engines on a busy machine.
const longest = 2 * time.Minute

func openOurs(ctx context.Context, p *place) (*ours, error) {
	if err := os.MkdirAll(p.dir, 0o750); err != nil {
		return nil, fmt.Errorf("make directory of %s: %w", p.name, err)
	}
	dsn := lake + "=" + p.dsn + " " + side + "=" + p.log() + " journal=" + p.journal() + " default=" + lake + " commit_timeout=" + longest.String() + " stale_after=" + (2 * longest).String()
	cfg, err := rhizodat.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	cfg.Logger = quiet
	connector, err := rhizodat.NewConnector(cfg) //nolint:contextcheck // it connects to nothing
	if err != nil {
		return nil, err
	}
	o := &ours{place: p, from: connector, db: sql.OpenDB(connector), clock: hlc.NewClock(hlc.System, time.Minute)}
	if err := connector.Install(ctx); err != nil {
		return nil, errors.Join(err, o.close())
	}
	for _, s := range []**iceberg.Store{&o.store, &o.another} {
		if *s, err = iceberg.Open(lake, p.dsn, iceberg.Options{Logger: quiet}); err != nil {
			return nil, errors.Join(err, o.close())
		}
	}
	if err := o.open(ctx); err != nil {
		return nil, errors.Join(err, o.close())
	}
	return o, nil
}

func (o *ours) open(ctx context.Context) error {
	session, err := o.store.Connect(ctx)
	if err != nil {
		return err
	}
	opened, ok := session.(*iceberg.Session)
	if !ok {
		return fmt.Errorf("the session is a %T", session)
	}
	if err := opened.Ping(ctx); err != nil { // before it there is no catalog
		return err
	}
	if o.raw, ok = opened.Raw().(catalog.Catalog); !ok {
		return errors.New("the session has no catalog")
	}
	return o.exec(ctx, "store:"+side+" CREATE TABLE written (what string, at long)")
}

func (o *ours) close() error {
	errs := []error{o.db.Close()}
	for _, s := range []*iceberg.Store{o.store, o.another} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// exec runs a statement as a unit of its own.
func (o *ours) exec(ctx context.Context, text string, args ...any) error {
	if _, err := o.db.ExecContext(ctx, text, args...); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

// inBoth runs work in a transaction that also writes to the second store, so that
// it is committed in two phases.
func (o *ours) inBoth(ctx context.Context, what string, work func(tx *sql.Tx) error) error {
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	if err := work(tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "store:"+side+" INSERT INTO written VALUES (?, ?)", what, o.clock.Now().Millis()); err != nil {
		return err
	}
	err = tx.Commit()
	if err != nil && rhizodat.IsCommitted(err) { // others were always quicker; recovery finishes it
		o.pending++
		return nil
	}
	return err
}

// recover finishes what was left to it, as rhizorecover does.
func (o *ours) recover(ctx context.Context) error {
	config, err := o.from.Recovery()
	if err != nil {
		return err
	}
	config.StaleAfter = -1 // nobody else is at it
	worker, err := recovery.New(config)
	if err != nil {
		return err
	}
	_, err = worker.Once(ctx)
	return err
}

// load reads a table's metadata.
func (o *ours) load(ctx context.Context, name string) (*table.Table, error) {
	tbl, err := o.raw.LoadTable(ctx, table.Identifier{namespace, name})
	if err != nil {
		return nil, fmt.Errorf("load table %s: %w", name, err)
	}
	return tbl, nil
}

// read is a table as this library reads it.
func (o *ours) read(ctx context.Context, name string) (state, error) {
	tbl, err := o.load(ctx, name)
	if err != nil {
		return state{}, err
	}
	s := state{Version: strconv.Itoa(tbl.Metadata().Version()), Snapshots: snapshots(tbl)}
	if s.Schema, err = json.Marshal(tbl.Schema()); err != nil {
		return state{}, fmt.Errorf("read table %s: %w", name, err)
	}
	spec := tbl.Spec()
	if s.Spec, err = json.Marshal(spec); err != nil {
		return state{}, fmt.Errorf("read table %s: %w", name, err)
	}
	s.Rows, err = o.rows(ctx, tbl.Schema(), "SELECT * FROM "+name)
	return s, err
}

// rows runs a query whose columns are those of the schema.
func (o *ours) rows(ctx context.Context, schema *lib.Schema, text string, args ...any) ([]canon.Row, error) {
	found, err := o.db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	defer func() { _ = found.Close() }() // Err has told
	fields := schema.Fields()
	var rows []canon.Row
	for found.Next() {
		values, into := make([]any, len(fields)), make([]any, len(fields))
		for i := range values {
			into[i] = &values[i]
		}
		if err := found.Scan(into...); err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		row := canon.Row{}
		for i, f := range fields {
			if row[f.Name], err = canon.Of(f.Type, values[i]); err != nil {
				return nil, fmt.Errorf("%s: column %s: %w", text, f.Name, err)
			}
		}
		rows = append(rows, row)
	}
	return rows, found.Err()
}

// counters are what of a snapshot's summary everybody must read alike.
var counters = []string{txnKey, "total-records", "added-records", "deleted-records", "total-data-files"}

// txnKey is where a snapshot says which unit it is of.
const txnKey = "dat.txn"

func snapshots(tbl *table.Table) []canon.Row {
	var all []canon.Row
	for _, s := range tbl.Metadata().Snapshots() {
		row := canon.Row{"id": strconv.FormatInt(s.SnapshotID, 10), "seq": strconv.FormatInt(s.SequenceNumber, 10)}
		if s.Summary != nil {
			row["op"] = string(s.Summary.Operation)
			for _, key := range counters {
				if v, ok := s.Summary.Properties[key]; ok {
					row[key] = v
				}
			}
		}
		all = append(all, row)
	}
	return all
}

// stage runs statements in a unit up to S3: what would be in the journal's record.
func (o *ours) stage(ctx context.Context, statements ...string) (branches.Ref, error) {
	txn, err := branches.NewTxnID()
	if err != nil {
		return branches.Ref{}, err
	}
	session, err := o.store.Connect(ctx)
	if err != nil {
		return branches.Ref{}, err
	}
	defer func() { _ = session.Close() }() // staged files stay
	branch, err := session.Begin(ctx, branches.BeginOptions{Txn: txn, Shared: true})
	if err != nil {
		return branches.Ref{}, err
	}
	for _, text := range statements {
		if _, err := session.Exec(ctx, text, nil); err != nil {
			return branches.Ref{}, fmt.Errorf("%s: %w", text, err)
		}
	}
	at := o.clock.Now()
	staged, err := branch.Stage(ctx, branches.Unit{Txn: txn, TxTime: at, Marker: true})
	if err != nil {
		return branches.Ref{}, err
	}
	return branches.Ref{Txn: txn, Store: lake, GID: branches.NewGID(txn, lake), TxTime: at, Payload: staged.Payload}, nil
}

// head is where a table's metadata is: another one after every commit.
func (o *ours) head(ctx context.Context, name string) (string, error) {
	tbl, err := o.load(ctx, name)
	if err != nil {
		return "", err
	}
	return tbl.MetadataLocation(), nil
}

// values is the text of n rows of a VALUES list with width parameters each.
func values(n, width int) string {
	row := "(" + strings.TrimSuffix(strings.Repeat("?, ", width), ", ") + ")"
	return strings.TrimSuffix(strings.Repeat(row+", ", n), ", ")
}
