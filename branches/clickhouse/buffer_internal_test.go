package clickhouse

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/google/uuid"
)

// A unit keeps few bytes as they are and packs the rest; what its rows take when
// they are packed is what max_payload bounds.
func TestBufferPacksWhatIsMuch(t *testing.T) {
	const n = 40_000 // each with a text of 1,000 equal bytes: it packs well
	for _, test := range []struct {
		name    string
		rows    int
		limit   int64
		packs   bool
		refused error
	}{
		{"few", 10, 1 << 20, false, nil},
		{"few, more than the bound, less when packed", 2000, 1 << 20, true, nil},
		{"many", n, 0, true, nil},
		{"more than the bound", n, 100, true, ErrTooLarge},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &buffer{store: &Store{opts: Options{MaxPayload: test.limit}}}
			found := &table{name: tableName{"d", "t"}, columns: []tableColumn{{name: "s", typ: "String"}}}
			l, err := b.list(found, []string{"s"})
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Repeat("x", 1000)
			for range test.rows {
				if err = l.add(b, []any{text}); err != nil {
					break
				}
			}
			if err == nil {
				err = b.seal(l)
			}
			if !errors.Is(err, test.refused) {
				t.Fatalf("%v, want %v", err, test.refused)
			}
			if packed := b.packed > 0; packed != test.packs {
				t.Errorf("%d bytes packed, %d loose", b.packed, b.loose)
			}
			if b.loose > keepLoose {
				t.Errorf("%d bytes loose", b.loose)
			}
			if err := b.back(mark{l: 0}); err != nil || b.packed != 0 || b.loose != 0 {
				t.Errorf("dropped, it holds %d and %d bytes, %v", b.packed, b.loose, err)
			}
		})
	}
}

// TestColumnsAreEmptyAgain: a column that was given back encodes what is appended
// after, as a new one does, and nothing of its block before.
func TestColumnsAreEmptyAgain(t *testing.T) {
	values := map[string][2]any{
		"Int8": {int8(1), int8(2)}, "Int16": {int16(1), int16(2)}, "Int32": {int32(1), int32(2)}, "Int64": {int64(1), int64(2)},
		"UInt8": {uint8(1), uint8(2)}, "UInt16": {uint16(1), uint16(2)}, "UInt32": {uint32(1), uint32(2)}, "UInt64": {uint64(1), uint64(2)},
		"Float32": {float32(1), float32(2)}, "Float64": {1.0, 2.0}, "Bool": {true, false}, "String": {"before", "after"},
		"UUID": {uuid.New(), uuid.New()},
	}
	server := &column.ServerContext{Timezone: time.UTC}
	for typ := range columns {
		pair, ok := values[typ]
		if !ok {
			t.Errorf("no values for %s", typ)
			continue
		}
		encode := func(c column.Interface, v any) []byte {
			if err := c.AppendRow(v); err != nil {
				t.Fatal(err)
			}
			part, err := encodeColumn(c)
			if err != nil {
				t.Fatal(err)
			}
			return part
		}
		fresh, err := column.Type(typ).Column("c", server)
		if err != nil {
			t.Fatal(err)
		}
		want := encode(fresh, pair[1])
		used, err := column.Type(typ).Column("c", server)
		if err != nil {
			t.Fatal(err)
		}
		encode(used, pair[0])
		giveBack(used)
		if got := used.Rows(); got != 0 {
			t.Errorf("%s: %d rows are left in a column that was given back", typ, got)
		}
		if got := encode(used, pair[1]); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", typ, got, want)
		}
	}
}
