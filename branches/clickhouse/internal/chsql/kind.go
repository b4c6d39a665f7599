package chsql

import "slices"

// Kind is what a statement does.
type Kind int

// The kinds. In doubt a statement is a Change: it is then refused inside a
// meta-transaction, where it could not be taken back.
const (
	Empty   Kind = iota
	Read         // returns rows and changes nothing
	Insert       // any INSERT
	Session      // SET, USE: state of one connection
	Change       // everything else
)

var reads = []string{"select", "show", "describe", "desc", "exists", "explain", "check", "from", "with"}

// KindOf looks at the first keyword, behind comments and opening brackets. A
// WITH is what the first SELECT or INSERT behind it is.
func KindOf(text string) (kind Kind, keyword string) {
	l := lexer{text: text}
	t := l.next()
	for t.isByte('(') {
		t = l.next()
	}
	if t.kind == tokenEnd {
		return Empty, ""
	}
	switch {
	case t.is("insert"):
		return Insert, t.text
	case t.is("set"), t.is("use"):
		return Session, t.text
	case t.is("with"):
		return withKind(l, t.text)
	case t.is("explain"):
		return Read, t.text
	}
	if slices.ContainsFunc(reads, t.is) {
		return Read, t.text
	}
	return Change, t.text
}

// withKind: WITH … SELECT and WITH … INSERT … SELECT. A name in the WITH may be
// quoted, but not be one of these words.
func withKind(l lexer, keyword string) (Kind, string) {
	depth := 0
	for t := l.next(); t.kind != tokenEnd; t = l.next() {
		switch {
		case t.isByte('('):
			depth++
		case t.isByte(')'):
			depth--
		case depth > 0:
		case t.is("insert"):
			return Insert, t.text
		case t.is("select"):
			return Read, keyword
		}
	}
	return Read, keyword
}
