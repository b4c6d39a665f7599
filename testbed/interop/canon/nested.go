package canon

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	lib "github.com/apache/iceberg-go"
)

// ofJSON is the canonical form of a nested value's JSON.
func ofJSON(t lib.Type, text string) (Cell, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("value of type %s: %w", t, err)
	}
	return fromJSON(t, v)
}

func fromJSON(t lib.Type, v any) (Cell, error) {
	if v == nil {
		return nil, nil
	}
	switch t := t.(type) {
	case *lib.ListType:
		list, err := as[[]any](t, v)
		if err != nil {
			return nil, err
		}
		return each(list, func(e any) (Cell, error) { return fromJSON(t.Element, e) })
	case *lib.MapType:
		object, err := as[map[string]any](t, v)
		if err != nil {
			return nil, err
		}
		return pairs(t, object)
	case *lib.StructType:
		object, err := as[map[string]any](t, v)
		if err != nil {
			return nil, err
		}
		row := Row{}
		for _, f := range t.FieldList {
			if row[f.Name], err = fromJSON(f.Type, object[f.Name]); err != nil {
				return nil, err
			}
		}
		return row, nil
	}
	return scalarFromJSON(t, v)
}

func pairs(t *lib.MapType, object map[string]any) (Cell, error) {
	list := make([]any, 0, len(object))
	for k, v := range object {
		value, err := fromJSON(t.ValueType, v)
		if err != nil {
			return nil, err
		}
		list = append(list, []any{k, value}) // a key is a text or an integer here
	}
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(Line(a), Line(b)) })
	return list, nil
}

func scalarFromJSON(t lib.Type, v any) (Cell, error) {
	switch x := v.(type) {
	case bool:
		return x, nil
	case json.Number:
		if !isFloat(t) {
			return x.String(), nil
		}
		f, err := x.Float64()
		if err != nil {
			return nil, fmt.Errorf("value of type %s: %w", t, err)
		}
		return Of(t, f)
	case string:
		layout, isTime := layouts[t.Type()]
		if !isTime {
			return x, nil
		}
		at, err := time.Parse(layout, x)
		if err != nil {
			return nil, fmt.Errorf("value of type %s: %w", t, err)
		}
		return ofTime(t, at), nil
	}
	return nil, fmt.Errorf("a value of type %s is a %T", t, v)
}

// layouts of times inside of a nested value.
var layouts = map[string]string{
	"date":           "2006-01-02",
	"timestamp":      "2006-01-02T15:04:05.999999999",
	"timestamptz":    "2006-01-02T15:04:05.999999999Z07:00",
	"timestamp_ns":   "2006-01-02T15:04:05.999999999",
	"timestamptz_ns": "2006-01-02T15:04:05.999999999Z07:00",
}

func isFloat(t lib.Type) bool {
	return t.Equals(lib.PrimitiveTypes.Float32) || t.Equals(lib.PrimitiveTypes.Float64)
}

// argJSON is the JSON that an INSERT takes for a nested cell.
func argJSON(t lib.Type, c Cell) (string, error) {
	v, err := toJSON(t, c)
	if err != nil {
		return "", err
	}
	return Line(v), nil
}

func toJSON(t lib.Type, c Cell) (any, error) {
	if c == nil {
		return nil, nil
	}
	switch t := t.(type) {
	case *lib.ListType:
		list, err := as[[]any](t, c)
		if err != nil {
			return nil, err
		}
		return each(list, func(e any) (any, error) { return toJSON(t.Element, e) })
	case *lib.MapType:
		list, err := as[[]any](t, c)
		if err != nil {
			return nil, err
		}
		return object(t, list)
	case *lib.StructType:
		row, err := as[Row](t, c)
		if err != nil {
			return nil, err
		}
		fields := map[string]any{}
		for _, f := range t.FieldList {
			if fields[f.Name], err = toJSON(f.Type, row[f.Name]); err != nil {
				return nil, err
			}
		}
		return fields, nil
	}
	v, err := Arg(t, c)
	switch x := v.(type) {
	case time.Time:
		return x.Format(layouts[t.Type()]), err
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, errors.New("no JSON number: " + fmt.Sprint(x))
		}
	}
	return v, err
}

func object(t *lib.MapType, list []any) (any, error) {
	fields := map[string]any{}
	for _, e := range list {
		pair, err := as[[]any](t, e)
		if err != nil {
			return nil, err
		}
		key, err := as[string](t.KeyType, pair[0])
		if err != nil {
			return nil, err
		}
		if fields[key], err = toJSON(t.ValueType, pair[1]); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func each(list []any, f func(any) (any, error)) ([]any, error) {
	out := make([]any, len(list))
	for i, e := range list {
		var err error
		if out[i], err = f(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}
