package icesql

import (
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

// SyntaxError says where a text leaves the grammar and what could have stood there.
type SyntaxError struct {
	Line, Column int      // both from 1; Column counts characters
	Offset       int      // from 0, in bytes
	Near         string   // the text from Offset on, shortened; empty at the end of the text
	Expected     []string // what could have stood there; empty where Cause says it
	Cause        string   // what is wrong, where it is not the next word
}

func (e *SyntaxError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rhizodat: parse statement: line %d, column %d: ", e.Line, e.Column)
	switch {
	case e.Cause != "":
		b.WriteString(e.Cause)
	case e.Near == "":
		b.WriteString("unexpected end of the statement")
	default:
		b.WriteString("unexpected " + e.Near)
	}
	if e.Cause != "" && e.Near != "" {
		b.WriteString(" near " + e.Near)
	}
	switch len(e.Expected) {
	case 0:
	case 1:
		b.WriteString("; expected " + e.Expected[0])
	default:
		b.WriteString("; expected one of " + strings.Join(e.Expected, ", "))
	}
	return b.String()
}

// Kind of a text outside the grammar.
func (e *SyntaxError) Kind() branches.Kind { return branches.Permanent }

// BindError is a statement that is in the grammar but does not fit the table or
// its arguments. It is PERMANENT.
type BindError struct {
	Column string // empty where no column is at fault
	Type   string // of the column
	Value  string // shortened; empty where no value is at fault
	Cause  string
	Err    error // of a conversion; may be nil
}

func (e *BindError) Error() string {
	var b strings.Builder
	b.WriteString("rhizodat: bind statement: ")
	if e.Column != "" {
		b.WriteString("column " + e.Column)
		if e.Type != "" {
			b.WriteString(" of type " + e.Type)
		}
		b.WriteString(": ")
	}
	if e.Value != "" {
		b.WriteString("value " + e.Value + ": ")
	}
	b.WriteString(e.Cause)
	if e.Err != nil {
		if e.Cause != "" {
			b.WriteString(": ")
		}
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

func (e *BindError) Unwrap() error { return e.Err }

// Kind of a statement that does not fit.
func (e *BindError) Kind() branches.Kind { return branches.Permanent }

// EvalError is a value that a statement computed and nothing can hold: an
// overflow, a division by zero. It is PERMANENT.
type EvalError struct {
	Column string // or the aggregate's text
	Cause  string
}

func (e *EvalError) Error() string {
	return "rhizodat: evaluate " + e.Column + ": " + e.Cause
}

// Kind of a value that cannot be.
func (e *EvalError) Kind() branches.Kind { return branches.Permanent }

// shorten bounds a text for an error: enough to find it, not all of it.
func shorten(s string) string {
	const most = 48
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
