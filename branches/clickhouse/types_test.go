package clickhouse_test

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
)

// typeCase is a type with values that go in; what comes out must be the same.
type typeCase struct {
	typ string
	gen *rapid.Generator[any]
}

func anyOf[T any](g *rapid.Generator[T]) *rapid.Generator[any] {
	return rapid.Map(g, func(v T) any { return v })
}

func nullOr(g *rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.OneOf(rapid.Just[any](nil), g, g)
}

func integers(bits uint, negative bool) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		b := rapid.SliceOfN(rapid.Byte(), int(bits/8), int(bits/8)).Draw(t, "bytes")
		n := new(big.Int).SetBytes(b)
		if negative {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), bits-1))
		}
		return n
	})
}

func decimals(precision, scale int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		digits := rapid.StringOfN(rapid.RuneFrom([]rune("0123456789")), 1, precision, -1).Draw(t, "digits")
		n, _ := new(big.Int).SetString(digits, 10)
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		d := decimal.NewFromBigInt(n, int32(-scale))
		if rapid.Bool().Draw(t, "as text") {
			return d.String()
		}
		return d
	})
}

func times(first, last time.Time, unit time.Duration) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		s := rapid.Int64Range(first.Unix(), last.Unix()-1).Draw(t, "seconds")
		n := rapid.Int64Range(0, int64(time.Second)-1).Draw(t, "nanoseconds")
		at := time.Unix(s, n).UTC().Truncate(unit)
		if at.Before(first) {
			at = first
		}
		return at
	})
}

func days(first, last time.Time) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		n := rapid.IntRange(0, int(last.Sub(first)/(24*time.Hour))).Draw(t, "days")
		return first.AddDate(0, 0, n)
	})
}

func day(y, m, d int) time.Time { return time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC) }

func durations(unit time.Duration) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		most := int64(999 * time.Hour)
		return time.Duration(rapid.Int64Range(-most, most).Draw(t, "duration")).Truncate(unit)
	})
}

var (
	texts = anyOf(rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })))
	words = rapid.StringMatching(`[a-z]{1,6}`)
	uuids = rapid.Custom(func(t *rapid.T) any { return uuid.UUID([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))) })
)

// wide is a bound of both sides of what a DateTime64 holds. ClickHouse's own
// text for nanoseconds ends in 2262.
var wide = [2]time.Time{day(1900, 1, 1), day(2262, 4, 11)}

