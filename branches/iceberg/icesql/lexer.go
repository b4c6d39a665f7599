package icesql

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokWord             // unquoted, folded to lower case
	tokQuoted           // "identifier"
	tokString           // 'text'
	tokBytes            // X'00ff'
	tokNumber
	tokPlace // $n, ?, :name, @name
	tokSign  // an operator or punctuation
)

type token struct {
	kind  tokenKind
	text  string // unquoted; of tokPlace with its first character
	start int    // in bytes
	end   int
}

// lexer cuts a text into tokens. It never panics: what it cannot read is an error
// with its position.
type lexer struct {
	text  string
	pos   int
	colon bool // a colon is a sign, as in struct<a: int>, and opens no parameter
}

// signs of two characters, tried before those of one.
var longSigns = [...]string{"<=", ">=", "<>", "!=", "||"}

const signs = "()<>=,.+-*/;"

func (l *lexer) next() (token, *SyntaxError) {
	if err := l.skipSpace(); err != nil {
		return token{}, err
	}
	start := l.pos
	if start >= len(l.text) {
		return token{kind: tokEnd, start: start, end: start}, nil
	}
	c := l.text[start]
	switch {
	case (c == 'x' || c == 'X') && strings.HasPrefix(l.text[start+1:], "'"):
		l.pos++
		return l.bytes(start)
	case c == '\'':
		return l.quoted(start, '\'', tokString, "string")
	case c == '"':
		return l.quoted(start, '"', tokQuoted, "quoted identifier")
	case isDigit(c) || c == '.' && start+1 < len(l.text) && isDigit(l.text[start+1]):
		return l.number(start)
	case c == '?':
		l.pos++
		return l.token(tokPlace, start), nil
	case c == ':' && l.colon:
		l.pos++
		return l.token(tokSign, start), nil
	case c == '$' || c == ':' || c == '@':
		return l.place(start)
	}
	if r, n := utf8.DecodeRuneInString(l.text[start:]); r == '_' || unicode.IsLetter(r) {
		l.pos += n
		return l.word(start), nil
	}
	return l.sign(start)
}

func (l *lexer) token(kind tokenKind, start int) token {
	return token{kind: kind, text: l.text[start:l.pos], start: start, end: l.pos}
}

func (l *lexer) word(start int) token {
	for l.pos < len(l.text) {
		r, n := utf8.DecodeRuneInString(l.text[l.pos:])
		if r != '_' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		l.pos += n
	}
	t := l.token(tokWord, start)
	t.text = strings.ToLower(t.text)
	return t
}

func (l *lexer) sign(start int) (token, *SyntaxError) {
	for _, s := range longSigns {
		if strings.HasPrefix(l.text[start:], s) {
			l.pos += len(s)
			t := l.token(tokSign, start)
			if t.text == "!=" {
				t.text = "<>"
			}
			return t, nil
		}
	}
	if strings.IndexByte(signs, l.text[start]) < 0 {
		return token{}, l.fail(start, "a character that no statement has")
	}
	l.pos++
	return l.token(tokSign, start), nil
}

// quoted reads up to the closing quote; a doubled quote stands for one.
func (l *lexer) quoted(start int, quote byte, kind tokenKind, what string) (token, *SyntaxError) {
	var b strings.Builder
	l.pos++
	for {
		n := strings.IndexByte(l.text[l.pos:], quote)
		if n < 0 {
			return token{}, l.fail(start, "a "+what+" that is not closed")
		}
		b.WriteString(l.text[l.pos : l.pos+n])
		l.pos += n + 1
		if l.pos >= len(l.text) || l.text[l.pos] != quote {
			break
		}
		b.WriteByte(quote)
		l.pos++
	}
	t := token{kind: kind, text: b.String(), start: start, end: l.pos}
	if !utf8.ValidString(t.text) {
		return token{}, l.fail(start, "a "+what+" that is not UTF-8 (bytes are written X'…')")
	}
	if kind == tokQuoted && t.text == "" {
		return token{}, l.fail(start, "an empty identifier")
	}
	return t, nil
}

