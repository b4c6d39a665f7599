package icevalue

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

var (
	errDate       = errors.New("it is not a date such as 2006-01-02")
	errTime       = errors.New("it is not a time of day such as 15:04:05.999999")
	errTimestamp  = errors.New("it is not a timestamp such as 2006-01-02 15:04:05.999999")
	errNoZone     = errors.New("it names no time zone: end it with Z or an offset such as +00:00")
	errZone       = errors.New("it names a time zone, and the type has none")
	errFinerMicro = errors.New("it is finer than a microsecond")
	errFinerNano  = errors.New("it is finer than a nanosecond")
)

const secondsPerDay = 24 * 60 * 60

// daysOf is the date that t's own clock shows, in days since 1970-01-01.
func daysOf(t time.Time) (int32, error) {
	y, m, d := t.Date()
	days := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay // exact: midnight
	if days < math.MinInt32 || days > math.MaxInt32 {
		return 0, errRange
	}
	return int32(days), nil
}

// wallClock is what t's own clock shows, as if it stood in UTC.
func wallClock(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// microsOf rounds down to microseconds since 1970.
func microsOf(t time.Time) (int64, error) {
	// The seconds are compared as such: at the ends of the range UnixMicro wraps.
	const lastSecond, firstSecond = math.MaxInt64 / 1_000_000, math.MinInt64/1_000_000 - 1
	s, micros := t.Unix(), int64(t.Nanosecond()/1000)
	switch {
	case s > lastSecond || s < firstSecond,
		s == lastSecond && micros > math.MaxInt64%1_000_000,
		s == firstSecond && micros < 1_000_000+math.MinInt64%1_000_000:
		return 0, errRange
	case s == firstSecond:
		return (s+1)*1_000_000 + micros - 1_000_000, nil
	}
	return s*1_000_000 + micros, nil
}

// nanosOf is nanoseconds since 1970; the range is the years 1677 to 2262.
func nanosOf(t time.Time) (int64, error) {
	if t.Before(time.Unix(0, math.MinInt64)) || t.After(time.Unix(0, math.MaxInt64)) {
		return 0, errRange
	}
	return t.UnixNano(), nil
}

// ParseDate reads year-month-day; the year has at least four digits and may have a
// minus before it.
func ParseDate(s string) (time.Time, error) {
	t, rest, ok := cutDate(strings.TrimSpace(s))
	if !ok || rest != "" {
		return time.Time{}, errDate
	}
	return t, nil
}

func cutDate(s string) (t time.Time, rest string, ok bool) {
	sign := 1
	if strings.HasPrefix(s, "-") {
		sign, s = -1, s[1:]
	}
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n < 4 || n > 9 || len(s) < n+6 || s[n] != '-' || s[n+3] != '-' {
		return t, "", false
	}
	year, err := strconv.Atoi(s[:n])
	month, ok1 := twoDigits(s[n+1:])
	day, ok2 := twoDigits(s[n+4:])
	if err != nil || !ok1 || !ok2 {
		return t, "", false
	}
	t = time.Date(sign*year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	// time.Date turns February 30 into March 2.
	return t, s[n+6:], t.Day() == day && int(t.Month()) == month
}

func twoDigits(s string) (int, bool) {
	if len(s) < 2 || s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9' {
		return 0, false
	}
	return int(s[0]-'0')*10 + int(s[1]-'0'), true
}

// ParseTime reads hours:minutes[:seconds[.fraction]] as microseconds since midnight.
func ParseTime(s string) (int64, error) {
	d, rest, err := cutTime(strings.TrimSpace(s))
	switch {
	case err != nil:
		return 0, err
	case rest != "":
		return 0, errTime
	case d%time.Microsecond != 0:
		return 0, errFinerMicro
	}
	return d.Microseconds(), nil
}

func cutTime(s string) (d time.Duration, rest string, err error) {
	hour, ok := twoDigits(s)
	if !ok || hour > 23 || len(s) < 5 || s[2] != ':' {
		return 0, "", errTime
	}
	minute, ok := twoDigits(s[3:])
	if !ok || minute > 59 {
		return 0, "", errTime
	}
	d = time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
	s = s[5:]
	if !strings.HasPrefix(s, ":") {
		return d, s, nil
	}
	second, ok := twoDigits(s[1:])
	if !ok || second > 59 {
		return 0, "", errTime
	}
	d += time.Duration(second) * time.Second
	s = s[3:]
	if !strings.HasPrefix(s, ".") {
		return d, s, nil
	}
	s = s[1:]
	n := 0
	for unit := time.Second / 10; n < len(s) && s[n] >= '0' && s[n] <= '9'; n++ {
		if unit == 0 && s[n] != '0' {
			return 0, "", errFinerNano
		}
		d += time.Duration(s[n]-'0') * unit
		unit /= 10
	}
	if n == 0 {
		return 0, "", errTime
	}
	return d, s[n:], nil
}

// ParseTimestamp reads a date, a T or a space, a time of day, and, where zoned is
// true, Z or an offset. Without zone a date alone is its midnight; text with a
// zone is then refused and not cut, since its reader would see another hour.
func ParseTimestamp(s string, zoned bool) (time.Time, error) {
	day, rest, ok := cutDate(strings.TrimSpace(s))
	if !ok {
		return time.Time{}, errTimestamp
	}
	var clock time.Duration
	if rest != "" {
		if rest[0] != 'T' && rest[0] != 't' && rest[0] != ' ' {
			return time.Time{}, errTimestamp
		}
		var err error
		if clock, rest, err = cutTime(rest[1:]); err != nil {
			return time.Time{}, errTimestamp
		}
	}
	rest = strings.TrimSpace(rest)
	switch {
	case zoned && rest == "":
		return time.Time{}, errNoZone
	case rest == "":
		return day.Add(clock), nil
	}
	offset, ok := parseOffset(rest)
	switch {
	case !ok:
		return time.Time{}, errTimestamp
	case !zoned:
		return time.Time{}, errZone
	}
	return day.Add(clock - offset), nil
}

// parseOffset reads Z, UTC, ±hh, ±hh:mm and ±hhmm.
func parseOffset(s string) (time.Duration, bool) {
	if s == "Z" || s == "z" || strings.EqualFold(s, "UTC") {
		return 0, true
	}
	if s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hours, ok := twoDigits(s[1:])
	if !ok || hours > 15 {
		return 0, false
	}
	minutes := 0
	if rest := strings.TrimPrefix(s[3:], ":"); rest != "" || len(s) > 3 {
		if minutes, ok = twoDigits(rest); !ok || len(rest) != 2 || minutes > 59 {
			return 0, false
		}
	}
	d := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if s[0] == '-' {
		d = -d
	}
	return d, true
}

// appendClock prints microseconds since midnight, with a fraction where there is one.
func appendClock(b []byte, micros int64) []byte {
	return time.UnixMicro(micros).UTC().AppendFormat(b, "15:04:05.999999")
}