var typeCases = []typeCase{
	{"Int8", anyOf(rapid.Int8())},
	{"Int16", anyOf(rapid.Int16())},
	{"Int32", anyOf(rapid.Int32())},
	{"Int64", anyOf(rapid.Int64())},
	{"UInt8", anyOf(rapid.Uint8())},
	{"UInt16", anyOf(rapid.Uint16())},
	{"UInt32", anyOf(rapid.Uint32())},
	{"UInt64", anyOf(rapid.Uint64())},
	{"Int128", integers(128, true)},
	{"Int256", integers(256, true)},
	{"UInt128", integers(128, false)},
	{"UInt256", integers(256, false)},
	{"Float32", anyOf(rapid.Float32())},
	{"Float64", rapid.OneOf(anyOf(rapid.Float64()), rapid.SampledFrom([]any{math.Inf(1), math.Inf(-1), math.NaN()}))},
	{"Bool", anyOf(rapid.Bool())},
	{"String", texts},
	{"FixedString(5)", rapid.Map(rapid.SliceOfN(rapid.Byte(), 5, 5), func(b []byte) any { return string(b) })},
	{"UUID", uuids},
	{"Date", days(day(1970, 1, 1), day(2149, 6, 6))},
	{"Date32", days(day(1900, 1, 1), day(2299, 12, 31))},
	{"DateTime", times(day(1970, 1, 1), time.Unix(1<<32-1, 0), time.Second)},
	{"DateTime('Asia/Tokyo')", times(day(1970, 1, 1), time.Unix(1<<32-1, 0), time.Second)},
	{"DateTime64(0)", times(wide[0], wide[1], time.Second)},
	{"DateTime64(3, 'UTC')", times(wide[0], wide[1], time.Millisecond)},
	{"DateTime64(6)", times(wide[0], wide[1], time.Microsecond)},
	{"DateTime64(9, 'Europe/Berlin')", times(wide[0], wide[1], time.Nanosecond)},
	{"Time", durations(time.Second)},
	{"Time64(9)", durations(time.Nanosecond)},
	{"Decimal(9, 2)", decimals(9, 2)},
	{"Decimal(18, 4)", decimals(18, 4)},
	{"Decimal(38, 10)", decimals(38, 10)},
	{"Decimal(76, 20)", decimals(76, 20)},
	{"Enum8('a' = 1, 'b, c = 3' = -2, '' = 3)", rapid.SampledFrom([]any{"a", "b, c = 3", ""})},
	{"Enum16('x' = 1000, 'y' = -1000)", rapid.SampledFrom([]any{"x", "y"})},
	{"IPv4", rapid.Custom(func(t *rapid.T) any {
		return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ip")))
	})},
	{"IPv6", rapid.Custom(func(t *rapid.T) any {
		return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "ip")))
	})},
	{"Array(Int32)", anyOf(rapid.SliceOf(rapid.Int32()))},
	{"Array(Array(String))", anyOf(rapid.SliceOfN(rapid.SliceOfN(rapid.String(), 0, 4), 0, 4))},
	{"Array(Nullable(String))", anyOf(rapid.SliceOfN(nullOr(texts), 0, 5))},
	{"Array(LowCardinality(String))", anyOf(rapid.SliceOfN(words, 0, 5))},
	{"Array(DateTime64(9))", anyOf(rapid.SliceOfN(times(wide[0], wide[1], time.Nanosecond), 0, 3))},
	{"Map(String, Int64)", anyOf(rapid.MapOfN(words, rapid.Int64(), 0, 4))},
	{"Map(String, Array(Nullable(Int32)))", anyOf(rapid.MapOfN(words, rapid.SliceOfN(nullOr(anyOf(rapid.Int32())), 0, 3), 0, 3))},
	{"Map(LowCardinality(String), Map(String, UUID))", anyOf(rapid.MapOfN(words, rapid.MapOfN(words, uuids, 0, 2), 0, 3))},
	{"Tuple(Int32, String)", rapid.Custom(func(t *rapid.T) any {
		return []any{rapid.Int32().Draw(t, "int"), rapid.String().Draw(t, "text")}
	})},
	{"Tuple(a Int32, b Nullable(String), d Array(Decimal(9, 2)))", rapid.Custom(func(t *rapid.T) any {
		return map[string]any{
			"a": rapid.Int32().Draw(t, "a"), "b": nullOr(texts).Draw(t, "b"),
			"d": rapid.SliceOfN(decimals(9, 2), 0, 3).Draw(t, "d"),
		}
	})},
	{"Nullable(Int64)", nullOr(anyOf(rapid.Int64()))},
	{"Nullable(String)", nullOr(texts)},
	{"Nullable(Bool)", nullOr(anyOf(rapid.Bool()))},
	{"Nullable(Decimal(18, 4))", nullOr(decimals(18, 4))},
	{"Nullable(DateTime64(9))", nullOr(times(wide[0], wide[1], time.Nanosecond))},
	{"Nullable(Date32)", nullOr(days(day(1900, 1, 1), day(2299, 12, 31)))},
	{"Nullable(UUID)", nullOr(uuids)},
	{"Nullable(Int256)", nullOr(integers(256, true))},
	{"Nullable(Enum8('a' = 1))", nullOr(rapid.Just[any]("a"))},
	{"Nullable(IPv6)", nullOr(rapid.Just[any](netip.MustParseAddr("2001:db8::1")))},
	{"Nullable(FixedString(3))", nullOr(rapid.Just[any]("abc"))},
	{"Nullable(Time64(3))", nullOr(durations(time.Millisecond))},
	{"Nullable(Time)", nullOr(durations(time.Second))},
	{"Nullable(Float64)", nullOr(anyOf(rapid.Float64()))},
	{"LowCardinality(String)", anyOf(words)},
	{"LowCardinality(Nullable(String))", nullOr(texts)},
	{"LowCardinality(FixedString(3))", rapid.SampledFrom([]any{"abc", "xyz"})},
	{"JSON", rapid.Custom(func(t *rapid.T) any {
		doc, err := json.Marshal(map[string]any{"n": rapid.Int32().Draw(t, "n"), "s": rapid.StringMatching(`[ -~é]{0,9}`).Draw(t, "s"), "deep": map[string]any{"b": true}})
		if err != nil {
			t.Fatal(err)
		}
		return string(doc)
	})},
	{"Variant(Int64, String)", nullOr(rapid.OneOf(anyOf(rapid.Int64()), anyOf(rapid.String())))},
	{"Dynamic", nullOr(rapid.OneOf(anyOf(rapid.Int64()), anyOf(words)))},
}

// flat writes a value so that equal values have equal texts, whatever Go types
// they come in.
func flat(v any) string {
	switch x := v.(type) {
	case nil:
		return "NULL"
	case time.Time:
		return x.UTC().Format(time.RFC3339Nano)
	case *big.Int:
		return x.String()
	case big.Int:
		return x.String()
	case decimal.Decimal:
		return x.String()
	case uuid.UUID:
		return fmt.Sprintf("%q", x.String())
	case netip.Addr:
		return x.Unmap().String()
	case net.IP:
		addr, _ := netip.AddrFromSlice(x)
		return addr.Unmap().String()
	case client.Variant:
		return flat(x.Any())
	case time.Duration:
		return x.String()
	case json.Number:
		return x.String()
	case *client.JSON:
		return flat(x.NestedMap())
	}
	rv := reflect.ValueOf(v)
	switch rv.Kind() { //nolint:exhaustive // the others print as they are
	case reflect.Pointer:
		if rv.IsNil() {
			return "NULL"
		}
		return flat(rv.Elem().Interface())
	case reflect.String:
		return fmt.Sprintf("%q", rv.String())
	case reflect.Slice, reflect.Array:
		parts := make([]string, rv.Len())
		for i := range parts {
			parts[i] = flat(rv.Index(i).Interface())
		}
		return "[" + strings.Join(parts, " ") + "]"
	case reflect.Map:
		var parts []string
		for it := rv.MapRange(); it.Next(); {
			parts = append(parts, flat(it.Key().Interface())+":"+flat(it.Value().Interface()))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, " ") + "}"
	case reflect.Float32:
		return fmt.Sprint(float32(rv.Float()))
	}
	return fmt.Sprint(v)
}