func (l *lexer) bytes(start int) (token, *SyntaxError) {
	t, err := l.quoted(start+1, '\'', tokBytes, "binary string")
	if err != nil {
		return token{}, err
	}
	raw, bad := hex.DecodeString(t.text)
	if bad != nil {
		return token{}, l.fail(start, "a binary string that is not pairs of hexadecimal digits")
	}
	t.text, t.start = string(raw), start
	return t, nil
}

func (l *lexer) number(start int) (token, *SyntaxError) {
	l.digits()
	if l.at('.') {
		l.pos++
		l.digits()
	}
	if l.at('e') || l.at('E') {
		mark := l.pos
		l.pos++
		if l.at('+') || l.at('-') {
			l.pos++
		}
		if l.pos >= len(l.text) || !isDigit(l.text[l.pos]) {
			return token{}, l.fail(mark, "an exponent without digits")
		}
		l.digits()
	}
	if l.pos < len(l.text) {
		if r, _ := utf8.DecodeRuneInString(l.text[l.pos:]); r == '_' || r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return token{}, l.fail(start, "a number that runs into other text")
		}
	}
	return l.token(tokNumber, start), nil
}

// place reads $n, :name or @name.
func (l *lexer) place(start int) (token, *SyntaxError) {
	l.pos++
	if l.text[start] == '$' {
		l.digits()
		if l.pos == start+1 || l.pos-start > 6 || l.text[start+1] == '0' {
			return token{}, l.fail(start, "a parameter that is not $1 to $99999")
		}
		return l.token(tokPlace, start), nil
	}
	for l.pos < len(l.text) && (l.text[l.pos] == '_' || isDigit(l.text[l.pos]) || isLetter(l.text[l.pos])) {
		l.pos++
	}
	if l.pos == start+1 || isDigit(l.text[start+1]) {
		return token{}, l.fail(start, "a parameter without a name")
	}
	return l.token(tokPlace, start), nil
}

// skipSpace passes white space and comments; comments of the second kind nest,
// as in SQL.
func (l *lexer) skipSpace() *SyntaxError {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.HasPrefix(rest, "--"):
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				l.pos += n + 1
			} else {
				l.pos = len(l.text)
			}
		case strings.HasPrefix(rest, "/*"):
			if err := l.skipComment(); err != nil {
				return err
			}
		default:
			r, n := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) {
				return nil
			}
			l.pos += n
		}
	}
	return nil
}

func (l *lexer) skipComment() *SyntaxError {
	start, depth := l.pos, 0
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.HasPrefix(rest, "/*"):
			depth++
			l.pos += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			l.pos += 2
			if depth == 0 {
				return nil
			}
		default:
			l.pos++
		}
	}
	return l.fail(start, "a comment that is not closed")
}

func (l *lexer) digits() {
	for l.pos < len(l.text) && isDigit(l.text[l.pos]) {
		l.pos++
	}
}

func (l *lexer) at(c byte) bool { return l.pos < len(l.text) && l.text[l.pos] == c }

func (l *lexer) fail(at int, cause string) *SyntaxError {
	e := syntaxError(l.text, at)
	e.Cause = cause
	return e
}

// syntaxError says where at is.
func syntaxError(text string, at int) *SyntaxError {
	e := &SyntaxError{Line: 1, Column: 1, Offset: at}
	for _, r := range text[:at] {
		e.Column++
		if r == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	if near, _, _ := strings.Cut(text[at:], "\n"); at < len(text) {
		e.Near = quoteNear(shorten(near))
	}
	return e
}

func quoteNear(s string) string { return "“" + strings.ToValidUTF8(s, "�") + "”" }

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// plainIdent reports whether an unquoted s is read as the identifier s.
func plainIdent(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	return s != ""
}

// reserved words are no identifiers unless they are quoted.
var reserved = map[string]bool{
	"all": true, "and": true, "as": true, "asc": true, "between": true, "by": true, "case": true, "create": true,
	"delete": true, "desc": true, "distinct": true, "drop": true, "else": true, "end": true, "except": true,
	"false": true, "for": true, "from": true, "group": true, "having": true, "in": true, "insert": true,
	"intersect": true, "into": true, "is": true, "join": true, "like": true, "limit": true, "not": true,
	"null": true, "offset": true, "on": true, "or": true, "order": true, "select": true, "set": true,
	"table": true, "then": true, "true": true, "union": true, "update": true, "using": true, "values": true,
	"when": true, "where": true, "with": true,
}
