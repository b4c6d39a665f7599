package icevalue

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/google/uuid"
)

// maxIndirections bounds pointers to pointers and Valuers that give Valuers.
const maxIndirections = 8

// Plain brings a value to one of: nil, bool, int64, uint64 (above the range of
// int64), float64, string, []byte, time.Time, time.Duration, uuid.UUID, Number,
// json.RawMessage, or, where it is none of these, gives it back as it is: maps,
// slices and structs for nested columns.
func Plain(v any) (any, error) {
	for range maxIndirections {
		next, done, err := plainOnce(v)
		if done || err != nil {
			return next, err
		}
		v = next
	}
	return nil, fmt.Errorf("a pointer or a driver.Valuer inside more than %d others", maxIndirections)
}

// plainOnce takes one step; done says that it was the last.
func plainOnce(v any) (next any, done bool, err error) {
	switch x := v.(type) {
	case nil, bool, int64, float64, string, time.Time, uuid.UUID, Number:
		return v, true, nil
	case []byte:
		if x == nil {
			return nil, true, nil
		}
		return v, true, nil
	case json.RawMessage:
		if x == nil {
			return nil, true, nil
		}
		return v, true, nil
	case [16]byte:
		return uuid.UUID(x), true, nil
	case json.Number:
		n, err := ParseNumber(string(x))
		return n, true, err
	case *big.Int:
		if x == nil {
			return nil, true, nil
		}
		return Number{Unscaled: x}, true, nil
	case *big.Rat:
		if x == nil {
			return nil, true, nil
		}
		n, err := numberOfRat(x)
		return n, true, err
	case decimal128.Num:
		return nil, true, fmt.Errorf("a decimal128.Num has no scale: pass its text")
	case driver.Valuer:
		if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.IsNil() {
			return nil, true, nil
		}
		next, err = x.Value()
		return next, false, err
	}
	return plainKind(v)
}

// plainKind looks through pointers and named types.
func plainKind(v any) (any, bool, error) {
	if d, ok := v.(time.Duration); ok {
		return d, true, nil
	}
	r := reflect.ValueOf(v)
	kind := r.Kind()
	empty := (kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Map) && r.IsNil()
	switch {
	case empty:
		return nil, true, nil
	case kind == reflect.Pointer:
		return r.Elem().Interface(), false, nil
	case kind == reflect.Bool:
		return r.Bool(), true, nil
	case kind == reflect.String:
		return r.String(), true, nil
	case r.CanInt():
		return r.Int(), true, nil
	case r.CanUint():
		if n := r.Uint(); n > math.MaxInt64 {
			return n, true, nil
		}
		return int64(r.Uint()), true, nil //nolint:gosec // G115: checked in the line above
	case r.CanFloat():
		return r.Float(), true, nil
	case kind == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8:
		return r.Bytes(), true, nil
	}
	return v, true, nil
}
