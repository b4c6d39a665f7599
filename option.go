package rhizodat

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// option is one row of the table of options, which parsing, formatting,
// checking, the defaults and the manual are all driven by.
type option struct {
	key      string
	values   string // what may stand behind the "=", for the manual
	fallback string // the default as text; empty for none
	about    string
	// get writes the field as text; empty for the field's zero value.
	get func(*Config) string
	// set reads text into the field, or says why it cannot: in words that
	// never repeat the text.
	set func(*Config, string) (reason string)
}

func findOption(key string) (option, bool) {
	i := slices.IndexFunc(options, func(o option) bool { return o.key == key })
	if i < 0 {
		return option{}, false
	}
	return options[i], true
}

func optionKeys() []string {
	keys := make([]string, len(options))
	for i, o := range options {
		keys[i] = o.key
	}
	return keys
}

func textOption(key, values, fallback, about string, field func(*Config) *string, reason func(string) string) option {
	return option{
		key: key, values: values, fallback: fallback, about: about,
		get: func(c *Config) string { return *field(c) },
		set: func(c *Config, text string) string {
			if r := reason(text); r != "" {
				return r
			}
			*field(c) = text
			return ""
		},
	}
}

// durationOption reads Go's syntax. Nothing shorter than a millisecond is
// taken: a store counts its timeouts in them, and 0 is off there.
func durationOption(key, fallback, about string, field func(*Config) *time.Duration) option {
	return option{
		key: key, values: "duration", fallback: fallback, about: about,
		get: func(c *Config) string {
			if *field(c) == 0 {
				return ""
			}
			return formatDuration(*field(c))
		},
		set: func(c *Config, text string) string {
			d, err := time.ParseDuration(text)
			if err != nil {
				return "not a duration, as 20s or 1m30s"
			}
			if d < time.Millisecond {
				return "a duration of less than 1ms"
			}
			*field(c) = d
			return ""
		},
	}
}

// orOff lets "0" be off, which the field holds as a negative, since its zero
// value is the default.
func orOff(o option, field func(*Config) *time.Duration) option {
	get, set := o.get, o.set
	o.values += ", 0 is off"
	o.get = func(c *Config) string {
		if *field(c) < 0 {
			return "0"
		}
		return get(c)
	}
	o.set = func(c *Config, text string) string {
		if d, err := time.ParseDuration(text); err == nil && d == 0 {
			*field(c) = NoLockTimeout
			return ""
		}
		reason := set(c, text)
		if reason == "" && *field(c) > math.MaxInt32*time.Millisecond {
			return "a duration of more than 596h, which PostgreSQL does not take"
		}
		return reason
	}
	return o
}

func sizeOption(key, fallback, about string, least int64, field func(*Config) *int64) option {
	return option{
		key: key, values: "size", fallback: fallback, about: about,
		get: func(c *Config) string {
			if *field(c) == 0 {
				return ""
			}
			return formatSize(*field(c))
		},
		set: func(c *Config, text string) string {
			n, ok := parseSize(text)
			if !ok {
				return "not a size, as 65536, 512KiB, 64MiB or 1GiB"
			}
			if n < least {
				return "a size of 0"
			}
			*field(c) = n
			return ""
		},
	}
}

func countOption(key, fallback, about string, field func(*Config) *int) option {
	return option{
		key: key, values: "number", fallback: fallback, about: about,
		get: func(c *Config) string {
			if *field(c) == 0 {
				return ""
			}
			return strconv.Itoa(*field(c))
		},
		set: func(c *Config, text string) string {
			n, err := strconv.ParseInt(text, 10, 32)
			if err != nil || n < 1 {
				return "not a number of 1 or more"
			}
			*field(c) = int(n)
			return ""
		},
	}
}

// wordOption takes one of words, of which the first is the default.
func wordOption[T ~uint8](key, about string, words []string, field func(*Config) *T) option {
	return option{
		key: key, values: strings.Join(words, " | "), fallback: words[0], about: about,
		get: func(c *Config) string {
			if *field(c) == 0 {
				return ""
			}
			return wordOf(words, *field(c))
		},
		set: func(c *Config, text string) string {
			i := slices.Index(words, text)
			if i < 0 {
				return "neither " + strings.Join(words, " nor ")
			}
			*field(c) = T(i)
			return ""
		},
	}
}

func wordOf[T ~uint8](words []string, v T) string {
	if int(v) < len(words) {
		return words[v]
	}
	return "value " + strconv.Itoa(int(v))
}

// formatDuration writes 24h and not 24h0m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// parseSize reads a whole number of bytes or of a binary unit. MB and GB are
// not taken: half of the world means 1000 by them.
func parseSize(text string) (int64, bool) {
	unit := int64(1)
	for _, u := range sizeUnits {
		if digits, found := strings.CutSuffix(text, u.suffix); found {
			text, unit = digits, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return 0, false
	}
	return int64(n) * unit, true
}

func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}
