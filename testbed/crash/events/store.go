package events

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// Texts by which a proxy knows the requests of a finisher.
const (
	TextQuiet  = "FROM system.processes WHERE" // is an attempt running?
	TextCount  = "groupUniqArray(_part)"       // which rows are there?
	TextInsert = "`ledger` (`"                 // insert the rows
	TextDelete = "DELETE FROM"                 // take back a torn insert
	TextMarker = "`dat_applied` (dat_txn"      // write the marker, or a tombstone
)

// Store is one database. It is used by one goroutine at a time.
type Store struct {
	engine   *Engine
	layout   Layout
	database string
	deleted  map[string]deletion // by dat_txn
}

// deletion is what the application has deleted of a unit.
type deletion struct {
	stores string
	left   int
}

var _ rig.Other = (*Store)(nil)

// Engine that the database lies on.
func (s *Store) Engine() *Engine { return s.engine }

// Rows of every unit.
func (s *Store) Rows() int { return s.layout.Rows }

// Table is the ledger's full name.
func (s *Store) Table() string { return s.database + ".ledger" }

// Way is the store's URL in a DSN.
func (s *Store) Way() string {
	if s.layout.HTTP {
		return s.engine.at.HTTP(s.database)
	}
	return s.engine.at.Native(s.database)
}

// Addr is the host:port that Way leads to.
func (s *Store) Addr() string {
	if s.layout.HTTP {
		return s.engine.at.HTTPAddr()
	}
	return s.engine.at.NativeAddr()
}

// Via is Way through a proxy that listens at addr.
func (s *Store) Via(addr string) string { return strings.Replace(s.Way(), s.Addr(), addr, 1) }

// Ask runs one statement.
func (s *Store) Ask(ctx context.Context, query string) (string, error) {
	return s.engine.at.Ask(ctx, "", query)
}

// AskAs is Ask under a query id.
func (s *Store) AskAs(ctx context.Context, id, query string) (string, error) {
	return s.engine.at.Ask(ctx, id, query)
}

// Int returns the one number of a query.
func (s *Store) Int(ctx context.Context, query string) (int, error) {
	text, err := s.Ask(ctx, query)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("read number: %w", err)
	}
	return n, nil
}

// lines are the rows of a query's answer.
func (s *Store) lines(ctx context.Context, query string) ([]string, error) {
	text, err := s.Ask(ctx, query)
	if err != nil || text == "" {
		return nil, err
	}
	return strings.Split(text, "\n"), nil
}

// Has is the number of a unit's rows.
func (s *Store) Has(ctx context.Context, txn string) (int, error) {
	return s.Int(ctx, "SELECT count() FROM "+s.Table()+" WHERE dat_txn='"+txn+"'")
}

// Effects are the units that have rows, or had them until the application
// deleted them.
func (s *Store) Effects(ctx context.Context) (map[string]string, error) {
	found, err := s.lines(ctx, "SELECT dat_txn, any(stores) FROM "+s.Table()+" WHERE dat_txn IS NOT NULL GROUP BY dat_txn")
	if err != nil {
		return nil, err
	}
	effects := map[string]string{}
	for _, line := range found {
		txn, stores, _ := strings.Cut(line, "\t")
		effects[txn] = stores
	}
	for txn, d := range s.deleted {
		effects[txn] = d.stores
	}
	return effects, nil
}

// Inexact finds units that have other rows than theirs, each once, of one time,
// beside one marker of that time.
func (s *Store) Inexact(ctx context.Context) ([]string, error) {
	found, err := s.lines(ctx, `SELECT r.dat_txn, r.n, r.different, r.first, r.last, m.n, m.time FROM
		(SELECT dat_txn, count() AS n, uniqExact(k) AS different, min(dat_tx_time) AS first, max(dat_tx_time) AS last
			FROM `+s.Table()+` WHERE dat_txn IS NOT NULL GROUP BY dat_txn) AS r
		LEFT JOIN (SELECT toNullable(dat_txn) AS dat_txn, count() AS n, max(dat_tx_time) AS time
			FROM `+s.database+`.dat_applied GROUP BY dat_txn) AS m USING dat_txn ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	var wrong []string
	seen := map[string]bool{}
	for _, line := range found {
		f := strings.Split(line, "\t")
		txn, rows, want := f[0], f[1], strconv.Itoa(s.layout.Rows)
		seen[txn] = true
		d, deleted := s.deleted[txn]
		if deleted {
			want = strconv.Itoa(d.left)
		}
		switch {
		case rows != want && deleted:
			wrong = append(wrong, fmt.Sprintf("%s has %s rows, and the application had left %s", txn, rows, want))
		case rows != want || f[2] != rows:
			wrong = append(wrong, fmt.Sprintf("%s has %s rows, %s different ones, and not %s", txn, rows, f[2], want))
		case f[5] != "1" || f[3] != f[4] || f[3] != f[6]:
			wrong = append(wrong, fmt.Sprintf("%s has rows of the times %s to %s beside %s markers, the last of %s", txn, f[3], f[4], f[5], f[6]))
		}
	}
	for txn, d := range s.deleted {
		if !seen[txn] && d.left > 0 {
			wrong = append(wrong, fmt.Sprintf("%s has no rows, and the application had left %d", txn, d.left))
		}
	}
	return wrong, nil
}

// Prepared is empty: nothing can be prepared here.
func (s *Store) Prepared(context.Context) ([]string, error) { return nil, nil }

// Busy reports whether a statement runs in the database.
func (s *Store) Busy(ctx context.Context) (bool, error) {
	n, err := s.Int(ctx, "SELECT count() FROM system.processes WHERE current_database='"+s.database+"'")
	return n > 0, err
}

// Inserting reports whether an insert into the ledger runs.
func (s *Store) Inserting(ctx context.Context) (bool, error) {
	n, err := s.Int(ctx, "SELECT count() FROM system.processes WHERE current_database='"+s.database+"' AND query_kind='Insert'")
	return n > 0, err
}

// Delete deletes rows of a unit, as the application does.
func (s *Store) Delete(ctx context.Context, txn, where string) error {
	of := " FROM " + s.Table() + " WHERE dat_txn='" + txn + "'"
	stores, err := s.Ask(ctx, "SELECT any(stores)"+of)
	if err != nil {
		return err
	}
	if _, err := s.Ask(ctx, "DELETE"+of+" AND "+where); err != nil {
		return err
	}
	left, err := s.Int(ctx, "SELECT count()"+of)
	s.deleted[txn] = deletion{stores, left}
	return err
}

// Tear takes half of a unit's partitions away, as a crash inside of an insert
// does. The server keeps what it knows of the unit's insert.
func (s *Store) Tear(ctx context.Context, txn string) error {
	_, err := s.Ask(ctx, fmt.Sprintf("DELETE FROM %s WHERE dat_txn='%s' AND k %% %d < %d",
		s.Table(), txn, s.layout.Partitions, s.layout.Partitions/2))
	return err
}

// Deletes counts the DELETEs that the ledger has seen.
func (s *Store) Deletes(ctx context.Context) (int, error) {
	return s.Int(ctx, "SELECT count() FROM system.mutations WHERE database='"+s.database+"' AND table='ledger'")
}
