package clickhouse

import (
	"errors"
	"strings"
	"testing"
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
