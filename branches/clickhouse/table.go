package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

// The columns of ours in the application's tables.
const (
	columnTxn  = "dat_txn"
	columnTime = "dat_tx_time"
)

// table is a table as the server describes it.
type table struct {
	name    tableName
	id      string // the server's own id of it
	engine  string
	create  string // its CREATE TABLE
	policy  string // storage policy
	columns []tableColumn
	server  column.ServerContext
}

type tableColumn struct{ name, typ, kind, expression string }

// insertable columns take a value. EPHEMERAL ones do, but only by name.
func (c tableColumn) insertable() bool { return c.kind != "MATERIALIZED" && c.kind != "ALIAS" }

func (c tableColumn) ours() bool { return c.name == columnTxn || c.name == columnTime }

func (t *table) column(name string) (tableColumn, bool) {
	i := slices.IndexFunc(t.columns, func(c tableColumn) bool { return c.name == name })
	if i < 0 {
		return tableColumn{}, false
	}
	return t.columns[i], true
}

// same reports whether rows that were checked against t fit other.
func (t *table) same(other *table) bool {
	return t.id == other.id && (t.create == other.create || t.engine == other.engine && slices.Equal(t.columns, other.columns))
}

// table returns a table as it was last seen, or asks for it.
func (s *Store) table(ctx context.Context, name tableName) (*table, error) {
	s.mu.Lock()
	known := s.known[name]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	found, err := s.describe(ctx, []tableName{name})
	if err != nil {
		return nil, err
	}
	return found[name], nil
}

// forget makes the next unit look again.
func (s *Store) forget(names ...tableName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		delete(s.known, name)
	}
}

// describe asks for tables. One that is not there is an error. What a table is
// made of stands in its CREATE TABLE, so its columns are only read when that is
// not the one that is known.
func (s *Store) describe(ctx context.Context, names []tableName) (map[tableName]*table, error) {
	found := map[tableName]*table{}
	err := s.each(ctx, describeText(names), func(scan func(...any) error) error {
		t := &table{}
		var version, zone string
		var revision uint32
		if err := scan(&t.name.database, &t.name.table, &t.id, &t.engine, &t.create, &t.policy, &version, &zone, &revision); err != nil {
			return err
		}
		t.server = serverContext(version, zone, revision)
		found[t.name] = t
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if found[name] == nil {
			s.forget(names...)
			return nil, &branches.Error{
				Store: s.name, Doing: "find table", Cause: "there is no table " + name.String(),
				Asks: branches.Permanent,
			}
		}
		if err := s.columns(ctx, found[name]); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.known[name] = found[name]
	}
	return found, nil
}

func describeText(names []tableName) string {
	databases, tables, pairs := make([]string, len(names)), make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		databases[i], tables[i] = name.database, name.table
		pairs[i] = "(" + chsql.Text(name.database) + "," + chsql.Text(name.table) + ")"
	}
	// The pairs say it; the lists are what the server looks up by.
	return "SELECT database,name,toString(uuid),engine,create_table_query,storage_policy,version(),timezone(),toUInt32(revision())" +
		" FROM system.tables WHERE database IN (" + textList(databases) + ") AND name IN (" + textList(tables) + ")" +
		" AND (database,name) IN (" + strings.Join(pairs, ",") + ")"
}

// columns fills in a table's columns, in its order.
func (s *Store) columns(ctx context.Context, t *table) error {
	s.mu.Lock()
	known := s.known[t.name]
	s.mu.Unlock()
	if known != nil && known.id == t.id && known.create == t.create {
		t.columns = known.columns
		return nil
	}
	return s.each(ctx, "SELECT name,type,default_kind,default_expression FROM system.columns WHERE database="+
		chsql.Text(t.name.database)+" AND table="+chsql.Text(t.name.table)+" ORDER BY position", func(scan func(...any) error) error {
		var c tableColumn
		err := scan(&c.name, &c.typ, &c.kind, &c.expression)
		t.columns = append(t.columns, c)
		return err
	})
}

