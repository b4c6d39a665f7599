package drevo

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// parameters makes a statement's arguments its parameters: sql.Named("name", v) is
// $name, the nth argument $n, counted from 1 as elsewhere in database/sql.
func parameters(args []driver.NamedValue) (map[string]any, error) {
	if len(args) == 0 {
		return nil, nil //nolint:nilnil // no parameters
	}
	params := make(map[string]any, len(args))
	for _, arg := range args {
		name := arg.Name
		if name == "" {
			name = strconv.Itoa(arg.Ordinal)
		}
		if _, twice := params[name]; twice {
			return nil, fmt.Errorf("parameter $%s is given twice", name)
		}
		value, err := parameter(arg.Value, 0)
		if err != nil {
			return nil, fmt.Errorf("parameter $%s: %w", name, err)
		}
		params[name] = value
	}
	return params, nil
}

// deepest bounds the nesting of a parameter; drevo's own bound is 100.
const deepest = 50

var errBytes = errors.New("drevo takes no bytes: send text, for instance base64")

// parameter gives a value the form in which it is sent: what drevo would refuse,
// and with it end the transaction, is refused here. A time is sent as the text that
// drevo would store.
func parameter(v any, depth int) (any, error) {
	if depth > deepest {
		return nil, errors.New("it is nested too deeply")
	}
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		return v, nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	case driver.Valuer:
		if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.IsNil() {
			return nil, nil //nolint:nilnil // as database/sql has it
		}
		value, err := v.Value()
		if err != nil {
			return nil, err
		}
		return parameter(value, depth+1)
	}
	return reflected(reflect.ValueOf(v), depth)
}

func reflected(v reflect.Value, depth int) (any, error) {
	switch v.Kind() { //nolint:exhaustive // the default is the answer to all others
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil //nolint:nilnil // null is a value
		}
		return parameter(v.Elem().Interface(), depth+1)
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			return nil, errors.New("it is larger than 64 bits with a sign hold")
		}
		return int64(v.Uint()), nil //nolint:gosec // bounded above
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.String:
		return v.String(), nil
	case reflect.Slice, reflect.Array:
		return list(v, depth)
	case reflect.Map:
		return mapping(v, depth)
	default:
		return nil, fmt.Errorf("drevo has no form for a %s", v.Type())
	}
}

func list(v reflect.Value, depth int) (any, error) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return nil, errBytes
	}
	if v.Kind() == reflect.Slice && v.IsNil() {
		return nil, nil //nolint:nilnil // null is a value
	}
	items := make([]any, v.Len())
	for i := range items {
		item, err := parameter(v.Index(i).Interface(), depth+1)
		if err != nil {
			return nil, err
		}
		items[i] = item
	}
	return items, nil
}

func mapping(v reflect.Value, depth int) (any, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, errors.New("the keys of a map are texts")
	}
	if v.IsNil() {
		return nil, nil //nolint:nilnil // null is a value
	}
	entries := make(map[string]any, v.Len())
	for key, value := range v.Seq2() {
		entry, err := parameter(value.Interface(), depth+1)
		if err != nil {
			return nil, err
		}
		entries[key.String()] = entry
	}
	return entries, nil
}
