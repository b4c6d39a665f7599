package clickhouse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	client "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

func (z zoned) array(name string) typed {
	inner := z.of(name)
	return typed{trial: inner.trial, check: notNull(func(v any) (any, error) {
		rv := reflect.ValueOf(v)
		if rv.Kind() != reflect.Slice && rv.Kind() != reflect.Array {
			return nil, errType
		}
		elements := make([]any, rv.Len())
		for i := range elements {
			checked, err := inner.check(rv.Index(i).Interface())
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			elements[i] = checked
		}
		return elements, nil
	})}
}

// pairs is a Map: keys and values side by side, so that the client need not
// know their Go types.
func (z zoned) pairs(names []string) typed {
	if len(names) != 2 {
		return typed{check: notNull(pass), trial: true}
	}
	key, value := z.of(names[0]), z.of(names[1])
	return typed{trial: key.trial || value.trial, check: notNull(func(v any) (any, error) {
		var list pairs
		add := func(k, v any) error {
			k, err := key.check(k)
			if err != nil {
				return fmt.Errorf("key: %w", err)
			}
			if v, err = value.check(v); err != nil {
				return fmt.Errorf("value of key %v: %w", k, err)
			}
			list = append(list, pair{k, v})
			return nil
		}
		if ordered, ok := v.(column.IterableOrderedMap); ok {
			for it := ordered.Iterator(); it.Next(); {
				if err := add(it.Key(), it.Value()); err != nil {
					return nil, err
				}
			}
			return &list, nil
		}
		rv := reflect.ValueOf(v)
		if rv.Kind() != reflect.Map {
			return nil, errType
		}
		// ClickHouse keeps the order of a Map and Go has none: keys in order make
		// the same value the same row every time.
		keys := rv.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			return strings.Compare(fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface()))
		})
		for _, k := range keys {
			if err := add(k.Interface(), rv.MapIndex(k).Interface()); err != nil {
				return nil, err
			}
		}
		return &list, nil
	})}
}

type pair struct{ key, value any }

// pairs is a map in an order, as the client takes it.
type pairs []pair

var _ column.IterableOrderedMap = (*pairs)(nil)

// Put appends a pair.
func (p *pairs) Put(key, value any) { *p = append(*p, pair{key, value}) }

// Iterator walks the pairs.
func (p *pairs) Iterator() column.MapIterator { return &pairsWalk{rest: *p} }

type pairsWalk struct {
	rest pairs
	at   pair
}

func (w *pairsWalk) Next() bool {
	if len(w.rest) == 0 {
		return false
	}
	w.at, w.rest = w.rest[0], w.rest[1:]
	return true
}

func (w *pairsWalk) Key() any   { return w.at.key }
func (w *pairsWalk) Value() any { return w.at.value }

// tuple takes a slice in order, and for a named Tuple a map or a struct.
func (z zoned) tuple(params []string) typed {
	names, types := make([]string, len(params)), make([]typed, len(params))
	trial, named := false, true
	for i, param := range params {
		name, rest := element(param)
		names[i], types[i] = name, z.of(rest)
		trial = trial || types[i].trial
		named = named && name != ""
	}
	return typed{trial: trial, check: notNull(func(v any) (any, error) {
		values, err := members(v, names, named)
		if err != nil {
			return nil, err
		}
		for i, t := range types {
			if values[i], err = t.check(values[i]); err != nil {
				return nil, fmt.Errorf("element %d: %w", i+1, err)
			}
		}
		return values, nil
	})}
}

// element parts "name Type"; a Tuple without names has types alone.
func element(param string) (name, typeName string) {
	if param != "" && (param[0] == '`' || param[0] == '"') {
		if end := strings.IndexByte(param[1:], param[0]); end >= 0 {
			if name, ok := chsql.Unquote(param[:end+2]); ok {
				return name, strings.TrimSpace(param[end+2:])
			}
		}
	}
	before, after, found := strings.Cut(param, " ")
	if found && !strings.ContainsAny(before, "('") {
		return before, strings.TrimSpace(after)
	}
	return "", param
}

func members(v any, names []string, named bool) ([]any, error) {
	rv := reflect.ValueOf(v)
	switch rv.Kind() { //nolint:exhaustive // the others are refused
	case reflect.Slice, reflect.Array:
		if rv.Len() != len(names) {
			return nil, fmt.Errorf("%d elements, the Tuple has %d", rv.Len(), len(names))
		}
		values := make([]any, len(names))
		for i := range values {
			values[i] = rv.Index(i).Interface()
		}
		return values, nil
	case reflect.Map:
		if !named || rv.Type().Key().Kind() != reflect.String {
			return nil, errType
		}
		given := map[string]any{}
		for it := rv.MapRange(); it.Next(); {
			given[it.Key().String()] = it.Value().Interface()
		}
		return inOrder(given, names)
	case reflect.Struct:
		if !named {
			return nil, errType
		}
		return inOrder(fields(rv), names)
	}
	return nil, errType
}

// fields of a struct by the client's rule: the tag ch, or the field's name.
func fields(rv reflect.Value) map[string]any {
	given := map[string]any{}
	for i := range rv.NumField() {
		field := rv.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		name, tagged := field.Tag.Lookup("ch")
		switch {
		case !tagged:
			name = field.Name
		case name == "-":
			continue
		}
		given[name] = rv.Field(i).Interface()
	}
	return given
}

func inOrder(given map[string]any, names []string) ([]any, error) {
	values := make([]any, len(names))
	for i, name := range names {
		value, ok := given[name]
		if !ok {
			return nil, fmt.Errorf("element %s is missing", name)
		}
		values[i] = value
	}
	for name := range given {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("the Tuple has no element %s", name)
		}
	}
	return values, nil
}

var errNotJSON = errors.New("not a JSON object")

// checkJSON hands every value over as text: the client's other form cannot be
// mixed with text in one block.
func checkJSON(v any) (any, error) {
	var doc []byte
	if s, ok := text(v); ok {
		doc = []byte(s)
	} else {
		if dynamic, ok := v.(*client.JSON); ok {
			v = dynamic.NestedMap()
		}
		var err error
		if doc, err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotJSON, err)
		}
	}
	if doc = bytes.TrimSpace(doc); len(doc) == 0 || doc[0] != '{' || !json.Valid(doc) {
		return nil, errNotJSON
	}
	return string(doc), nil
}
