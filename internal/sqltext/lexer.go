package sqltext

import "strings"

// blanks are PostgreSQL's (scan.l, space).
const blanks = " \t\n\r\f\v"

type tokenKind int

const (
	tokenEnd     tokenKind = iota
	tokenWord              // keyword or unquoted name
	tokenQuoted            // "name", U&"name", `name`
	tokenLiteral           // '…', E'…', U&'…'
	tokenDollar            // $tag$…$tag$
	tokenOther             // one byte of anything else
)

type token struct {
	kind    tokenKind
	text    string // as written, quotes and prefix included
	escaped bool   // E'…', U&'…', U&"…": the text may spell something else
}

func (t token) is(word string) bool {
	return t.kind == tokenWord && len(t.text) == len(word) && strings.EqualFold(t.text, word)
}

func (t token) isByte(c byte) bool { return t.kind == tokenOther && t.text[0] == c }

// ends reports whether t ends a statement.
func (t token) ends() bool { return t.kind == tokenEnd || t.isByte(';') }

// lexer walks a text token by token. It is a value: a copy looks ahead.
// What is unterminated reaches to the end of the text, where PostgreSQL refuses
// the whole of it.
type lexer struct {
	text string
	pos  int
}

func (l *lexer) next() token {
	l.skip()
	start := l.pos
	if start == len(l.text) {
		return token{kind: tokenEnd}
	}
	t := token{kind: tokenOther}
	switch c := l.text[start]; {
	case isWordStart(c):
		t = l.word()
	case c == '\'':
		t.kind, l.pos = tokenLiteral, skipQuoted(l.text, start)
	case c == '"', c == '`':
		// Cypher and ClickHouse quote names with backticks. To PostgreSQL one is an
		// operator, which no database has: the statement fails, and with it the rest.
		t.kind, l.pos = tokenQuoted, skipQuoted(l.text, start)
	case c == '$':
		l.dollar(&t)
	default:
		l.pos++
	}
	t.text = l.text[start:l.pos]
	return t
}

func (l *lexer) peek() token {
	ahead := *l
	return ahead.next()
}

// skip passes blanks and comments.
func (l *lexer) skip() {
	for {
		at := skipBlanks(l.text, l.pos)
		l.pos, _ = skipComment(l.text, at)
		if l.pos == at {
			return
		}
	}
}

// word reads a word, or the literal or quoted name that it is the prefix of.
func (l *lexer) word() token {
	start := l.pos
	for l.pos < len(l.text) && isWordByte(l.text[l.pos]) {
		l.pos++
	}
	rest := l.text[l.pos:]
	if l.pos-start == 1 {
		switch c := l.text[start] | 0x20; {
		case c == 'e' && strings.HasPrefix(rest, "'"):
			l.escapeLiteral()
			return token{kind: tokenLiteral, escaped: true}
		case c == 'u' && strings.HasPrefix(rest, "&'"):
			l.pos = skipQuoted(l.text, l.pos+1)
			return token{kind: tokenLiteral, escaped: true}
		case c == 'u' && strings.HasPrefix(rest, `&"`):
			l.pos = skipQuoted(l.text, l.pos+1)
			return token{kind: tokenQuoted, escaped: true}
		}
	}
	return token{kind: tokenWord}
}

// escapeLiteral passes E'…', whose backslashes hide quotes. A literal goes on
// after a line break (E'a'⏎'b\'c' is one), and the part that follows is read by
// the rules of the first; read as a plain literal it would end too early.
func (l *lexer) escapeLiteral() {
	for {
		l.pos = skipEscaped(l.text, l.pos)
		after := lexer{text: l.text, pos: l.pos}
		after.skip()
		if !strings.HasPrefix(after.text[after.pos:], "'") || !strings.ContainsAny(l.text[l.pos:after.pos], "\n\r") {
			return
		}
		l.pos = after.pos
	}
}

// dollar reads a dollar quote, a parameter ($1) or a lone dollar. Within a word
// a dollar is a letter of it, so it never gets here.
func (l *lexer) dollar(t *token) {
	rest := l.text[l.pos:]
	end := 1
	if len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9' {
		for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		l.pos += end
		return
	}
	for end < len(rest) && rest[end] != '$' && isWordByte(rest[end]) {
		end++
	}
	if end == len(rest) || rest[end] != '$' {
		l.pos++
		return
	}
	t.kind = tokenDollar
	tag := rest[:end+1]
	closing := strings.Index(rest[len(tag):], tag)
	if closing < 0 {
		l.pos = len(l.text)
		return
	}
	l.pos += closing + 2*len(tag)
}

// skipQuoted returns the end of what text[at], a quote, opens; a doubled quote
// stands for itself.
func skipQuoted(text string, at int) int {
	quote := text[at]
	for at++; ; at += 2 {
		i := strings.IndexByte(text[at:], quote)
		if i < 0 {
			return len(text)
		}
		at += i
		if at+1 == len(text) || text[at+1] != quote {
			return at + 1
		}
	}
}

// skipEscaped is skipQuoted for the quote of an E'…' literal.
func skipEscaped(text string, at int) int {
	for at++; at < len(text); at++ {
		switch {
		case text[at] == '\\':
			at++
		case text[at] == '\'' && at+1 < len(text) && text[at+1] == '\'':
			at++
		case text[at] == '\'':
			return at + 1
		}
	}
	return len(text)
}

// skipComment returns the end of the comment that begins at at, or at where none
// does. An unclosed /* reaches to the end; -- is closed by the end as well.
func skipComment(text string, at int) (end int, closed bool) {
	switch {
	case strings.HasPrefix(text[at:], "--"):
		end = at + 2
		for end < len(text) && text[end] != '\n' && text[end] != '\r' {
			end++
		}
		return end, true
	case !strings.HasPrefix(text[at:], "/*"):
		return at, false
	}
	depth := 1
	for end = at + 2; end+1 < len(text); {
		switch text[end : end+2] {
		case "/*":
			depth++
			end += 2
		case "*/":
			depth--
			end += 2
			if depth == 0 {
				return end, true
			}
		default:
			end++
		}
	}
	return len(text), false
}

func skipBlanks(text string, at int) int {
	for at < len(text) && isBlank(text[at]) {
		at++
	}
	return at
}

func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// isWordStart and isWordByte are scan.l's ident_start and ident_cont: every byte
// of a character outside ASCII is a letter.
func isWordStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
}

func isWordByte(c byte) bool {
	return isWordStart(c) || c >= '0' && c <= '9' || c == '$'
}
