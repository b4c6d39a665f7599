package hlc_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/hlc"
)

func TestTimeParts(t *testing.T) {
	for _, row := range []struct {
		name    string
		time    hlc.Time
		millis  int64
		counter uint16
		text    string
	}{
		{"zero", 0, 0, 0, "1970-01-01T00:00:00.000Z/0"},
		{"counter alone", 1, 0, 1, "1970-01-01T00:00:00.000Z/1"},
		{"full counter", 0xFFFF, 0, 0xFFFF, "1970-01-01T00:00:00.000Z/65535"},
		{"carried", 0x10000, 1, 0, "1970-01-01T00:00:00.001Z/0"},
		{"a day in 2026", hlc.FromMillis(1772366400250) + 17, 1772366400250, 17, "2026-03-01T12:00:00.250Z/17"},
		{"before 1970", hlc.FromMillis(-5), 0, 0, "1970-01-01T00:00:00.000Z/0"},
		{"last millisecond", hlc.FromMillis(1<<47 - 1), 1<<47 - 1, 0, "6429-10-17T02:45:55.327Z/0"},
		{"past the last millisecond", hlc.FromMillis(1 << 47), 1<<47 - 1, 0, "6429-10-17T02:45:55.327Z/0"},
		{"greatest int64 of milliseconds", hlc.FromMillis(math.MaxInt64), 1<<47 - 1, 0, "6429-10-17T02:45:55.327Z/0"},
		{"Max", hlc.Max, 1<<47 - 1, 0xFFFF, "6429-10-17T02:45:55.327Z/65535"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := row.time.Millis(); got != row.millis {
				t.Errorf("Millis() = %d, want %d", got, row.millis)
			}
			if got := row.time.Counter(); got != row.counter {
				t.Errorf("Counter() = %d, want %d", got, row.counter)
			}
			if got := row.time.String(); got != row.text {
				t.Errorf("String() = %q, want %q", got, row.text)
			}
			if got := row.time.IsZero(); got != (row.time == 0) {
				t.Errorf("IsZero() = %v", got)
			}
			back, err := hlc.ParseTime(row.text)
			if err != nil || back != row.time {
				t.Errorf("ParseTime(%q) = %d, %v, want %d", row.text, back, err, row.time)
			}
		})
	}
}

func TestTimesCompareAsMillisThenCounter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		millis := rapid.Int64Range(0, 1<<47-1)
		a := hlc.FromMillis(millis.Draw(t, "a")) + hlc.Time(rapid.Uint16().Draw(t, "a counter"))
		b := hlc.FromMillis(millis.Draw(t, "b")) + hlc.Time(rapid.Uint16().Draw(t, "b counter"))
		want := a.Millis() < b.Millis() || a.Millis() == b.Millis() && a.Counter() < b.Counter()
		if got := a < b; got != want {
			t.Fatalf("%v < %v = %v, want %v", a, b, got, want)
		}
		if a < 0 || b < 0 {
			t.Fatalf("a time is negative: %d, %d", a, b)
		}
	})
}

func TestParseTimeRefuses(t *testing.T) {
	for _, text := range []string{
		"",
		"17",
		"2026-03-01T12:00:00.250Z",          // no counter
		"2026-03-01T12:00:00.250Z/",         // empty counter
		"2026-03-01T12:00:00.250Z/017",      // second text for /17
		"2026-03-01T12:00:00.250Z/+17",      // likewise
		"2026-03-01T12:00:00.250Z/65536",    // one more than 16 bits
		"2026-03-01T12:00:00.250Z/-1",       //
		"2026-03-01T12:00:00.250Z/1/2",      //
		"2026-03-01T12:00:00.250Z/17 ",      // trailing blank
		"2026-03-01T12:00:00,250Z/17",       // time.Parse takes the comma
		"2026-03-01T12:00:00.25Z/17",        //
		"2026-03-01T12:00:00Z/17",           //
		"2026-03-01T12:00:00.250+01:00/17",  // not UTC
		"2026-02-30T12:00:00.250Z/17",       // no such day
		"1969-12-31T23:59:59.999Z/0",        // before the epoch
		"6429-10-17T02:45:55.328Z/0",        // 2^47 ms
		"-5",                                // String of a Time no clock makes
		"99999999999-01-01T00:00:00.000Z/0", //
	} {
		got, err := hlc.ParseTime(text)
		syntax, ok := errors.AsType[*hlc.SyntaxError](err)
		if !ok || syntax.Text != text || got != 0 {
			t.Errorf("ParseTime(%q) = %v, %v, want 0 and a SyntaxError with that text", text, got, err)
			continue
		}
		if !strings.HasPrefix(err.Error(), "rhizodat: parse time: ") {
			t.Errorf("ParseTime(%q): error text %q", text, err)
		}
	}
	if got := hlc.Time(-5).String(); got != "-5" {
		t.Errorf("Time(-5).String() = %q", got)
	}
}

func FuzzTime(f *testing.F) {
	f.Add(int64(0), "1970-01-01T00:00:00.000Z/0")
	f.Add(int64(hlc.Max), "6429-10-17T02:45:55.327Z/65535")
	f.Add(int64(hlc.FromMillis(1772366400250)), "2026-03-01T12:00:00.250Z/17")
	f.Add(int64(-1), "2026-03-01T12:00:00,250Z/017")
	f.Add(time.Hour.Milliseconds(), "2026-03-01T1:00:00.250Z/0")
	f.Fuzz(func(t *testing.T, number int64, text string) {
		want := hlc.Time(number)
		got, err := hlc.ParseTime(want.String())
		if readable := want >= 0; readable != (err == nil) || readable && got != want {
			t.Errorf("ParseTime(String(%d)) = %d, %v", want, got, err)
		}
		parsed, err := hlc.ParseTime(text)
		if err == nil && (parsed.String() != text || parsed < 0) {
			t.Errorf("ParseTime(%q) = %d, whose text is %q", text, parsed, parsed)
		}
	})
}
