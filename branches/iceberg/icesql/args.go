package icesql

import (
	"cmp"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// encodedArg is one argument in a unit's payload: format.
type encodedArg struct {
	Name    string `json:"n,omitempty"`
	Ordinal int    `json:"o"`
	Type    string `json:"t"` // null, bool, int, uint, float, number, text, bytes, time, duration, uuid, json, list, map
	Value   string `json:"v,omitempty"`
	Bytes   []byte `json:"b,omitempty"`

	Items []encodedArg `json:"i,omitempty"` // of a list or a map
	Keys  []encodedArg `json:"k,omitempty"` // of a map
}

// EncodeArgs keeps arguments for a statement that may have to be run again after
// the decision. DecodeArgs gives values that bind as these do: a time keeps its
// offset, since a date and a timestamp are taken from its own clock.
func EncodeArgs(args []driver.NamedValue) ([]byte, error) {
	out := make([]encodedArg, len(args))
	for i, a := range args {
		if err := out[i].set(a.Value); err != nil {
			return nil, &BindError{Cause: fmt.Sprintf("argument %d", a.Ordinal), Err: err}
		}
		out[i].Name, out[i].Ordinal = a.Name, a.Ordinal
	}
	return json.Marshal(out)
}

func (e *encodedArg) set(v any) error {
	v, err := icevalue.Plain(v)
	if err != nil {
		return err
	}
	switch x := v.(type) {
	case nil:
		e.Type = "null"
	case bool:
		e.Type, e.Value = "bool", strconv.FormatBool(x)
	case int64:
		e.Type, e.Value = "int", strconv.FormatInt(x, 10)
	case uint64:
		e.Type, e.Value = "uint", strconv.FormatUint(x, 10)
	case float64:
		e.Type, e.Value = "float", strconv.FormatFloat(x, 'g', -1, 64)
	case icevalue.Number:
		e.Type, e.Value = "number", x.String()
	case string:
		// As bytes: JSON would replace what is not UTF-8, and a binary column takes it.
		e.Type, e.Bytes = "text", []byte(x)
	case []byte:
		e.Type, e.Bytes = "bytes", x
	case time.Time:
		// Not as a date: RFC 3339 has no years before 0 and above 9999.
		_, offset := x.Zone()
		e.Type, e.Value = "time", fmt.Sprintf("%d %d %d", x.Unix(), x.Nanosecond(), offset)
	case time.Duration:
		e.Type, e.Value = "duration", strconv.FormatInt(int64(x), 10)
	case uuid.UUID:
		e.Type, e.Value = "uuid", x.String()
	case json.RawMessage:
		e.Type, e.Value = "json", string(x)
	default:
		return e.setNested(v)
	}
	return nil
}

// setNested keeps what is inside a list or a map as it is: as JSON, bytes would
// become base64 and a time would get a zone, and the column would not take them.
func (e *encodedArg) setNested(v any) error {
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.Slice || r.Kind() == reflect.Array:
		e.Type, e.Items = "list", make([]encodedArg, r.Len())
		for i := range e.Items {
			if err := e.Items[i].set(r.Index(i).Interface()); err != nil {
				return err
			}
		}
		return nil
	case r.Kind() == reflect.Map:
		e.Type = "map"
		// In the order in which an Appender would write them, so that a statement
		// that is run again writes the same.
		keys := r.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, k := range keys {
			var key, item encodedArg
			if err := errors.Join(key.set(k.Interface()), item.set(r.MapIndex(k).Interface())); err != nil {
				return err
			}
			e.Keys, e.Items = append(e.Keys, key), append(e.Items, item)
		}
		return nil
	}
	raw, err := json.Marshal(v)
	e.Type, e.Value = "json", string(raw)
	return err
}

// DecodeArgs reads what EncodeArgs made.
func DecodeArgs(raw []byte) ([]driver.NamedValue, error) {
	var in []encodedArg
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("rhizodat: read arguments: %w", err)
	}
	out := make([]driver.NamedValue, len(in))
	for i, e := range in {
		v, err := e.get()
		if err != nil {
			return nil, fmt.Errorf("rhizodat: read arguments: argument %d: %w", e.Ordinal, err)
		}
		out[i] = driver.NamedValue{Name: e.Name, Ordinal: e.Ordinal, Value: v}
	}
	return out, nil
}

func (e *encodedArg) get() (any, error) {
	switch e.Type {
	case "null":
		return nil, nil
	case "bool":
		return strconv.ParseBool(e.Value)
	case "int":
		return strconv.ParseInt(e.Value, 10, 64)
	case "uint":
		return strconv.ParseUint(e.Value, 10, 64)
	case "float":
		return strconv.ParseFloat(e.Value, 64)
	case "number":
		return icevalue.ParseNumber(e.Value)
	case "text":
		return string(e.Bytes), nil
	case "bytes":
		return append([]byte{}, e.Bytes...), nil
	case "time":
		return e.time()
	case "duration":
		n, err := strconv.ParseInt(e.Value, 10, 64)
		return time.Duration(n), err
	case "uuid":
		return uuid.Parse(e.Value)
	case "json":
		return json.RawMessage(e.Value), nil
	case "list":
		return getAll(e.Items)
	case "map":
		return e.getMap()
	}
	return nil, errors.New("an unknown type")
}

func getAll(in []encodedArg) ([]any, error) {
	out := make([]any, len(in))
	for i := range in {
		var err error
		if out[i], err = in[i].get(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// getMap gives a map where every key is text, else the list of pairs that a map's
// column takes too.
func (e *encodedArg) getMap() (any, error) {
	keys, err := getAll(e.Keys)
	if err != nil {
		return nil, err
	}
	items, err := getAll(e.Items)
	if err != nil {
		return nil, err
	}
	if len(keys) != len(items) {
		return nil, errors.New("a map without as many keys as values")
	}
	byText, pairs := map[string]any{}, make([]any, len(keys))
	for i, k := range keys {
		pairs[i] = []any{k, items[i]}
		if s, ok := k.(string); ok {
			byText[s] = items[i]
		}
	}
	if len(byText) == len(keys) {
		return byText, nil
	}
	return pairs, nil
}

// time reads seconds and nanoseconds since 1970, and the offset of its clock.
func (e *encodedArg) time() (time.Time, error) {
	var seconds, nanos int64
	var offset int
	if _, err := fmt.Sscanf(e.Value, "%d %d %d", &seconds, &nanos, &offset); err != nil {
		return time.Time{}, err
	}
	t := time.Unix(seconds, nanos).UTC()
	if offset != 0 {
		t = t.In(time.FixedZone("", offset))
	}
	return t, nil
}
