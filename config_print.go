package rhizodat

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
)

// String writes the Config as a DSN with every secret masked. It is for people
// and logs; FormatDSN writes the text that ParseDSN reads.
func (c Config) String() string { return c.join(StoreConfig.String) }

// String is the store's URL with its secrets masked, and the types of what is
// no text.
func (s StoreConfig) String() string {
	text := quote(maskURL(s.URL))
	if s.Connector != nil {
		text += fmt.Sprintf("<%T>", s.Connector)
	}
	if s.Options != nil {
		text += fmt.Sprintf("<%T>", s.Options)
	}
	return text
}

// String is as that of StoreConfig.
func (j JournalConfig) String() string { return StoreConfig(j).String() }

// Format prints the masked text for every verb: %+v and %#v would otherwise
// walk the fields and show the URLs.
func (c Config) Format(f fmt.State, verb rune) { printMasked(f, verb, c.String()) }

// Format prints the masked text for every verb.
func (s StoreConfig) Format(f fmt.State, verb rune) { printMasked(f, verb, s.String()) }

// Format prints the masked text for every verb.
func (j JournalConfig) Format(f fmt.State, verb rune) { printMasked(f, verb, j.String()) }

// GoString is String, for whoever calls it without fmt.
func (c Config) GoString() string { return c.String() }

// GoString is String.
func (s StoreConfig) GoString() string { return s.String() }

// GoString is String.
func (j JournalConfig) GoString() string { return j.String() }

// LogValue is the masked text in log/slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// LogValue is the masked text in log/slog.
func (s StoreConfig) LogValue() slog.Value { return slog.StringValue(s.String()) }

// LogValue is the masked text in log/slog.
func (j JournalConfig) LogValue() slog.Value { return slog.StringValue(j.String()) }

// MarshalText is the masked text in encoding/json and its like.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// MarshalText is the masked text.
func (s StoreConfig) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText is the masked text.
func (j JournalConfig) MarshalText() ([]byte, error) { return []byte(j.String()), nil }

func printMasked(f fmt.State, verb rune, text string) {
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text) // fmt.State never fails, and Format has no error
}
