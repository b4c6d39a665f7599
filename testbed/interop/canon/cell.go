package canon

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"

	lib "github.com/apache/iceberg-go"
)

// Cell is a value in canonical form: nil, a bool, a string, []any or Row.
type Cell = any

// Row is a row, or a struct, by the names of its columns.
type Row = map[string]Cell

// Float and Double spell a number by its bits.
func Float(f float32) string { return fmt.Sprintf("%08x", math.Float32bits(f)) }

// Double spells a double.
func Double(f float64) string { return fmt.Sprintf("%016x", math.Float64bits(f)) }

// Of is the canonical form of what a query has returned for a column of type t.
func Of(t lib.Type, v any) (Cell, error) {
	if v == nil {
		return nil, nil
	}
	if _, primitive := t.(lib.PrimitiveType); !primitive {
		text, err := as[string](t, v)
		if err != nil {
			return nil, err
		}
		return ofJSON(t, text)
	}
	switch t.(type) {
	case lib.BooleanType:
		return as[bool](t, v)
	case lib.Int32Type, lib.Int64Type:
		n, err := as[int64](t, v)
		return strconv.FormatInt(n, 10), err
	case lib.Float32Type:
		f, err := as[float64](t, v)
		return Float(float32(f)), err
	case lib.Float64Type:
		f, err := as[float64](t, v)
		return Double(f), err
	case lib.DateType, lib.TimestampType, lib.TimestampTzType, lib.TimestampNsType, lib.TimestampTzNsType:
		at, err := as[time.Time](t, v)
		return ofTime(t, at), err
	case lib.TimeType:
		text, err := as[string](t, v)
		if err != nil {
			return nil, err
		}
		return ofTimeOfDay(text)
	case lib.BinaryType, lib.FixedType:
		b, err := as[[]byte](t, v)
		return hex.EncodeToString(b), err
	}
	return as[string](t, v) // string, uuid, decimal
}

// Arg is what an INSERT takes for a canonical cell of a column of type t.
func Arg(t lib.Type, c Cell) (any, error) {
	if c == nil {
		return nil, nil
	}
	if _, primitive := t.(lib.PrimitiveType); !primitive {
		return argJSON(t, c)
	}
	if b, ok := c.(bool); ok {
		return b, nil
	}
	text, err := as[string](t, c)
	if err != nil {
		return nil, err
	}
	switch t.(type) {
	case lib.Int32Type, lib.Int64Type:
		return strconv.ParseInt(text, 10, 64)
	case lib.Float32Type:
		bits, err := strconv.ParseUint(text, 16, 32)
		return float64(math.Float32frombits(uint32(bits))), err
	case lib.Float64Type:
		bits, err := strconv.ParseUint(text, 16, 64)
		return math.Float64frombits(bits), err
	case lib.DateType, lib.TimestampType, lib.TimestampTzType, lib.TimestampNsType, lib.TimestampTzNsType:
		n, err := strconv.ParseInt(text, 10, 64)
		return toTime(t, n), err
	case lib.TimeType:
		n, err := strconv.ParseInt(text, 10, 64)
		return time.UnixMicro(n).UTC().Format(timeOfDay), err
	case lib.BinaryType, lib.FixedType:
		return hex.DecodeString(text)
	}
	return text, nil
}

const (
	timeOfDay = "15:04:05.000000"
	daySpan   = 24 * 60 * 60
)

func ofTime(t lib.Type, at time.Time) string {
	n := at.UnixMicro()
	switch t.(type) {
	case lib.DateType:
		n = at.Unix() / daySpan // a date is a midnight, so nothing is cut
	case lib.TimestampNsType, lib.TimestampTzNsType:
		n = at.UnixNano()
	}
	return strconv.FormatInt(n, 10)
}

func toTime(t lib.Type, n int64) time.Time {
	switch t.(type) {
	case lib.DateType:
		return time.Unix(n*daySpan, 0).UTC()
	case lib.TimestampNsType, lib.TimestampTzNsType:
		return time.Unix(0, n).UTC()
	}
	return time.UnixMicro(n).UTC()
}

func ofTimeOfDay(text string) (Cell, error) {
	at, err := time.Parse("15:04:05.999999", text)
	if err != nil {
		return nil, fmt.Errorf("time of day: %w", err)
	}
	midnight := at.Truncate(24 * time.Hour)
	return strconv.FormatInt(at.Sub(midnight).Microseconds(), 10), nil
}

func as[T any](t lib.Type, v any) (T, error) {
	got, ok := v.(T)
	if !ok {
		return got, fmt.Errorf("a value of type %s is a %T", t, v)
	}
	return got, nil
}
