package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	lib "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	rhizodat "github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// The rows that a story adds to those of its design.
const (
	idDeleted = "1000" // and deletes
	idUpdated = "1001" // and updates
	idLate    = "1002" // after its schema has changed
)

// tell plays the life of a table and returns the rows that it must have then: an
// append as a unit of its own, one in a transaction of two stores, a DELETE, an
// UPDATE that moves a row into another partition, a new column, an append with it.
func (o *ours) tell(ctx context.Context, d design) ([]canon.Row, error) {
	properties := fmt.Sprintf(" TBLPROPERTIES ('format-version'='%d', 'commit.retry.num-retries'='4')", d.version)
	if err := o.exec(ctx, "CREATE TABLE "+d.name+" ("+d.columns+") "+d.clause+properties); err != nil {
		return nil, err
	}
	tbl, err := o.load(ctx, d.name)
	if err != nil {
		return nil, err
	}
	rewrites := d.version < 3 // this library refuses DELETE and UPDATE on the others
	rows := slices.Clone(d.rows)
	half := len(rows) / 2
	first := slices.Clone(rows[:half])
	if rewrites {
		first = append(first, with(rows[0], "id", idDeleted), with(rows[0], "id", idUpdated))
	}
	if err := o.insert(ctx, tbl.Schema(), d.name, first); err != nil {
		return nil, err
	}
	if err := o.appendInBoth(ctx, tbl.Schema(), d.name, rows[half:]); err != nil {
		return nil, err
	}
	if rewrites {
		updated, err := o.rewrite(ctx, tbl.Schema(), d)
		if err != nil {
			return nil, err
		}
		rows = append(rows, updated)
	}
	if err := o.evolve(ctx, d.name, func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.AddColumn([]string{"note"}, lib.PrimitiveTypes.String, "", false, nil)
	}); err != nil {
		return nil, err
	}
	rows = append(rows, with(rows[1], "id", idLate))
	for i := range rows {
		rows[i] = with(rows[i], "note", nil)
	}
	rows[len(rows)-1]["note"] = "late"
	if tbl, err = o.load(ctx, d.name); err != nil {
		return nil, err
	}
	return rows, o.insert(ctx, tbl.Schema(), d.name, rows[len(rows)-1:])
}

// rewrite deletes a row and updates another, which it returns.
func (o *ours) rewrite(ctx context.Context, schema *lib.Schema, d design) (canon.Row, error) {
	if err := o.exec(ctx, "DELETE FROM "+d.name+" WHERE id = ?", idDeleted); err != nil {
		return nil, err
	}
	field, ok := schema.FindFieldByName(d.moved)
	if !ok {
		return nil, fmt.Errorf("table %s has no column %s", d.name, d.moved)
	}
	to := d.rows[len(d.rows)/2][d.moved]
	arg, err := canon.Arg(field.Type, to)
	if err != nil {
		return nil, err
	}
	updated := with(with(d.rows[0], "id", idUpdated), d.moved, to)
	return updated, o.exec(ctx, "UPDATE "+d.name+" SET "+d.moved+" = ? WHERE id = ?", arg, idUpdated)
}

// with is a copy of a row with another cell.
func with(r canon.Row, name string, c canon.Cell) canon.Row {
	changed := canon.Row{name: c}
	for k, v := range r {
		if k != name {
			changed[k] = v
		}
	}
	return changed
}

// insert writes rows with one INSERT.
func (o *ours) insert(ctx context.Context, schema *lib.Schema, name string, rows []canon.Row) error {
	var args []any
	for _, r := range rows {
		row, err := arguments(schema, r)
		if err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
		args = append(args, row...)
	}
	text := "INSERT INTO " + name + " VALUES " + values(len(rows), len(schema.Fields()))
	if err := o.exec(ctx, text, args...); err != nil {
		return fmt.Errorf("table %s: %w", name, err)
	}
	return nil
}

func arguments(schema *lib.Schema, r canon.Row) ([]any, error) {
	fields := schema.Fields()
	args := make([]any, len(fields))
	for i, f := range fields {
		var err error
		if args[i], err = canon.Arg(f.Type, r[f.Name]); err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
	}
	return args, nil
}

// appendInBoth appends rows in a transaction of two stores.
func (o *ours) appendInBoth(ctx context.Context, schema *lib.Schema, name string, rows []canon.Row) error {
	names := make([]string, 0, len(schema.Fields()))
	for _, f := range schema.Fields() {
		names = append(names, f.Name)
	}
	return o.inBoth(ctx, name, func(tx *sql.Tx) error {
		i := 0
		_, err := rhizodat.Append(ctx, tx, lake, name, names, func() ([]any, error) {
			if i == len(rows) {
				return nil, nil
			}
			i++
			return arguments(schema, rows[i-1])
		})
		return err
	})
}

