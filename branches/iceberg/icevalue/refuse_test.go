package icevalue_test

import (
	"database/sql"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

func TestValueThatDoesNotFitIsRefused(t *testing.T) {
	list, byInt, _, object := nestedTypes()
	for _, c := range []struct {
		typ  iceberg.Type
		v    any
		want string // the end of the error
	}{
		{primitive.Bool, int64(1), "this Go type cannot be stored in it"},
		{primitive.Int32, int64(math.MaxInt32 + 1), "value 2147483648: it is out of the type's range"},
		{primitive.Int32, 3.5, "value 3.5: it is not a whole number"},
		{primitive.Int32, true, "cannot be stored in it"},
		{primitive.Int64, "9223372036854775808", "out of the type's range"},
		{primitive.Int64, uint64(math.MaxUint64), "out of the type's range"},
		{primitive.Int64, "0x10", "it is not a number"},
		{primitive.Int64, "1e999999999999", "out of the type's range"},
		{primitive.Int64, math.NaN(), "it is not finite"},
		{primitive.Float32, 1e300, "out of the type's range"},
		{primitive.Float64, "1e400", "out of the type's range"},
		{primitive.Float64, "0x1p3", "it is not a number"},
		{iceberg.DecimalTypeOf(9, 2), "1.005", "it has more decimal places than the type"},
		{iceberg.DecimalTypeOf(9, 2), "10000000", "out of the type's range"},
		{iceberg.DecimalTypeOf(9, 2), int64(10000000), "out of the type's range"},
		{iceberg.DecimalTypeOf(9, 2), int64(math.MinInt64), "out of the type's range"},
		{iceberg.DecimalTypeOf(38, 0), new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil), "out of the type's range"},
		{iceberg.DecimalTypeOf(9, 2), big.NewRat(1, 3), "no finite decimal form"},
		{iceberg.DecimalTypeOf(9, 2), "--1", "it is not a number"},
		{iceberg.DecimalTypeOf(9, 2), "", "it is not a number"},
		{primitive.Date, "2026-02-30", "it is not a date"},
		{primitive.Date, int64(5), "cannot be stored in it"},
		{primitive.Time, "24:00:00", "it is not a time of day"},
		{primitive.Time, "01:02:03.1234567", "it is finer than a microsecond"},
		{primitive.Time, 24 * time.Hour, "out of the type's range"},
		{primitive.Timestamp, "2026-02-03 04:05:06+02", "it names a time zone, and the type has none"},
		{primitive.Timestamp, "2026-02-03 04:05:06.0000001", "it is finer than a microsecond"},
		{primitive.Timestamp, time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC), "out of the type's range"},
		{primitive.Timestamp, time.UnixMicro(math.MaxInt64).Add(time.Microsecond), "out of the type's range"},
		{primitive.Timestamp, time.UnixMicro(math.MinInt64).Add(-1), "out of the type's range"},
		{primitive.TimestampTz, "2026-02-03 04:05:06", "it names no time zone"},
		{primitive.TimestampTzNs, time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC), "out of the type's range"},
		{primitive.String, []byte{0xff}, "it is not UTF-8"},
		{primitive.String, int64(5), "cannot be stored in it"},
		{primitive.UUID, "not", "it is not a UUID"},
		{iceberg.FixedTypeOf(3), []byte{1, 2}, "it has 2 bytes"},
		{primitive.Binary, time.Now(), "cannot be stored in it"},
		{list, "[1", "it is not one JSON value"},
		{list, "[] []", "it is not one JSON value"},
		{list, int64(1), "cannot be stored in it"},
		{list, `["x"]`, "column c.element of type timestamptz: value x: it is not a timestamp such as 2006-01-02 15:04:05.999999"},
		{byInt, `{"1": null, "01": null}`, "the key stands twice"},
		{byInt, `{"1": "x"}`, "it is not pairs of hexadecimal digits"},
		{object, `{"nosuch": 1}`, "the struct has no field nosuch"},
		{object, `[1]`, "cannot be stored in it"},
	} {
		rows := newRows(t, memory.DefaultAllocator, iceberg.NestedField{Name: "c", Type: c.typ})
		err := rows.Append([]any{c.v})
		var refused *icevalue.ValueError
		switch {
		case err == nil:
			t.Errorf("%v went into %s", c.v, c.typ)
		case !errors.As(err, &refused) || refused.Kind() != branches.Permanent:
			t.Errorf("%v into %s: %T, want a *ValueError", c.v, c.typ, err)
		case !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "rhizodat: write column c"):
			t.Errorf("%v into %s: %q, want %q", c.v, c.typ, err, c.want)
		case rows.Len() != 0:
			t.Errorf("%v into %s left a row behind", c.v, c.typ)
		}
		rows.Release()
	}
}

func TestNullInARequiredColumnIsRefused(t *testing.T) {
	inner := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 9, Name: "x", Type: primitive.Int64, Required: true}}}
	var pointer *int
	for _, c := range []struct {
		field iceberg.NestedField
		v     any
	}{
		{iceberg.NestedField{Name: "c", Type: primitive.Int64, Required: true}, nil},
		{iceberg.NestedField{Name: "c", Type: primitive.Int64, Required: true}, pointer},
		{iceberg.NestedField{Name: "c", Type: primitive.String, Required: true}, sql.NullString{}},
		{iceberg.NestedField{Name: "c", Type: primitive.Binary, Required: true}, []byte(nil)},
		{iceberg.NestedField{Name: "c", Type: inner, Required: true}, nil},
		{iceberg.NestedField{Name: "c", Type: inner, Required: true}, "null"},
		{iceberg.NestedField{Name: "c", Type: inner}, map[string]any{}},
		{iceberg.NestedField{Name: "c", Type: &iceberg.ListType{ElementID: 9, Element: primitive.Int64, ElementRequired: true}}, []any{nil}},
		{iceberg.NestedField{Name: "c", Type: &iceberg.MapType{KeyID: 9, KeyType: primitive.Int64, ValueID: 10, ValueType: primitive.Int64}}, [][]any{{nil, 1}}},
	} {
		rows := newRows(t, memory.DefaultAllocator, c.field)
		if err := rows.Append([]any{c.v}); !errors.Is(err, icevalue.ErrRequired) {
			t.Errorf("%v into %s: %v, want ErrRequired", c.v, c.field, err)
		}
		rows.Release()
	}
}

func TestErrorShowsABoundedValue(t *testing.T) {
	rows := newRows(t, memory.DefaultAllocator, iceberg.NestedField{Name: "c", Type: primitive.Int64})
	defer rows.Release()
	for _, v := range []any{strings.Repeat("ä", 1000), []byte(strings.Repeat("x", 1000))} {
		if err := rows.Append([]any{v}); err == nil || len(err.Error()) > 220 {
			t.Errorf("%d bytes: %v", len(err.Error()), err)
		}
	}
}
