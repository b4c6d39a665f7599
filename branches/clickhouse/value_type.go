package clickhouse

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	client "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

// simple are the types without parameters.
var simple = map[string]checker{
	"Int8":    signed[int8](math.MinInt8, math.MaxInt8),
	"Int16":   signed[int16](math.MinInt16, math.MaxInt16),
	"Int32":   signed[int32](math.MinInt32, math.MaxInt32),
	"Int64":   signed[int64](math.MinInt64, math.MaxInt64),
	"UInt8":   natural[uint8](math.MaxUint8),
	"UInt16":  natural[uint16](math.MaxUint16),
	"UInt32":  natural[uint32](math.MaxUint32),
	"UInt64":  natural[uint64](math.MaxUint64),
	"Int128":  bigInteger(128, true),
	"Int256":  bigInteger(256, true),
	"UInt128": bigInteger(128, false),
	"UInt256": bigInteger(256, false),
	"Float32": checkFloat32, "BFloat16": checkFloat32, "Float64": checkFloat64,
	"Bool": checkBool, "Boolean": checkBool,
	"String": checkString, "UUID": checkUUID, "IPv4": checkIPv4, "IPv6": checkIPv6,
	"Date": checkDate(dateFirst, dateLast), "Date32": checkDate(date32First, date32Last),
	"Time": checkTime(0),
}

