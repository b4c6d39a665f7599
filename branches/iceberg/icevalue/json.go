package icevalue

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
)

// textFunc appends the JSON of a row that is not NULL.
type textFunc func(b []byte, i int) []byte

// jsonFunc prints what stands in a nested column.
func jsonFunc(name string, t iceberg.Type, a arrow.Array) (textFunc, error) {
	switch t := t.(type) {
	case *iceberg.ListType:
		if l, ok := a.(array.ListLike); ok {
			return listJSON(name, t, l)
		}
	case *iceberg.MapType:
		if m, ok := a.(*array.Map); ok {
			return mapJSON(name, t, m)
		}
	case *iceberg.StructType:
		if s, ok := a.(*array.Struct); ok && s.NumField() == len(t.FieldList) {
			return structJSON(name, t, s)
		}
	default:
		if f := scalarJSON(t, a); f != nil {
			return f, nil
		}
	}
	return nil, noReader(name, t, a)
}

func orNull(a arrow.Array, f textFunc) textFunc {
	return func(b []byte, i int) []byte {
		if a.IsNull(i) {
			return append(b, "null"...)
		}
		return f(b, i)
	}
}

func listJSON(name string, t *iceberg.ListType, l array.ListLike) (textFunc, error) {
	element, err := jsonFunc(name+".element", t.Element, l.ListValues())
	if err != nil {
		return nil, err
	}
	element = orNull(l.ListValues(), element)
	return func(b []byte, i int) []byte {
		b = append(b, '[')
		from, to := l.ValueOffsets(i)
		for j := from; j < to; j++ {
			if j > from {
				b = append(b, ',')
			}
			b = element(b, int(j))
		}
		return append(b, ']')
	}, nil
}

func mapJSON(name string, t *iceberg.MapType, m *array.Map) (textFunc, error) {
	key, err := jsonFunc(name+".key", t.KeyType, m.Keys())
	if err != nil {
		return nil, err
	}
	value, err := jsonFunc(name+".value", t.ValueType, m.Items())
	if err != nil {
		return nil, err
	}
	value = orNull(m.Items(), value)
	open, middle, end := "{", ":", "}"
	if _, primitive := t.KeyType.(iceberg.PrimitiveType); !primitive {
		open, middle, end = "[", ",", "]"
	} else {
		key = asString(key)
	}
	return func(b []byte, i int) []byte {
		b = append(b, open...)
		from, to := m.ValueOffsets(i)
		for j := from; j < to; j++ {
			if j > from {
				b = append(b, ',')
			}
			if open == "[" {
				b = append(b, '[')
			}
			b = append(key(b, int(j)), middle...)
			b = value(b, int(j))
			if open == "[" {
				b = append(b, ']')
			}
		}
		return append(b, end...)
	}, nil
}

// asString puts a key in quotes, as an object's keys are.
func asString(f textFunc) textFunc {
	return func(b []byte, i int) []byte {
		text := f(nil, i)
		if text[0] == '"' {
			return append(b, text...)
		}
		return append(append(append(b, '"'), text...), '"')
	}
}

func structJSON(name string, t *iceberg.StructType, s *array.Struct) (textFunc, error) {
	names, fields := make([]string, len(t.FieldList)), make([]textFunc, len(t.FieldList))
	for k, f := range t.FieldList {
		value, err := jsonFunc(name+"."+f.Name, f.Type, s.Field(k))
		if err != nil {
			return nil, err
		}
		names[k], fields[k] = string(quoteJSON(nil, f.Name))+":", orNull(s.Field(k), value)
	}
	return func(b []byte, i int) []byte {
		b = append(b, '{')
		for k, f := range fields {
			if k > 0 {
				b = append(b, ',')
			}
			b = f(append(b, names[k]...), i)
		}
		return append(b, '}')
	}, nil
}

// scalarJSON follows Iceberg's specification, appendix D.
func scalarJSON(t iceberg.Type, a arrow.Array) textFunc {
	value := scalarFunc(t, a)
	if value == nil {
		return nil
	}
	_, isDate := t.(iceberg.DateType)
	zoned, _, _ := timestampKind(t)
	return func(b []byte, i int) []byte {
		switch x := value(i).(type) {
		case bool:
			return strconv.AppendBool(b, x)
		case int64:
			return strconv.AppendInt(b, x, 10)
		case float64:
			return appendFloat(b, x, t)
		case string:
			return quoteJSON(b, x)
		case []byte:
			return append(hex.AppendEncode(append(b, '"'), x), '"')
		case time.Time:
			b = appendDate(append(b, '"'), x)
			if !isDate {
				b = x.AppendFormat(b, "T15:04:05.999999999")
			}
			if zoned {
				b = append(b, "+00:00"...)
			}
			return append(b, '"')
		}
		return append(b, "null"...)
	}
}

// appendDate prints any year with at least four digits, as ParseDate reads it.
func appendDate(b []byte, t time.Time) []byte {
	year := t.Year()
	if year < 0 {
		b, year = append(b, '-'), -year
	}
	text := strconv.Itoa(year)
	b = append(append(b, strings.Repeat("0", max(0, 4-len(text)))...), text...)
	return t.AppendFormat(b, "-01-02")
}

// appendFloat prints what JSON has no number for as a string.
func appendFloat(b []byte, f float64, t iceberg.Type) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...)
	}
	bits := 64
	if _, ok := t.(iceberg.Float32Type); ok {
		bits = 32
	}
	return strconv.AppendFloat(b, f, 'g', -1, bits)
}

func quoteJSON(b []byte, s string) []byte {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // no string fails
		return append(b, `""`...)
	}
	return append(b, strings.TrimSuffix(out.String(), "\n")...)
}
