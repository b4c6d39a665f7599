package icesql

import (
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds how deep a statement may nest: parentheses, NOT, types, chains
// of arithmetic. A hostile text must end in an error, not in a stack overflow,
// which no recover can stop.
const maxDepth = 200

// Parse reads one statement; a semicolon may end it. The error is a *SyntaxError.
func Parse(text string) (Statement, error) {
	p := &parser{text: text, lex: lexer{text: text}}
	s, err := p.parse()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// parser is one token ahead of what it has taken. It stops at the first error by
// panicking with its *SyntaxError, which parse recovers: every rule of the
// grammar then reads like the grammar.
type parser struct {
	text  string
	lex   lexer
	tok   token
	tried []string // what would have fitted at tok
	depth int

	marks    int  // how many ? were seen
	ordinals bool // a $n was seen
	names    bool // a :name was seen
}

func (p *parser) parse() (s Statement, err *SyntaxError) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *SyntaxError:
			s, err = nil, r
		default: // a bug of ours, which FuzzParse looks for; as an error it would have no trace
			panic(r)
		}
	}()
	p.advance()
	s = p.statement()
	p.accept(";")
	if p.tok.kind != tokEnd {
		p.try("the end of the statement")
		p.unexpected()
	}
	return s, nil
}

func (p *parser) statement() Statement {
	switch {
	case p.word("select"):
		return p.selectStatement()
	case p.word("insert"):
		return p.insertStatement()
	case p.word("update"):
		return p.updateStatement()
	case p.word("delete"):
		return p.deleteStatement()
	case p.word("create"):
		return p.createStatement()
	case p.word("drop"):
		return p.dropStatement()
	case p.word("show"):
		return p.showStatement()
	case p.word("describe"), p.word("desc"):
		p.word("table")
		return &Describe{Table: p.name()}
	}
	p.unexpected()
	return nil
}

func (p *parser) advance() {
	t, err := p.lex.next()
	if err != nil {
		panic(err)
	}
	p.tok, p.tried = t, p.tried[:0]
}

// try remembers what could stand at the current token, for the error.
func (p *parser) try(what string) {
	if !slices.Contains(p.tried, what) {
		p.tried = append(p.tried, what)
	}
}

func (p *parser) unexpected() {
	e := syntaxError(p.text, p.tok.start)
	if p.tok.kind != tokEnd {
		e.Near = quoteNear(shorten(p.text[p.tok.start:p.tok.end]))
	}
	e.Expected = slices.Clone(p.tried)
	panic(e)
}

// refuse ends the parse with a cause at the current token.
func (p *parser) refuse(cause string) { p.refuseAt(p.tok.start, cause) }

func (p *parser) refuseAt(at int, cause string) {
	e := syntaxError(p.text, at)
	e.Cause = cause
	panic(e)
}

// accept takes a sign where it stands.
func (p *parser) accept(sign string) bool {
	if p.tok.kind == tokSign && p.tok.text == sign {
		p.advance()
		return true
	}
	p.try(sign)
	return false
}

func (p *parser) expect(sign string) {
	if !p.accept(sign) {
		p.unexpected()
	}
}

// word takes a keyword where it stands.
func (p *parser) word(w string) bool {
	if p.isWord(w) {
		p.advance()
		return true
	}
	p.try(strings.ToUpper(w))
	return false
}

func (p *parser) isWord(w string) bool { return p.tok.kind == tokWord && p.tok.text == w }

func (p *parser) expectWord(w string) {
	if !p.word(w) {
		p.unexpected()
	}
}

// words takes a keyword that opens a phrase, and then demands the rest of it.
func (p *parser) words(first string, rest ...string) bool {
	if !p.word(first) {
		return false
	}
	for _, w := range rest {
		p.expectWord(w)
	}
	return true
}

func (p *parser) isIdent() bool {
	return p.tok.kind == tokQuoted || p.tok.kind == tokWord && !reserved[p.tok.text]
}

func (p *parser) ident(what string) string {
	if !p.isIdent() {
		p.try(what)
		if p.tok.kind == tokWord {
			p.refuse("the reserved word " + strings.ToUpper(p.tok.text) + " cannot be " + what + " unless it is quoted")
		}
		p.unexpected()
	}
	s := p.tok.text
	p.advance()
	return s
}

// path reads identifiers joined by points.
func (p *parser) path(what string) []string {
	parts := []string{p.ident(what)}
	for p.accept(".") {
		parts = append(parts, p.label())
	}
	return parts
}

// label reads a name that follows a point, where no keyword can stand.
func (p *parser) label() string {
	if p.tok.kind != tokWord {
		return p.ident("a name")
	}
	s := p.tok.text
	p.advance()
	return s
}

func (p *parser) name() Name {
	parts := p.path("a table")
	n := len(parts) - 1
	return Name{Namespace: slices.Clip(nilIfEmpty(parts[:n])), Table: parts[n]}
}

func nilIfEmpty(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	return s
}

func (p *parser) stringText(what string) string {
	if p.tok.kind != tokString {
		p.try(what)
		p.unexpected()
	}
	s := p.tok.text
	p.advance()
	return s
}

func (p *parser) integer(what string, low, high int) int {
	at := p.tok.start
	if p.tok.kind != tokNumber {
		p.try(what)
		p.unexpected()
	}
	n, err := strconv.Atoi(p.tok.text)
	if err != nil || n < low || n > high {
		p.refuseAt(at, what+" must be a whole number from "+strconv.Itoa(low)+" to "+strconv.Itoa(high))
	}
	p.advance()
	return n
}

// deeper counts one level of nesting until the func that it returns is called.
func (p *parser) deeper() func() {
	p.depth++
	if p.depth > maxDepth {
		p.refuse("the statement nests deeper than " + strconv.Itoa(maxDepth) + " levels")
	}
	return func() { p.depth-- }
}

// list reads one or more of f between parentheses.
func list[T any](p *parser, f func() T) []T {
	p.expect("(")
	out := commas(p, f)
	p.expect(")")
	return out
}

func commas[T any](p *parser, f func() T) []T {
	out := []T{f()}
	for p.accept(",") {
		out = append(out, f())
	}
	return out
}
