package icevalue

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/rhizodat/rhizodat-go/branches"
)

// ValueError is a value that its column cannot hold. It is PERMANENT.
type ValueError struct {
	Column, Type string
	Value        string // as text, shortened
	Err          error
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("rhizodat: write column %s of type %s: value %s: %s", e.Column, e.Type, e.Value, e.Err)
}

func (e *ValueError) Unwrap() error { return e.Err }

// Kind of a refused value.
func (e *ValueError) Kind() branches.Kind { return branches.Permanent }

// ErrRequired is inside the ValueError of a NULL in a required column.
var ErrRequired = errors.New("the column is NOT NULL")

// Shown is a value as errors print it: enough to find it, not all of it.
func Shown(v any) string {
	const most = 64
	var text string
	switch x := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		if len(x) > most/2 {
			return fmt.Sprintf("%x… (%d bytes)", x[:most/2], len(x))
		}
		return fmt.Sprintf("%x", x)
	case string:
		text = x
	default:
		text = fmt.Sprintf("%v", v)
	}
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
