package floor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	sqlcat "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	_ "modernc.org/sqlite" // the driver of the catalog
)

// Row of the opponent's tables.
type Row struct {
	ID     int64
	City   string
	Amount float64
}

// Tables is the opponent over Iceberg tables: iceberg-go by itself, with a catalog
// in a SQLite file. It remembers a table's newest state, as the only writer of it
// may.
type Tables struct {
	db        *sql.DB
	opened    catalog.Catalog
	namespace string
	props     iceberg.Properties // of tables that it makes
}

// OpenTables opens the catalog at dir/catalog.db, and makes it where there is none,
// with its warehouse at dir/wh. With forced, its files are forced as the catalog is;
// a catalog that another has made is only read. props are those of new tables.
func OpenTables(ctx context.Context, dir, namespace string, forced bool, props map[string]string) (*Tables, error) {
	db, err := sql.Open("sqlite", "file:"+dir+"/catalog.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=fullfsync(1)")
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	scheme := "file"
	if forced {
		scheme = forcedScheme
	}
	opened, err := sqlcat.NewCatalog("default", db, sqlcat.SQLite, iceberg.Properties{"warehouse": scheme + "://" + dir + "/wh"})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open catalog: %w", err), db.Close())
	}
	err = opened.CreateNamespace(ctx, catalog.ToIdentifier(namespace), nil)
	if err != nil && !errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
		return nil, errors.Join(fmt.Errorf("make namespace: %w", err), db.Close())
	}
	return &Tables{db: db, opened: opened, namespace: namespace, props: maps.Clone(iceberg.Properties(props))}, nil
}

// Close ends the catalog's connections.
func (t *Tables) Close() error { return t.db.Close() }

// Make makes a table of Rows.
func (t *Tables) Make(ctx context.Context, name string) (*table.Table, error) {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "city", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 3, Name: "amount", Type: iceberg.PrimitiveTypes.Float64})
	return t.opened.CreateTable(ctx, catalog.ToIdentifier(t.namespace, name), schema, catalog.WithProperties(t.props))
}

// Load finds a table.
func (t *Tables) Load(ctx context.Context, name string) (*table.Table, error) {
	return t.opened.LoadTable(ctx, catalog.ToIdentifier(t.namespace, name))
}

// Append commits n rows and returns the table's new state.
func Append(ctx context.Context, tbl *table.Table, n int, row func(i int) Row) (*table.Table, error) {
	schema, err := table.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
	if err != nil {
		return nil, err
	}
	built := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer built.Release()
	id, isLong := built.Field(0).(*array.Int64Builder)
	city, isText := built.Field(1).(*array.StringBuilder)
	amount, isDouble := built.Field(2).(*array.Float64Builder)
	if !isLong || !isText || !isDouble {
		return nil, fmt.Errorf("append to table: columns of other types: %s", schema)
	}
	for i := range n {
		r := row(i)
		id.Append(r.ID)
		city.Append(r.City)
		amount.Append(r.Amount)
	}
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{built.NewRecordBatch()})
	if err != nil {
		return nil, err
	}
	return tbl.Append(ctx, reader, nil)
}

// Scan reads some columns of every row, in the order of a Row, and gives visit each
// batch of them.
func Scan(ctx context.Context, tbl *table.Table, visit func(arrow.RecordBatch) error, columns ...string) error {
	_, batches, err := tbl.Scan(table.WithSelectedFields(columns...)).ToArrowRecords(ctx)
	if err != nil {
		return err
	}
	for batch, err := range batches {
		if err != nil {
			return err
		}
		err = visit(batch)
		batch.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