// evolve changes a table's schema, which the SQL cannot.
func (o *ours) evolve(ctx context.Context, name string, change func(*table.UpdateSchema) *table.UpdateSchema) error {
	tbl, err := o.load(ctx, name)
	if err != nil {
		return err
	}
	tx := tbl.NewTransaction()
	if err := change(tx.UpdateSchema(true, false)).Commit(); err != nil {
		return fmt.Errorf("change schema of %s: %w", name, err)
	}
	if _, err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("change schema of %s: %w", name, err)
	}
	return nil
}

// evolved is the table whose schema and partitioning change in every way, with a
// change that was staged before and is finished after.
const evolved = "evolved"

func (o *ours) tellEvolved(ctx context.Context) ([]canon.Row, error) {
	err := o.exec(ctx, "CREATE TABLE "+evolved+" (id long NOT NULL, n int, f float, d decimal(9,2), name string, gone string, st struct<a: int, b: string>) PARTITIONED BY (n)")
	if err != nil {
		return nil, err
	}
	old := func(from, to int) string {
		var rows []string
		for i := from; i < to; i++ {
			rows = append(rows, fmt.Sprintf(`(%d, %d, %d.1, %d.50, 'n%d', 'x', '{"a": %d, "b": "b"}')`, i, i%3, i, i, i, i))
		}
		return "INSERT INTO " + evolved + " VALUES " + strings.Join(rows, ", ")
	}
	if err := o.exec(ctx, old(0, 6)); err != nil {
		return nil, err
	}
	late, err := o.stage(ctx, old(6, 8))
	if err != nil {
		return nil, err
	}
	if err := o.evolve(ctx, evolved, everyChange); err != nil {
		return nil, err
	}
	if err := o.repartition(ctx); err != nil {
		return nil, err
	}
	if err := o.another.Finish(ctx, late); err != nil {
		return nil, err
	}
	var want []canon.Row
	for i := range 8 { // as an old row reads now
		want = append(want, canon.Row{
			"id": fmt.Sprint(i), "n": fmt.Sprint(i % 3), "f": canon.Double(float64(float32(i) + .1)), "d": fmt.Sprintf("%d.50", i),
			"title": fmt.Sprint("n", i), "st": canon.Row{"a": fmt.Sprint(i), "b2": "b", "c": nil}, "extra": nil,
		})
	}
	tbl, err := o.load(ctx, evolved)
	if err != nil {
		return nil, err
	}
	var last []canon.Row
	for i := 8; i < 12; i++ {
		last = append(last, canon.Row{
			"id": fmt.Sprint(i), "n": "5000000000", "f": canon.Double(.1), "d": "9999999999999999.99", "title": "t",
			"st": canon.Row{"a": nil, "b2": "q", "c": "-1"}, "extra": "-1",
		})
	}
	if err := o.insert(ctx, tbl.Schema(), evolved, last); err != nil {
		return nil, err
	}
	// A rewrite of files that were written under the old schema and partitions.
	if err := o.exec(ctx, "UPDATE "+evolved+" SET title = 'new', n = 7 WHERE id = 1"); err != nil {
		return nil, err
	}
	want[1]["title"], want[1]["n"] = "new", "7"
	want = append(want[:2], want[3:]...)
	return append(want, last...), o.exec(ctx, "DELETE FROM "+evolved+" WHERE id = 2")
}

// everyChange adds, renames, drops, widens and moves columns, two of them within a struct.
func everyChange(u *table.UpdateSchema) *table.UpdateSchema {
	p := lib.PrimitiveTypes
	to := func(t lib.Type) table.ColumnUpdate {
		return table.ColumnUpdate{FieldType: lib.Optional[lib.Type]{Valid: true, Val: t}}
	}
	return u.AddColumn([]string{"extra"}, p.Date, "later", false, nil).
		AddColumn([]string{"st", "c"}, p.TimestampTz, "", false, nil).
		RenameColumn([]string{"name"}, "title").RenameColumn([]string{"st", "b"}, "b2").
		DeleteColumn([]string{"gone"}).
		UpdateColumn([]string{"n"}, to(p.Int64)).UpdateColumn([]string{"f"}, to(p.Float64)).
		UpdateColumn([]string{"d"}, to(lib.DecimalTypeOf(18, 2))).
		MoveFirst([]string{"extra"})
}

// repartition adds a field to the partitions of the evolved table.
func (o *ours) repartition(ctx context.Context) error {
	tbl, err := o.load(ctx, evolved)
	if err != nil {
		return err
	}
	tx := tbl.NewTransaction()
	if err := tx.UpdateSpec(true).AddField("id", lib.BucketTransform{NumBuckets: 4}, "id_b").Commit(); err != nil {
		return fmt.Errorf("change partitions of %s: %w", evolved, err)
	}
	if _, err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("change partitions of %s: %w", evolved, err)
	}
	return nil
}
