package icesql_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

func ExampleParse() {
	_, err := icesql.Parse("SELECT city FROM erp.orders WHERE amount => 5")
	fmt.Println(err)

	s, err := icesql.Parse(`select City, COUNT(*) from erp.orders where "At" >= ? and not city in ('oslo') group by 1`)
	fmt.Println(s, err, icesql.NumInput(s))
	// Output:
	// rhizodat: parse statement: line 1, column 43: unexpected “>”; expected one of -, +, a value, a column, (
	// SELECT city, count(*) FROM erp.orders WHERE "At" >= $1 AND NOT city IN ('oslo') GROUP BY 1 <nil> 1
}

// A table from its CREATE TABLE to a query, without the files between.
func Example() {
	create, err := icesql.Parse("CREATE TABLE t (id long NOT NULL, city string, amount decimal(9,2))")
	if err != nil {
		log.Fatal(err)
	}
	schema := create.(*icesql.CreateTable).Schema()
	columns, err := table.SchemaToArrowSchema(schema, nil, true, false)
	if err != nil {
		log.Fatal(err)
	}
	rows, err := icevalue.NewRows(memory.DefaultAllocator, schema, columns)
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Release()

	insert, _ := icesql.Parse("INSERT INTO t VALUES ($1, 'oslo', '10.00'), (2, NULL, $2), (3, 'riga', 0.05)")
	plan, err := icesql.BindInsert(insert.(*icesql.Insert), schema)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := plan.AppendTo(rows, []driver.NamedValue{{Ordinal: 1, Value: int64(1)}, {Ordinal: 2, Value: 2.5}}); err != nil {
		log.Fatal(err)
	}

	query, _ := icesql.Parse("SELECT id, amount * 2 FROM t WHERE NOT (city = 'riga') OR city IS NULL ORDER BY id DESC")
	bound, err := icesql.BindSelect(query.(*icesql.Select), schema, nil)
	if err != nil {
		log.Fatal(err)
	}
	result, err := bound.Rows(context.Background(), scanOf(rows.Take()))
	if err != nil {
		log.Fatal(err)
	}
	defer result.Close()
	row := make([]driver.Value, 2)
	for !errors.Is(result.Next(row), io.EOF) {
		fmt.Println(row[0], row[1])
	}
	// Output:
	// 2 5.00
	// 1 20.00
}

func scanOf(batches []arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
	}
}
