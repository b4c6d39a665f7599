package chsql

import "strings"

// Constraint is a CHECK of a table.
type Constraint struct{ Name, Expression string }

// Constraints reads the CHECKs of a CREATE TABLE as the server writes it.
func Constraints(create string) []Constraint {
	if !strings.Contains(create, "CONSTRAINT") {
		return nil
	}
	l := lexer{text: create}
	var found []Constraint
	depth := 0
	start := true // of an element of the list of columns
	for t := l.next(); t.kind != tokenEnd; t = l.next() {
		switch {
		case t.isByte('('):
			depth++
			start = depth == 1
			continue
		case t.isByte(')'):
			if depth--; depth == 0 {
				return found
			}
		case t.isByte(',') && depth == 1:
			start = true
			continue
		case start && depth == 1 && t.is("constraint"):
			if c, ok := l.constraint(); ok {
				found = append(found, c)
			}
		}
		start = false
	}
	return found
}

// constraint reads name CHECK expression. It leaves the comma or bracket behind
// it to be read.
func (l *lexer) constraint() (Constraint, bool) {
	name, check := l.next(), l.next()
	if !check.is("check") {
		return Constraint{}, false
	}
	from := l.peek().from
	to, depth := from, 0
	for {
		t := l.peek()
		switch {
		case t.kind == tokenEnd:
			return Constraint{}, false
		case depth == 0 && (t.isByte(',') || t.isByte(')')):
			text := name.text
			if quoted, ok := Unquote(text); ok {
				text = quoted
			}
			return Constraint{text, l.text[from:to]}, true
		case t.isByte('('), t.isByte('['):
			depth++
		case t.isByte(')'), t.isByte(']'):
			depth--
		}
		l.next()
		to = t.to
	}
}
