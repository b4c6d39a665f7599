package clickhouse

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"time"

	client "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
	"github.com/shopspring/decimal"
)

// A checker turns a value of the application into one that the client's column
// takes as it is, or refuses it. One that is so already is handed back in its own
// interface value: a new one for each value was half of the cost of a row. The client converts by Go's rules: 300 becomes
// 44 in a UInt8, NULL becomes 0, a Decimal loses digits. What was decided must
// be what was meant, so everything that would change is refused here.
type checker func(v any) (any, error)

// The reasons of a refusal. They name no value: the caller does.
var (
	errNull  = errors.New("NULL, and the column is not Nullable")
	errRange = errors.New("out of range")
	errType  = errors.New("of a type that the column does not take")
)

// plain takes pointers and driver.Valuers off, but for the types that columns
// know themselves.
func plain(v any) (any, error) {
	for {
		switch x := v.(type) {
		case nil, string, []byte, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64,
			time.Time, time.Duration, decimal.Decimal, uuid.UUID, net.IP, netip.Addr,
			client.Variant:
			return v, nil
		case *big.Int:
			if x == nil {
				return nil, nil //nolint:nilnil // NULL is a value
			}
			return x, nil
		case big.Int:
			return &x, nil
		case *client.JSON:
			if x == nil {
				return nil, nil //nolint:nilnil // NULL is a value
			}
			return x, nil
		}
		rv := reflect.ValueOf(v)
		if rv.Kind() == reflect.Pointer && rv.IsNil() {
			return nil, nil //nolint:nilnil // NULL is a value
		}
		if valuer, ok := v.(driver.Valuer); ok {
			next, err := valuer.Value()
			if err != nil {
				return nil, fmt.Errorf("its Value method failed: %w", err)
			}
			v = next
			continue
		}
		if rv.Kind() != reflect.Pointer {
			return v, nil
		}
		v = rv.Elem().Interface()
	}
}

// whole reads an integer of any Go type. Signed numbers come in i, those above
// its range in u.
func whole(v any) (i int64, u uint64, ok bool) {
	switch x := v.(type) {
	case int64:
		return x, 0, true
	case int:
		return int64(x), 0, true
	case int32:
		return int64(x), 0, true
	case uint64:
		return unsigned(x)
	case uint32:
		return int64(x), 0, true
	}
	rv := reflect.ValueOf(v)
	switch rv.Kind() { //nolint:exhaustive // the others are no integers
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return rv.Int(), 0, true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return unsigned(rv.Uint())
	}
	return 0, 0, false
}

func unsigned(x uint64) (int64, uint64, bool) {
	if x > math.MaxInt64 {
		return 0, x, true
	}
	return int64(x), 0, true
}

// signed checks an integer column of bits.
func signed[T int8 | int16 | int32 | int64](low, high int64) checker {
	return func(v any) (any, error) {
		if _, ok := v.(T); ok {
			return v, nil
		}
		i, u, ok := whole(v)
		switch {
		case !ok:
			return nil, errType
		case u != 0, i < low, i > high:
			return nil, errRange
		}
		return T(i), nil
	}
}

func natural[T uint8 | uint16 | uint32 | uint64](high uint64) checker {
	return func(v any) (any, error) {
		if _, ok := v.(T); ok {
			return v, nil
		}
		if b, ok := v.(bool); ok && high == math.MaxUint8 {
			if b {
				return T(1), nil
			}
			return T(0), nil
		}
		i, u, ok := whole(v)
		switch {
		case !ok:
			return nil, errType
		case u == 0 && i < 0:
			return nil, errRange
		case u == 0:
			u = uint64(i) //nolint:gosec // not negative
		}
		if u > high {
			return nil, errRange
		}
		return T(u), nil
	}
}

// bigInteger checks Int128 to UInt256.
func bigInteger(bits int, negative bool) checker {
	low, high := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(bits))
	if negative {
		high.Rsh(high, 1)
		low.Neg(high)
	}
	high.Sub(high, big.NewInt(1))
	return func(v any) (any, error) {
		n, ok := v.(*big.Int)
		if !ok {
			i, u, ok := whole(v)
			if !ok {
				return nil, errType
			}
			if n = big.NewInt(i); u != 0 {
				n = new(big.Int).SetUint64(u)
			}
		}
		if n.Cmp(low) < 0 || n.Cmp(high) > 0 {
			return nil, errRange
		}
		return n, nil
	}
}

// float reads what a float column takes. A whole number must be one exactly.
func float(v any) (float64, error) {
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Float32 || rv.Kind() == reflect.Float64 {
		return rv.Float(), nil
	}
	i, u, ok := whole(v)
	switch {
	case !ok:
		return 0, errType
	case u != 0 || i > 1<<53 || i < -1<<53:
		return 0, errRange
	}
	return float64(i), nil
}

