package clickhouse_test

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	client "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
)

// TestRowsAreTheClients: values and column types are those of the client's own
// database/sql form.
func TestRowsAreTheClients(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	for _, protocol := range chtest.Protocols {
		options, err := client.ParseDSN(strings.Replace(p.cluster.DSN(protocol, p.database), "clickhouse+http", "http", 1))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := client.Connector(options).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ours := connect(t, p.open(t, protocol, clickhouse.Options{}))
		for n, c := range typeCases {
			value := c.gen.Example(7)
			if strings.HasPrefix(c.typ, "Dynamic") || strings.HasPrefix(c.typ, "Nullable(Time") {
				continue // the client's form answers them with its own error
			}
			if c.typ == "LowCardinality(Nullable(String))" {
				continue // the client's form hands out a *string, which database/sql cannot scan
			}
			table := fmt.Sprintf("one_%d_%d", n, len(protocol))
			p.cluster.Exec(t, "CREATE TABLE "+p.database+"."+table+" (v "+c.typ+", dat_txn UUID, dat_tx_time Int64) ENGINE = MergeTree ORDER BY ()")
			u := begin(t, ours)
			for _, v := range []any{value, c.gen.Example(8), c.gen.Example(9)} {
				if _, err := ours.Exec(t.Context(), "INSERT INTO "+table+" (v) VALUES (?)", args(v)); err != nil {
					t.Fatalf("%s: %v", c.typ, err)
				}
			}
			u.plain(t)
			text := "SELECT v FROM " + table
			want, err := theirs.(driver.QueryerContext).QueryContext(t.Context(), text, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ours.Query(t.Context(), text, nil)
			if err != nil {
				t.Fatal(err)
			}
			if g, w := got.(driver.RowsColumnTypeDatabaseTypeName).ColumnTypeDatabaseTypeName(0), want.(driver.RowsColumnTypeDatabaseTypeName).ColumnTypeDatabaseTypeName(0); g != w {
				t.Errorf("%s: type name %s, want %s", c.typ, g, w)
			}
			if g, w := got.(driver.RowsColumnTypeScanType).ColumnTypeScanType(0), want.(driver.RowsColumnTypeScanType).ColumnTypeScanType(0); g != w {
				t.Errorf("%s: scan type %s, want %s", c.typ, g, w)
			}
			gotP, gotS, gotOK := got.(driver.RowsColumnTypePrecisionScale).ColumnTypePrecisionScale(0)
			wantP, wantS, wantOK := want.(driver.RowsColumnTypePrecisionScale).ColumnTypePrecisionScale(0)
			if !strings.HasPrefix(c.typ, "Array") && (gotP != wantP || gotS != wantS || gotOK != wantOK) {
				t.Errorf("%s: precision %d, %d, %t, want %d, %d, %t", c.typ, gotP, gotS, gotOK, wantP, wantS, wantOK)
			}
			w, g := drain(t, want), drain(t, got)
			for i := range w {
				if a, b := fmt.Sprintf("%T", g[i][0]), fmt.Sprintf("%T", w[i][0]); a != b || flat(g[i][0]) != flat(w[i][0]) {
					t.Errorf("%s: %s %s, want %s %s\n%s", c.typ, a, flat(g[i][0]), b, flat(w[i][0]), cmp.Diff(flat(w[i][0]), flat(g[i][0])))
				}
			}
		}
		if err := theirs.Close(); err != nil {
			t.Error(err)
		}
	}
}