// own tells of a value whether it has the Go type of a column, and so needs no
// check: most have, and a check was the dearest that was done with them.
var own = map[string]func(v any) bool{
	"Int8": is[int8], "Int16": is[int16], "Int32": is[int32], "Int64": is[int64],
	"UInt8": is[uint8], "UInt16": is[uint16], "UInt32": is[uint32], "UInt64": is[uint64],
	"Float32": is[float32], "Float64": is[float64], "Bool": is[bool], "String": is[string], "UUID": is[uuid.UUID],
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// typed is the checker of a column's type.
type typed struct {
	check checker
	own   func(v any) bool // nil where every value is checked
	// null is what stands for NULL; ok is false where the type has none.
	null   any
	isNull bool
	// trial: the client may refuse a value that check let pass, half-way into
	// its column, so it is tried on a column that is thrown away.
	trial bool
}

// zoned reads types whose strings are in the server's time zone unless the type
// names another.
type zoned struct{ zone *time.Location }

// of reads a type as the server writes it.
func (z zoned) of(name string) typed {
	if check, ok := simple[name]; ok {
		return typed{check: notNull(check), own: own[name]}
	}
	outer, params, ok := parameters(name)
	switch {
	case outer == "DateTime":
		return typed{check: notNull(checkDateTime(z.named(params, 0))), own: isSecond}
	case outer == "Dynamic":
		return typed{check: pass, isNull: true, trial: true}
	case outer == "JSON":
		return typed{check: notNull(checkJSON)}
	case !ok:
		return typed{check: notNull(pass), trial: true}
	}
	switch outer {
	case "Nullable":
		return z.nullable(z.of(params[0]), params[0])
	case "LowCardinality":
		return z.of(params[0])
	case "SimpleAggregateFunction":
		return z.of(params[len(params)-1])
	case "Array":
		return z.array(params[0])
	case "Map":
		return z.pairs(params)
	case "Tuple":
		return z.tuple(params)
	case "Variant":
		return z.variant(params)
	case "Enum8":
		return typed{check: notNull(checkEnum[int8](params))}
	case "Enum16":
		return typed{check: notNull(checkEnum[int16](params))}
	}
	return z.numbered(outer, params)
}

// numbered are the types whose parameters are numbers.
func (z zoned) numbered(outer string, params []string) typed {
	n, err := strconv.Atoi(params[0])
	if err != nil {
		return typed{check: notNull(pass), trial: true}
	}
	switch {
	case outer == "FixedString":
		return typed{check: notNull(checkFixed(n))}
	case outer == "Decimal" && len(params) == 2:
		if scale, err := strconv.Atoi(params[1]); err == nil {
			return typed{check: notNull(checkDecimal(n, scale))}
		}
	case outer == "DateTime64":
		return typed{check: notNull(checkDateTime64(n, z.named(params, 1)))}
	case outer == "Time64":
		return typed{check: notNull(checkTime(n))}
	}
	return typed{check: notNull(pass), trial: true}
}

// named is the zone in a type's parameters, or the server's.
func (z zoned) named(params []string, i int) *time.Location {
	if i < len(params) {
		if name, ok := chsql.Unquote(params[i]); ok {
			if zone, err := time.LoadLocation(name); err == nil {
				return zone
			}
		}
	}
	return z.zone
}

func notNull(check checker) checker {
	return func(v any) (any, error) {
		v, err := plain(v)
		switch {
		case err != nil:
			return nil, err
		case v == nil:
			return nil, errNull
		}
		return check(v)
	}
}

func pass(v any) (any, error) { return v, nil }

func (z zoned) nullable(inner typed, name string) typed {
	if strings.HasPrefix(name, "Time") {
		// The client's Time columns know no bare nil.
		inner.null = (*time.Duration)(nil)
	}
	check := inner.check
	inner.isNull = true
	inner.check = func(v any) (any, error) {
		v, err := plain(v)
		if err != nil || v == nil {
			return inner.null, err
		}
		return check(v)
	}
	return inner
}

// variant takes the first of its types that holds the value as it is; the
// client would take the first that can be made to.
func (z zoned) variant(names []string) typed {
	types := make([]typed, len(names))
	for i, name := range names {
		types[i] = z.of(name)
	}
	return typed{isNull: true, trial: true, check: func(v any) (any, error) {
		wanted := ""
		if given, ok := v.(client.Variant); ok {
			v, wanted = given.Any(), given.Type()
		}
		v, err := plain(v)
		if err != nil || v == nil {
			return nil, err
		}
		for i, t := range types {
			if wanted != "" && wanted != names[i] {
				continue
			}
			if checked, err := t.check(v); err == nil {
				return client.NewVariantWithType(checked, wire(names[i])), nil
			}
		}
		return nil, errType
	}}
}

// checkEnum takes names, and numbers that have one. The column gets numbers; see
// wire.
func checkEnum[T int8 | int16](params []string) checker {
	numbers, known := map[string]int64{}, map[int64]bool{}
	for _, param := range params {
		quoted, number, _ := cutLast(param, "=")
		name, _ := chsql.Unquote(strings.TrimSpace(quoted))
		if n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32); err == nil {
			numbers[name], known[n] = n, true
		}
	}
	return func(v any) (any, error) {
		n, u, isWhole := whole(v)
		ok := isWhole && u == 0 && known[n]
		if name, isText := text(v); isText {
			n, ok = numbers[name]
		}
		if !ok {
			return nil, fmt.Errorf("%w: not a name of the Enum", errType)
		}
		return T(n), nil
	}
}

// wire is a type of the same bytes that has no names in it: every Enum is the
// integer that it is, and a Tuple's members are told by their order. The client
// stumbles over names that are no plain words.
func wire(name string) string {
	outer, params, ok := parameters(name)
	switch {
	case outer == "Enum8":
		return "Int8"
	case outer == "Enum16":
		return "Int16"
	case !ok || !strings.Contains(name, "Enum") && !strings.Contains(name, "Tuple("):
		return name
	}
	for i, param := range params {
		if outer == "Tuple" {
			_, param = element(param)
		}
		params[i] = wire(param)
	}
	return outer + "(" + strings.Join(params, ", ") + ")"
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// parameters parts Name(a, b(c, d)) into Name and its parameters.
func parameters(name string) (outer string, params []string, ok bool) {
	open := strings.IndexByte(name, '(')
	if open < 0 || name[len(name)-1] != ')' {
		return name, nil, false
	}
	outer = name[:open]
	body := name[open+1 : len(name)-1]
	depth, from, quote := 0, 0, byte(0)
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '`' || c == '"':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			params = append(params, strings.TrimSpace(body[from:i]))
			from = i + 1
		}
	}
	return outer, append(params, strings.TrimSpace(body[from:])), true
}
