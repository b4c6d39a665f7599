package rhizodat

import (
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

// DSNError says what is wrong with a DSN or a [Config], where, and what to
// write instead. It never holds a value of the DSN, because any value may be a
// password in the wrong place: it holds names and texts of this package only.
//
// Every refusal of [ParseDSN], [Config.Validate] and [Config.FormatDSN] is a
// *DSNError. It is permanent: the same text is refused again.
type DSNError struct {
	// Key is the store or option at fault. Empty when there is none, or when
	// what stands there has not the form of a name and may be anything.
	Key string
	// Other is the second store where two are at fault together.
	Other string
	// Offset is the byte of the DSN, counted from 0, at which the fault (the
	// word at fault) begins; -1 when a Config was checked and not a text.
	Offset int
	// Reason is what is wrong.
	Reason string
	// Nearest is the known name that comes closest to an unknown one.
	Nearest string
	// Way is what to write instead. Empty where the reason says it.
	Way string

	noun noun
}

// noun is what Key names.
type noun int

const (
	nounNone noun = iota
	nounStore
	nounOption
)

// Error names the key, the reason and the way out in one line.
func (e *DSNError) Error() string {
	var b strings.Builder
	b.WriteString("rhizodat: ")
	if e.Offset < 0 {
		b.WriteString("check config: ")
	} else {
		fmt.Fprintf(&b, "parse DSN: byte %d: ", e.Offset)
	}
	if subject := e.subject(); subject != "" {
		b.WriteString(subject)
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	if e.Nearest != "" {
		fmt.Fprintf(&b, "; the nearest is %q", e.Nearest)
	}
	if e.Way != "" {
		b.WriteString("; ")
		b.WriteString(e.Way)
	}
	return b.String()
}

// Kind is permanent: trying again does not change a text.
func (e *DSNError) Kind() branches.Kind { return branches.Permanent }

func (e *DSNError) subject() string {
	switch {
	case e.Key == "":
		return ""
	case e.Other != "":
		return "stores " + e.Key + " and " + e.Other
	case e.noun == nounStore:
		return "store " + e.Key
	case e.noun == nounOption:
		return "option " + e.Key
	}
	return e.Key
}

// at gives a fault of a Config its place in the text that it was read from.
func (e *DSNError) at(offset int) *DSNError {
	e.Offset = offset
	return e
}

func storeFault(name, reason, way string) *DSNError {
	return &DSNError{Key: shown(name), noun: nounStore, Offset: -1, Reason: reason, Way: way}
}

func optionFault(key, reason string) *DSNError {
	return &DSNError{Key: shown(key), noun: nounOption, Offset: -1, Reason: reason}
}

// shown returns key if it may stand in an error. A URL pasted without a name
// before it puts its password in front of the first "=" of its parameters, so
// only what has the form of a name (of any case, so that PG= is told apart) is
// repeated.
func shown(key string) string {
	if key == "" || len(key) > 32 {
		return ""
	}
	for i, c := range []byte(key) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '_') {
			return ""
		}
	}
	return key
}
