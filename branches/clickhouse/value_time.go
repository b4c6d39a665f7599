package clickhouse

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// What ClickHouse holds, and the client: its DateTime64 goes over nanoseconds
// since 1970, which end in 2262.
var (
	dateFirst   = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	dateLast    = time.Date(2149, 6, 6, 0, 0, 0, 0, time.UTC)
	date32First = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	date32Last  = time.Date(2299, 12, 31, 0, 0, 0, 0, time.UTC)
	time64First = date32First
	time64Last  = time.Date(2262, 4, 11, 23, 47, 16, 0, time.UTC)
)

const longestTime = 999*time.Hour + 59*time.Minute + 59*time.Second

// timeLayouts of a time as a string. One without a zone is in the column's.
var timeLayouts = []string{
	"2006-01-02 15:04:05.999999999", "2006-01-02",
	time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999 -07:00",
	"2006-01-02T15:04:05.999999999",
}

func instant(v any, zone *time.Location) (time.Time, error) {
	if t, ok := v.(time.Time); ok {
		return t, nil
	}
	s, ok := text(v)
	if !ok {
		return time.Time{}, errType
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("not a time")
}

// checkDate takes the calendar day in the value's own zone. It is handed over
// at midnight UTC: the client rounds days before 1970 towards it.
func checkDate(first, last time.Time) checker {
	return func(v any) (any, error) {
		t, err := instant(v, time.UTC)
		if err != nil {
			return nil, err
		}
		y, m, d := t.Date()
		day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		if day.Before(first) || day.After(last) {
			return nil, errRange
		}
		return day, nil
	}
}

func checkDateTime(zone *time.Location) checker {
	return func(v any) (any, error) {
		t, err := instant(v, zone)
		if err != nil {
			return nil, err
		}
		seconds := t.Unix()
		if seconds < 0 || seconds > math.MaxUint32 {
			return nil, errRange
		}
		return unlessSame(v, time.Unix(seconds, 0)), nil
	}
}

// isSecond is true of a time that a DateTime holds as it is.
func isSecond(v any) bool {
	t, ok := v.(time.Time)
	if !ok || t.Nanosecond() != 0 {
		return false
	}
	seconds := t.Unix()
	return seconds >= 0 && seconds <= math.MaxUint32
}

// unlessSame hands v back where it is the instant t already.
func unlessSame(v any, t time.Time) any {
	if given, ok := v.(time.Time); ok && given.Equal(t) {
		return v
	}
	return t
}

// tick is the duration of one unit of a column of that precision.
func tick(precision int) time.Duration {
	d := time.Second
	for range precision {
		d /= 10
	}
	return d
}

// checkDateTime64 cuts to the column's precision downwards, as the server does;
// the client's own division cuts towards 1970.
func checkDateTime64(precision int, zone *time.Location) checker {
	unit := tick(precision)
	return func(v any) (any, error) {
		t, err := instant(v, zone)
		if err != nil {
			return nil, err
		}
		cut := t.Truncate(unit)
		if cut.Before(time64First) || cut.After(time64Last) {
			return nil, errRange
		}
		return unlessSame(v, cut), nil
	}
}

// checkTime checks Time and Time64: a length of time of either sign.
func checkTime(precision int) checker {
	unit := tick(precision)
	return func(v any) (any, error) {
		d, ok := v.(time.Duration)
		if !ok {
			return nil, fmt.Errorf("%w: give a time.Duration", errType)
		}
		if d.Abs() > longestTime+time.Second-1 {
			return nil, errRange
		}
		return d.Truncate(unit), nil
	}
}
