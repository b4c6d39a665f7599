package icevalue

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

var (
	errBool    = errors.New("it is not a boolean")
	errUTF8    = errors.New("it is not UTF-8")
	errUUID    = errors.New("it is not a UUID")
	errHex     = errors.New("it is not pairs of hexadecimal digits")
	errNoValue = errors.New("this Go type cannot be stored in it")
)

// The functions of this file take what Plain gives, but not nil.

func toBool(v any) (bool, error) {
	switch x := v.(type) {
	case bool:
		return x, nil
	case string:
		switch strings.ToLower(x) {
		case "true", "t":
			return true, nil
		case "false", "f":
			return false, nil
		}
		return false, errBool
	}
	return false, errNoValue
}

func toInt64(v any) (int64, error) {
	switch x := v.(type) {
	case int64:
		return x, nil
	case uint64:
		return 0, errRange
	}
	n, err := toNumber(v)
	if err != nil {
		return 0, err
	}
	return n.Int64()
}

func toInt32(v any) (int32, error) {
	n, err := toInt64(v)
	if err != nil {
		return 0, err
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		return 0, errRange
	}
	return int32(n), nil
}

func toNumber(v any) (Number, error) {
	switch v.(type) {
	case int64, uint64, float64, string, []byte, Number:
		return NumberOf(v)
	}
	return Number{}, errNoValue
}

func toFloat64(v any) (float64, error) {
	switch x := v.(type) {
	case float64:
		return x, nil
	case int64:
		return float64(x), nil
	case uint64:
		return float64(x), nil
	case string:
		return textFloat(x)
	case []byte:
		return textFloat(string(x))
	case Number:
		f := x.Float64()
		if math.IsInf(f, 0) {
			return 0, errRange
		}
		return f, nil
	}
	return 0, errNoValue
}

func textFloat(s string) (float64, error) {
	// ParseFloat also reads hexadecimal floats and digits with underscores.
	if strings.ContainsAny(s, "_xXpP") {
		return 0, errNumber
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errRange
	case err != nil:
		return 0, errNumber
	}
	return f, nil
}

func toFloat32(v any) (float32, error) {
	f, err := toFloat64(v)
	if err != nil {
		return 0, err
	}
	small := float32(f)
	if math.IsInf(float64(small), 0) && !math.IsInf(f, 0) {
		return 0, errRange
	}
	return small, nil
}

// toDecimal makes the conversion of one decimal type.
func toDecimal(precision, scale int) func(any) (decimal128.Num, error) {
	limit := pow10(precision - scale)
	return func(v any) (decimal128.Num, error) {
		switch x := v.(type) {
		case string:
			if n, ok := smallDecimal(x, precision, scale); ok {
				return decimal128.FromI64(n), nil
			}
		case int64:
			if limit.CmpAbs(big.NewInt(x)) <= 0 {
				return decimal128.Num{}, errRange
			}
		}
		n, err := toNumber(v)
		if err != nil {
			return decimal128.Num{}, err
		}
		return n.Decimal(precision, scale)
	}
}

func toDate(v any) (arrow.Date32, error) {
	t, ok := v.(time.Time)
	if !ok {
		s, err := toText(v)
		if err != nil {
			return 0, err
		}
		if t, err = ParseDate(s); err != nil {
			return 0, err
		}
	}
	days, err := daysOf(t)
	return arrow.Date32(days), err
}

func toTime(v any) (arrow.Time64, error) {
	switch x := v.(type) {
	case time.Time:
		x = wallClock(x)
		midnight := time.Date(x.Year(), x.Month(), x.Day(), 0, 0, 0, 0, time.UTC)
		return arrow.Time64(x.Sub(midnight).Microseconds()), nil
	case time.Duration:
		if x < 0 || x >= 24*time.Hour {
			return 0, errRange
		}
		return arrow.Time64(x.Microseconds()), nil
	}
	s, err := toText(v)
	if err != nil {
		return 0, err
	}
	micros, err := ParseTime(s)
	return arrow.Time64(micros), err
}

