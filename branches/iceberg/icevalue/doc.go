// Package icevalue carries values between database/sql and the Arrow columns of
// Iceberg tables, both ways and exactly: what a column cannot hold is an error
// that names column, type and value, and never a rounded or a cut value.
//
// An Appender is made once for a column and then takes values of the Go types
// that database/sql users pass; a Reader gives them back:
//
//	Iceberg                     Append takes                                  Value gives
//	boolean                     bool, "true", "false"                         bool
//	int, long                   ints, whole floats, numbers as text           int64
//	float, double               floats, ints, text, "NaN", "Infinity"         float64
//	decimal(p,s)                text, ints, floats, *big.Int, *big.Rat        string, all s digits
//	date                        time.Time (its own date), "2006-01-02"        time.Time, midnight UTC
//	time                        "15:04:05.999999", time.Time, time.Duration   string
//	timestamp, timestamp_ns     time.Time (its own clock), text without zone  time.Time, that clock in UTC
//	timestamptz, timestamptz_ns time.Time (the instant), text with zone       time.Time in UTC
//	string                      string, []byte of UTF-8                       string
//	uuid                        uuid.UUID, [16]byte, text, 16 bytes           string
//	fixed(n), binary            []byte, string (its bytes)                    []byte
//	struct, list, map           maps and slices, JSON text                    string, JSON
//
// Beside these, Append takes pointers, driver.Valuer, the sql.Null types and types
// whose kind is one of the above. A float becomes a decimal by its shortest text,
// 0.1 and not 0.1000000000000000055. A time.Time finer than its column is rounded
// down, since time.Now is finer than a microsecond everywhere; text that is finer
// is refused, since somebody wrote the digits.
//
// JSON of nested values follows Iceberg's single-value form (specification,
// appendix D) for what is inside: decimals, dates, times and UUIDs are strings,
// binary and fixed are hexadecimal strings, a timestamptz ends in +00:00. A struct
// is an object by field name, a map is an object when its key is no nested type,
// else a list of [key, value]; both forms are taken.
package icevalue
