package iceberg_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// bed is a store at a place of its own.
type bed struct {
	*testing.T
	place *icetest.Place
	store *iceberg.Store
}

func newBed(t *testing.T, kind func(testing.TB) *icetest.Place, tables ...string) *bed {
	t.Helper()
	b := &bed{T: t, place: kind(t)}
	b.store = b.open(iceberg.Options{})
	if err := b.store.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range tables {
		b.exec(text)
	}
	return b
}

func dsn(p *icetest.Place) string {
	if strings.HasSuffix(p.DSN, "?") {
		return p.DSN + "namespace=ns"
	}
	return p.DSN + "&namespace=ns"
}

// open makes another instance of the store: it stands in for another process.
func (b *bed) open(opts iceberg.Options) *iceberg.Store {
	b.Helper()
	store, err := iceberg.Open("s", dsn(b.place), opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	return store
}

func (b *bed) session(store *iceberg.Store) branches.Session {
	b.Helper()
	session, err := store.Connect(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return session
}

// exec runs a statement outside of any unit.
func (b *bed) exec(text string, args ...any) int64 {
	b.Helper()
	return execOn(b.T, b.session(b.store), text, args...)
}

func execOn(t *testing.T, session branches.Session, text string, args ...any) int64 {
	t.Helper()
	done, err := session.Exec(t.Context(), text, named(args))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if done == driver.ResultNoRows {
		return 0
	}
	n, err := done.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func named(args []any) []driver.NamedValue {
	values := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return values
}

// rows are what a query returns outside of any unit, a row a text, sorted.
func (b *bed) rows(text string, args ...any) []string {
	b.Helper()
	return rowsOn(b.T, b.session(b.store), text, args...)
}

func rowsOn(t *testing.T, session branches.Session, text string, args ...any) []string {
	t.Helper()
	found, err := tryRows(t.Context(), session, text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return found
}

func tryRows(ctx context.Context, session branches.Session, text string, args ...any) ([]string, error) {
	rows, err := session.Query(ctx, text, named(args))
	if err != nil {
		return nil, err
	}
	found := []string{}
	row := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		texts := make([]string, len(row))
		for i, v := range row {
			texts[i] = fmt.Sprint(v)
		}
		found = append(found, strings.Join(texts, "|"))
	}
	slices.Sort(found)
	return found, rows.Close()
}

func (b *bed) want(text string, want ...string) {
	b.Helper()
	if got := b.rows(text); !slices.Equal(got, want) {
		b.Errorf("%s\n got %q\nwant %q", text, got, want)
	}
}

func (b *bed) load(name string) *table.Table {
	b.Helper()
	tbl, err := b.store.Load(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	return tbl
}

// unit is an open branch.
type unit struct {
	branches.Branch
	session branches.Session
	txn     branches.TxnID
	payload []byte
	vote    branches.Vote
}

func (b *bed) begin(store *iceberg.Store) *unit {
	b.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		b.Fatal(err)
	}
	u := &unit{session: b.session(store), txn: txn}
	if u.Branch, err = u.session.Begin(b.Context(), branches.BeginOptions{Txn: txn, Shared: true}); err != nil {
		b.Fatal(err)
	}
	return u
}

// try is S3.
func (u *unit) try(ctx context.Context) error {
	staged, err := u.Stage(ctx, branches.Unit{Txn: u.txn, TxTime: u.time(), Marker: true})
	u.payload, u.vote = staged.Payload, staged.Vote
	return err
}

func (u *unit) time() hlc.Time { return hlc.FromMillis(u.txn.Time().UnixMilli()) + 1 }

// staged runs statements in a unit and stages it.
func (b *bed) staged(statements ...string) *unit {
	b.Helper()
	u := b.begin(b.store)
	for _, text := range statements {
		execOn(b.T, u.session, text)
	}
	if err := u.try(b.Context()); err != nil {
		b.Fatal(err)
	}
	return u
}

func (u *unit) ref() branches.Ref {
	return branches.Ref{Txn: u.txn, Store: "s", GID: branches.NewGID(u.txn, "s"), TxTime: u.time(), Payload: u.payload}
}

// snapshotsOf counts the snapshots that carry a unit's id.
func (b *bed) snapshotsOf(name string, txn branches.TxnID) int {
	b.Helper()
	n := 0
	for _, s := range b.load(name).Metadata().Snapshots() {
		if s.Summary != nil && s.Summary.Properties["dat.txn"] == txn.String() {
			n++
		}
	}
	return n
}

// glob lists files of the store's namespace by a pattern below it.
func (b *bed) glob(pattern string) []string {
	b.Helper()
	var all []string
	for _, namespace := range []string{"ns.db", "ns"} {
		found, err := filepath.Glob(filepath.Join(b.place.Dir, namespace, pattern))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

func (b *bed) remove(location string) {
	b.Helper()
	if err := os.Remove(strings.TrimPrefix(location, "file://")); err != nil {
		b.Fatal(err)
	}
}