// toTimestamp makes the conversion of one timestamp type.
func toTimestamp(zoned, nanos bool) func(any) (arrow.Timestamp, error) {
	return func(v any) (arrow.Timestamp, error) {
		t, ok := v.(time.Time)
		if !ok {
			s, err := toText(v)
			if err != nil {
				return 0, err
			}
			if t, err = ParseTimestamp(s, zoned); err != nil {
				return 0, err
			}
			if !nanos && t.Nanosecond()%1000 != 0 {
				return 0, errFinerMicro
			}
		} else if !zoned {
			t = wallClock(t)
		}
		if nanos {
			n, err := nanosOf(t)
			return arrow.Timestamp(n), err
		}
		n, err := microsOf(t)
		return arrow.Timestamp(n), err
	}
}

func toText(v any) (string, error) {
	switch x := v.(type) {
	case string:
		return x, nil
	case []byte:
		return string(x), nil
	case json.RawMessage:
		return string(x), nil
	}
	return "", errNoValue
}

func toString(v any) (string, error) {
	s, err := toText(v)
	if u, ok := v.(uuid.UUID); ok {
		return u.String(), nil
	}
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(s) {
		return "", errUTF8
	}
	return s, nil
}

func toUUID(v any) (uuid.UUID, error) {
	switch x := v.(type) {
	case uuid.UUID:
		return x, nil
	case []byte:
		if len(x) == 16 {
			return uuid.UUID(x), nil
		}
	}
	s, err := toText(v)
	if err != nil {
		return uuid.UUID{}, err
	}
	u, err := uuid.Parse(s)
	if err != nil {
		return uuid.UUID{}, errUUID
	}
	return u, nil
}

func toBytes(v any) ([]byte, error) {
	switch x := v.(type) {
	case []byte:
		return x, nil
	case string:
		return []byte(x), nil
	case uuid.UUID:
		return x[:], nil
	}
	return nil, errNoValue
}

// toHexBytes is toBytes inside a nested value, where text is hexadecimal: JSON has
// no other bytes.
func toHexBytes(v any) ([]byte, error) {
	s, ok := v.(string)
	if !ok {
		return toBytes(v)
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return nil, errHex
	}
	return b, nil
}

// toFixed bounds another conversion to n bytes.
func toFixed(n int, bytes func(any) ([]byte, error)) func(any) ([]byte, error) {
	return func(v any) ([]byte, error) {
		b, err := bytes(v)
		if err == nil && len(b) != n {
			err = fmt.Errorf("it has %d bytes", len(b))
		}
		return b, err
	}
}

// Convert brings v, as Plain gives it and not nil, to the Go value that a column of
// a primitive type stores: bool, int32, int64, float32, float64, decimal128.Num,
// arrow.Date32, arrow.Time64, arrow.Timestamp, string, uuid.UUID or []byte.
func Convert(t iceberg.Type, v any) (any, error) {
	switch t := t.(type) {
	case iceberg.BooleanType:
		return toBool(v)
	case iceberg.Int32Type:
		return toInt32(v)
	case iceberg.Int64Type:
		return toInt64(v)
	case iceberg.Float32Type:
		return toFloat32(v)
	case iceberg.Float64Type:
		return toFloat64(v)
	case iceberg.DecimalType:
		return toDecimal(t.Precision(), t.Scale())(v)
	case iceberg.DateType:
		return toDate(v)
	case iceberg.TimeType:
		return toTime(v)
	case iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		zoned, nanos, _ := timestampKind(t)
		return toTimestamp(zoned, nanos)(v)
	case iceberg.StringType:
		return toString(v)
	case iceberg.UUIDType:
		return toUUID(v)
	case iceberg.BinaryType, iceberg.FixedType: // compared bytes may have any length
		return toBytes(v)
	}
	return nil, errNoValue
}

// Ticks is Convert of a date, a time or a timestamp, as the number that is stored.
func Ticks(t iceberg.Type, v any) (int64, error) {
	x, err := Convert(t, v)
	switch x := x.(type) {
	case arrow.Date32:
		return int64(x), err
	case arrow.Time64:
		return int64(x), err
	case arrow.Timestamp:
		return int64(x), err
	}
	return 0, errNoValue
}
