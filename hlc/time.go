package hlc

import (
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	// counterBits is format: times are stored as bigint in journals and markers.
	counterBits = 16
	counterMask = 1<<counterBits - 1

	// maxMillis is format as well: 48 bits of milliseconds, of which the
	// highest stays 0 because it is the sign bit of a bigint.
	maxMillis = 1<<47 - 1

	// textLayout has a fixed width, so that texts of equal counters sort as times do.
	textLayout = "2006-01-02T15:04:05.000Z"
)

// Max is the latest time there is, at the end of the last millisecond below
// 2^47 (in the year 6429).
const Max Time = math.MaxInt64

// Time is one instant of a hybrid logical clock: milliseconds since the Unix
// epoch in the upper 48 bits, a counter in the lower 16. Milliseconds stay
// below 2^47, so a Time is never negative and fits a signed bigint of any
// store; times compare as the integers they are. The zero Time means "no
// time": no Clock ever returns it.
type Time int64

// FromMillis gives the first Time of a millisecond (counter 0). Milliseconds
// before 1970 count as 0, milliseconds from 2^47 on as 2^47-1.
func FromMillis(ms int64) Time {
	return Time(min(max(ms, 0), maxMillis) << counterBits)
}

// Millis is the physical part, in milliseconds since the Unix epoch.
func (t Time) Millis() int64 { return int64(t) >> counterBits }

// Counter is the logical part, which orders times of one millisecond.
func (t Time) Counter() uint16 { return uint16(t & counterMask) }

// IsZero reports whether t is "no time".
func (t Time) IsZero() bool { return t == 0 }

// String gives the UTC time with milliseconds, a slash and the counter:
// "2026-03-01T12:00:00.250Z/17". ParseTime reads it back. A negative Time,
// which no clock gives, is printed as its number and cannot be read back.
func (t Time) String() string {
	if t < 0 {
		return strconv.FormatInt(int64(t), 10)
	}
	return time.UnixMilli(t.Millis()).UTC().Format(textLayout) + "/" + strconv.Itoa(int(t.Counter()))
}

// ParseTime reads what String wrote, and nothing else: a text it accepts is
// the String of its result. Any other text is a *SyntaxError.
func ParseTime(text string) (Time, error) {
	instant, count, _ := strings.Cut(text, "/")
	at, err := time.Parse(textLayout, instant)
	if err != nil {
		return 0, &SyntaxError{Text: text}
	}
	counter, err := strconv.ParseUint(count, 10, counterBits)
	if err != nil {
		return 0, &SyntaxError{Text: text}
	}
	t := FromMillis(at.UnixMilli()) | Time(counter)
	// time.Parse is lenient ("," for ".", one digit of an hour) and FromMillis
	// saturates; two texts for one time would break lookups by text.
	if t.String() != text {
		return 0, &SyntaxError{Text: text}
	}
	return t, nil
}

// SyntaxError is the error of ParseTime; Text is what it was given.
type SyntaxError struct{ Text string }

// Error quotes the text and shows the form that was expected.
func (e *SyntaxError) Error() string {
	return "rhizodat: parse time: " + strconv.Quote(e.Text) + " is not of the form 2006-01-02T15:04:05.000Z/0"
}
