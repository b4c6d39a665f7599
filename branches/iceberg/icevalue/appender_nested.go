package icevalue

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
)

var errJSON = errors.New("it is not one JSON value")

func newNested(c column, b array.Builder) (cell, error) {
	switch t := c.typ.(type) {
	case *iceberg.ListType:
		l, ok := b.(interface {
			Append(valid bool)
			AppendNull()
			ValueBuilder() array.Builder
		})
		if !ok {
			break
		}
		element, err := newCell(c.inner("element", t.Element, t.ElementRequired), l.ValueBuilder())
		return &listCell{column: c, b: l, element: element}, err
	case *iceberg.MapType:
		m, ok := b.(*array.MapBuilder)
		if !ok {
			break
		}
		key, err := newCell(c.inner("key", t.KeyType, true), m.KeyBuilder())
		if err != nil {
			return nil, err
		}
		value, err := newCell(c.inner("value", t.ValueType, t.ValueRequired), m.ItemBuilder())
		return &mapCell{column: c, b: m, key: key, value: value}, err
	case *iceberg.StructType:
		s, ok := b.(*array.StructBuilder)
		if !ok || s.NumField() != len(t.FieldList) {
			break
		}
		out := &structCell{column: c, b: s, index: make(map[string]int, len(t.FieldList))}
		for i, f := range t.FieldList {
			part, err := newCell(c.inner(f.Name, f.Type, f.Required), s.FieldBuilder(i))
			if err != nil {
				return nil, err
			}
			out.fields = append(out.fields, part)
			out.index[f.Name] = i
		}
		return out, nil
	}
	return nil, fmt.Errorf("rhizodat: write column %s of type %s: no way to write it as Arrow %s", c.name, c.typ, b.Type())
}

// whole brings a nested value to maps and slices: JSON text is read, with numbers
// kept as they are written.
func (c *column) whole(v any) (any, error) {
	p, err := Plain(v)
	if err != nil {
		return nil, c.refuse(v, err)
	}
	text, err := toText(p)
	if err != nil { // no text
		if p == nil && c.required {
			return nil, c.refuse(nil, ErrRequired)
		}
		return p, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return nil, c.refuse(text, errJSON)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, c.refuse(text, errJSON)
	}
	if out == nil && c.required {
		return nil, c.refuse(nil, ErrRequired)
	}
	return out, nil
}

// appendWhole is Append of every nested cell.
func appendWhole(c cell, v any) error {
	x, err := c.check(v)
	if err != nil {
		return err
	}
	c.put(x)
	return nil
}

type listCell struct {
	column
	b interface {
		Append(valid bool)
		AppendNull()
	}
	element cell
}

func (l *listCell) Append(v any) error { return appendWhole(l, v) }

func (l *listCell) check(v any) (any, error) {
	w, err := l.whole(v)
	if err != nil || w == nil {
		return nil, err
	}
	items, ok := sliceOf(w)
	if !ok {
		return nil, l.refuse(w, errNoValue)
	}
	out := make([]any, len(items))
	for i, item := range items {
		if out[i], err = l.element.check(item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *listCell) put(x any) {
	if x == nil {
		l.b.AppendNull()
		return
	}
	l.b.Append(true)
	for _, item := range x.([]any) {
		l.element.put(item)
	}
}

func sliceOf(v any) ([]any, bool) {
	if s, ok := v.([]any); ok {
		return s, true
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return nil, false
	}
	out := make([]any, r.Len())
	for i := range out {
		out[i] = r.Index(i).Interface()
	}
	return out, true
}

type mapCell struct {
	column
	b          *array.MapBuilder
	key, value cell
}

// pairs are a map's entries as check gives them.
type pairs struct{ keys, values []any }

func (m *mapCell) Append(v any) error { return appendWhole(m, v) }

func (m *mapCell) check(v any) (any, error) {
	w, err := m.whole(v)
	if err != nil || w == nil {
		return nil, err
	}
	entries, ok := entriesOf(w)
	if !ok {
		return nil, m.refuse(w, errNoValue)
	}
	out, seen := &pairs{}, map[string]bool{}
	for _, e := range entries {
		k, err := m.key.check(e[0])
		if err != nil {
			return nil, err
		}
		// Two spellings of one key would make a map with the key twice.
		id := fmt.Sprintf("%v", k)
		if seen[id] {
			return nil, m.refuse(e[0], errors.New("the key stands twice"))
		}
		seen[id] = true
		x, err := m.value.check(e[1])
		if err != nil {
			return nil, err
		}
		out.keys, out.values = append(out.keys, k), append(out.values, x)
	}
	return out, nil
}

func (m *mapCell) put(x any) {
	if x == nil {
		m.b.AppendNull()
		return
	}
	m.b.Append(true)
	p := x.(*pairs)
	for i := range p.keys {
		m.key.put(p.keys[i])
		m.value.put(p.values[i])
	}
}

// entriesOf takes a map, or a list of pairs.
func entriesOf(v any) ([][2]any, bool) {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Map {
		out := make([][2]any, 0, r.Len())
		for it := r.MapRange(); it.Next(); {
			out = append(out, [2]any{it.Key().Interface(), it.Value().Interface()})
		}
		// Go's order of a map is random; the file's is not.
		slices.SortFunc(out, func(a, b [2]any) int { return cmp.Compare(fmt.Sprint(a[0]), fmt.Sprint(b[0])) })
		return out, true
	}
	items, ok := sliceOf(v)
	if !ok {
		return nil, false
	}
	out := make([][2]any, 0, len(items))
	for _, item := range items {
		pair, ok := sliceOf(item)
		if !ok || len(pair) != 2 {
			return nil, false
		}
		out = append(out, [2]any{pair[0], pair[1]})
	}
	return out, true
}

type structCell struct {
	column
	b      *array.StructBuilder
	fields []cell
	index  map[string]int
}

func (s *structCell) Append(v any) error { return appendWhole(s, v) }

func (s *structCell) check(v any) (any, error) {
	w, err := s.whole(v)
	if err != nil || w == nil {
		return nil, err
	}
	given, err := s.given(w)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(s.fields))
	for i, f := range s.fields {
		if out[i], err = f.check(given[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// given lays the fields of an object in the struct's order; what is not given is NULL.
func (s *structCell) given(v any) ([]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		raw, err := json.Marshal(v)
		if err != nil || raw[0] != '{' {
			return nil, s.refuse(v, errNoValue)
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&m); err != nil {
			return nil, s.refuse(v, errNoValue)
		}
	}
	out := make([]any, len(s.fields))
	for name, x := range m {
		i, ok := s.index[name]
		if !ok {
			return nil, s.refuse(v, fmt.Errorf("the struct has no field %s", Shown(name)))
		}
		out[i] = x
	}
	return out, nil
}

func (s *structCell) put(x any) {
	if x == nil {
		s.b.AppendNull() // and one in every field, as arrow-go does
		return
	}
	s.b.Append(true)
	for i, part := range x.([]any) {
		s.fields[i].put(part)
	}
}