// serverContext is what the client's columns want to know of the server.
func serverContext(version, zone string, revision uint32) column.ServerContext {
	parsed := proto.ParseVersion(version)
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	return column.ServerContext{
		Revision: uint64(revision), VersionMajor: parsed.Major, VersionMinor: parsed.Minor, VersionPatch: parsed.Patch,
		Timezone: location,
	}
}

// merging are the engines whose rows may legitimately become fewer.
var merging = []string{"Replacing", "Summing", "Aggregating", "Collapsing", "Coalescing", "Graphite"}

// fit says why a unit cannot write to a table whose rows have to be counted, with
// the way out, or "".
//
// A table of another database is another store's: two branches of one unit in
// one table would count each other's rows.
func (s *Store) fit(t *table) (cause, way string) {
	switch {
	case t.name.database != s.database:
		return fmt.Sprintf("table %s is not in the database of the store, %s", t.name, s.database),
			"make that database a store of its own in the DSN"
	case t.name.table == appliedTable, t.name.table == metaTable:
		return fmt.Sprintf("table %s is the driver's own", t.name), "write to another"
	}
	base, plain := strings.CutSuffix(t.engine, "MergeTree")
	if !plain {
		return fmt.Sprintf("table %s has the engine %s, where rows can be neither counted nor taken back", t.name, t.engine),
			"use a table of the MergeTree engine"
	}
	for _, kind := range merging {
		if strings.HasSuffix(base, kind) && !s.replaces(t) {
			return fmt.Sprintf("table %s has the engine %s, which merges rows: their number does not tell what was inserted", t.name, t.engine),
				"write to a MergeTree table, and fill this one by a materialized view" + replacingWay(kind)
		}
	}
	if cause := t.misfit(columnTxn, "UUID", "Nullable(UUID)"); cause != "" {
		return cause, t.alter()
	}
	if cause := t.misfit(columnTime, "Int64", "Nullable(Int64)", "UInt64", "Nullable(UInt64)"); cause != "" {
		return cause, t.alter()
	}
	if t.projections() {
		return fmt.Sprintf("table %s has a projection: a torn insert could not be taken back (code 344)", t.name),
			"ALTER TABLE " + t.name.quoted() + " MODIFY SETTING lightweight_mutation_projection_mode='rebuild'"
	}
	return "", ""
}

func replacingWay(kind string) string {
	if kind != "Replacing" {
		return ""
	}
	return ", or add " + keyReplacing + "=1 to the store's DSN (docs/clickhouse.md)"
}

// replaces: the documented way for tables that keep the last of equal rows.
func (s *Store) replaces(t *table) bool {
	return s.opts.Replacing && strings.HasSuffix(t.engine, "ReplacingMergeTree")
}

func (t *table) misfit(name string, types ...string) string {
	c, ok := t.column(name)
	switch {
	case !ok:
		return fmt.Sprintf("table %s has no column %s, by which its rows would be found again", t.name, name)
	case !slices.Contains(types, c.typ):
		return fmt.Sprintf("table %s has a column %s of type %s, want %s", t.name, name, c.typ, types[0])
	case !c.insertable():
		return fmt.Sprintf("table %s has a column %s that takes no value (%s)", t.name, name, c.kind)
	}
	return ""
}

// alter is the statement that makes a table fit.
func (t *table) alter() string {
	var parts []string
	for _, c := range []tableColumn{{name: columnTxn, typ: "Nullable(UUID)"}, {name: columnTime, typ: "Nullable(Int64)"}} {
		verb := "ADD"
		if _, there := t.column(c.name); there {
			verb = "MODIFY"
		}
		parts = append(parts, verb+" COLUMN "+c.name+" "+c.typ)
	}
	return "ALTER TABLE " + t.name.quoted() + " " + strings.Join(parts, ", ") +
		", ADD INDEX IF NOT EXISTS dat_txn dat_txn TYPE bloom_filter GRANULARITY 1"
}

// projections reports whether a DELETE would be refused because of a projection.
func (t *table) projections() bool {
	return strings.Contains(t.create, "PROJECTION ") && !strings.Contains(t.create, "lightweight_mutation_projection_mode")
}