// in is the text of a value that goes in: some types come back as texts.
func (c typeCase) in(v any) string {
	switch {
	case v == nil:
	case strings.Contains(c.typ, "Decimal"):
		return numbers(flat(v))
	case c.typ == "JSON":
		var doc map[string]any
		decoder := json.NewDecoder(strings.NewReader(v.(string)))
		decoder.UseNumber()
		if err := decoder.Decode(&doc); err != nil {
			panic(err)
		}
		return flat(doc)
	}
	return flat(v)
}

func (c typeCase) out(v any) string {
	if strings.Contains(c.typ, "Decimal") {
		return numbers(flat(v))
	}
	return flat(v)
}

// numbers takes the quotes off texts that are numbers, and the zeros behind.
func numbers(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r == '"' || r == ' ' || r == '[' || r == ']' || r == '{' || r == '}' || r == ':'
	})
	for _, w := range words {
		if d, err := decimal.NewFromString(w); err == nil {
			text = strings.ReplaceAll(text, `"`+w+`"`, d.String())
		}
	}
	return text
}

// TestTypes: any row, through payload and engine, is the same row.
func TestTypes(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	var columns []string
	for i, c := range typeCases {
		columns = append(columns, fmt.Sprintf("c%d %s", i, c.typ))
	}
	seeds := 8
	if long() {
		seeds = 100
	}
	for _, protocol := range chtest.Protocols {
		t.Run(string(protocol), func(t *testing.T) {
			table := "types_" + strings.ReplaceAll(string(protocol), "+", "_")
			p.cluster.Exec(t, "CREATE TABLE "+p.database+"."+table+" (id UInt32, "+strings.Join(columns, ", ")+
				", dat_txn UUID, dat_tx_time Int64) ENGINE = MergeTree ORDER BY id SETTINGS allow_nullable_key=1")
			store := p.open(t, protocol, clickhouse.Options{})
			for seed := range seeds {
				checkTypes(t, store, table, seed)
			}
		})
	}
}

const rowsPerSeed = 20

func checkTypes(t *testing.T, store *clickhouse.Store, table string, seed int) {
	t.Helper()
	in := make([][]any, rowsPerSeed)
	for i := range in {
		in[i] = []any{uint32(seed*rowsPerSeed + i)}
		for n, c := range typeCases {
			in[i] = append(in[i], c.gen.Example((seed*rowsPerSeed+i)*1000+n))
		}
	}
	session := connect(t, store)
	u := begin(t, session)
	copied, err := session.(branches.Copier).CopyFrom(t.Context(), table, nil, func() func() ([]any, error) {
		next := 0
		return func() ([]any, error) {
			if next++; next > len(in) {
				return nil, nil
			}
			return in[next-1], nil
		}
	}())
	if err != nil || copied != rowsPerSeed {
		t.Fatalf("seed %d: copied %d, %v", seed, copied, err)
	}
	if seed%2 == 0 {
		u.commit(t)
	} else {
		u.finish(t, store)
	}
	out := query(t, session, fmt.Sprintf("SELECT * EXCEPT (dat_txn, dat_tx_time) FROM %s WHERE id>=%d AND id<%d ORDER BY id",
		table, seed*rowsPerSeed, (seed+1)*rowsPerSeed))
	if len(out) != len(in) {
		t.Fatalf("seed %d: %d rows came out, %d went in", seed, len(out), len(in))
	}
	for i := range in {
		for n, c := range typeCases {
			if want, got := c.in(in[i][n+1]), c.out(out[i][n+1]); want != got {
				t.Errorf("seed %d, row %d: %s: in %s, out %s (%T)", seed, i, c.typ, want, got, out[i][n+1])
			}
		}
	}
}

// query reads all rows.
func query(t *testing.T, session branches.Session, text string) [][]driver.Value {
	t.Helper()
	rows, err := session.Query(t.Context(), text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, rows)
}

func drain(t *testing.T, rows driver.Rows) [][]driver.Value {
	t.Helper()
	var all [][]driver.Value
	for {
		row := make([]driver.Value, len(rows.Columns()))
		err := rows.Next(row)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}