func checkFloat64(v any) (any, error) {
	if _, ok := v.(float64); ok {
		return v, nil
	}
	f, err := float(v)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func checkFloat32(v any) (any, error) {
	if _, ok := v.(float32); ok {
		return v, nil
	}
	f, err := float(v)
	if err != nil {
		return nil, err
	}
	if !math.IsInf(f, 0) && !math.IsNaN(f) && math.Abs(f) > math.MaxFloat32 {
		return nil, errRange
	}
	return float32(f), nil
}

func checkBool(v any) (any, error) {
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Bool {
		return rv.Bool(), nil
	}
	i, u, ok := whole(v)
	switch {
	case !ok:
		return nil, errType
	case u != 0, i < 0, i > 1:
		return nil, errRange
	}
	return i == 1, nil
}

// text reads strings and bytes of any Go type.
func text(v any) (string, bool) {
	switch x := v.(type) {
	case string:
		return x, true
	case []byte:
		return string(x), true
	}
	rv := reflect.ValueOf(v)
	switch {
	case rv.Kind() == reflect.String:
		return rv.String(), true
	case rv.Kind() == reflect.Slice && rv.Type().Elem().Kind() == reflect.Uint8:
		return string(rv.Bytes()), true
	}
	return "", false
}

func checkString(v any) (any, error) {
	switch x := v.(type) {
	case string:
		return v, nil
	case uuid.UUID:
		return x.String(), nil
	}
	s, ok := text(v)
	if !ok {
		return nil, errType
	}
	return s, nil
}

// checkFixed: shorter values are filled up with zero bytes, as the server does.
func checkFixed(size int) checker {
	return func(v any) (any, error) {
		s, ok := text(v)
		if !ok {
			rv := reflect.ValueOf(v)
			if rv.Kind() != reflect.Array || rv.Type().Elem().Kind() != reflect.Uint8 {
				return nil, errType
			}
			b := make([]byte, rv.Len())
			reflect.Copy(reflect.ValueOf(b), rv)
			s = string(b)
		}
		if len(s) > size {
			return nil, fmt.Errorf("longer than %d bytes", size)
		}
		return s, nil
	}
}

func checkUUID(v any) (any, error) {
	switch x := v.(type) {
	case uuid.UUID:
		return v, nil
	case [16]byte:
		return uuid.UUID(x), nil
	}
	s, ok := text(v)
	if !ok {
		return nil, errType
	}
	id, err := uuid.Parse(s)
	if err != nil {
		return nil, errors.New("not a UUID")
	}
	return id, nil
}

func address(v any) (netip.Addr, error) {
	switch x := v.(type) {
	case netip.Addr:
		return x, nil
	case net.IP:
		addr, ok := netip.AddrFromSlice(x)
		if !ok {
			return addr, errors.New("not an address")
		}
		return addr, nil
	}
	s, ok := text(v)
	if !ok {
		return netip.Addr{}, errType
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return addr, errors.New("not an address")
	}
	return addr, nil
}

func checkIPv4(v any) (any, error) {
	addr, err := address(v)
	if err != nil {
		return nil, err
	}
	if addr = addr.Unmap(); !addr.Is4() {
		return nil, errors.New("not an IPv4 address")
	}
	return addr, nil
}

func checkIPv6(v any) (any, error) {
	addr, err := address(v)
	if err != nil {
		return nil, err
	}
	return netip.AddrFrom16(addr.As16()), nil
}

// checkDecimal refuses what the column could not hold digit by digit.
func checkDecimal(precision, scale int) checker {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	return func(v any) (any, error) {
		d, ok := v.(decimal.Decimal)
		if n, isBig := v.(*big.Int); isBig {
			d, ok = decimal.NewFromBigInt(n, 0), true
		}
		if i, u, isWhole := whole(v); !ok && isWhole {
			if d, ok = decimal.NewFromInt(i), true; u != 0 {
				d = decimal.NewFromBigInt(new(big.Int).SetUint64(u), 0)
			}
		}
		if !ok {
			s, isText := text(v)
			if !isText {
				return nil, fmt.Errorf("%w: give a string or a decimal.Decimal", errType)
			}
			var err error
			if d, err = decimal.NewFromString(s); err != nil {
				return nil, errors.New("not a number")
			}
		}
		if d.Exponent() > 1000 || d.Exponent() < -1000 {
			return nil, errRange // before anything is multiplied out
		}
		scaled := d.Shift(int32(scale)) //nolint:gosec // at most 76
		if !scaled.IsInteger() {
			return nil, fmt.Errorf("more than %d digits behind the point", scale)
		}
		if n := scaled.BigInt(); n.CmpAbs(limit) >= 0 {
			return nil, errRange
		}
		return d, nil
	}
}
