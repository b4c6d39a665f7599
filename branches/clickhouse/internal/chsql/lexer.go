// Package chsql reads what a buffered branch must know of a ClickHouse
// statement: what it does, and for INSERT … VALUES the table, the columns and
// the cells. It reads as ClickHouse's own lexer does: '…' and names in “ or ""
// with backslash escapes and doubled quotes, $tag$…$tag$, --, # and nested /* */.
// It is no parser: the expression of a cell is passed on as it was written.
package chsql

import "strings"

type tokenKind int

const (
	tokenEnd     tokenKind = iota
	tokenWord              // keyword or unquoted name
	tokenQuoted            // `name`, "name"
	tokenString            // '…'
	tokenHeredoc           // $tag$…$tag$
	tokenNumber            // digits, and what may follow them
	tokenParam             // ?, $1, @name
	tokenOther             // one byte of anything else
)

type token struct {
	kind     tokenKind
	text     string // as written
	from, to int    // in the text
}

func (t token) is(word string) bool {
	return t.kind == tokenWord && strings.EqualFold(t.text, word)
}

func (t token) isByte(c byte) bool { return t.kind == tokenOther && t.text[0] == c }

// lexer walks a text token by token. It is a value: a copy looks ahead. What is
// unterminated reaches to the end of the text, where the server refuses it.
type lexer struct {
	text string
	pos  int
}

func (l *lexer) peek() token {
	ahead := *l
	return ahead.next()
}

func (l *lexer) next() token {
	l.skip()
	t := token{from: l.pos}
	if l.pos == len(l.text) {
		t.to = l.pos
		return t
	}
	switch c := l.text[l.pos]; {
	case c == '\'':
		t.kind, l.pos = tokenString, l.quoted(c)
	case c == '`', c == '"':
		t.kind, l.pos = tokenQuoted, l.quoted(c)
	case isDigit(c):
		t.kind, l.pos = tokenNumber, l.number()
	case isWordStart(c):
		t.kind, l.pos = tokenWord, l.while(isWordByte)
	case c == '?':
		t.kind, l.pos = tokenParam, l.pos+1
	case c == '@' && l.at(1, isWordByte):
		l.pos++
		t.kind, l.pos = tokenParam, l.while(isWordByte)
	case c == '$':
		t.kind, l.pos = l.dollar()
	default:
		t.kind, l.pos = tokenOther, l.pos+1
	}
	t.to = l.pos
	t.text = l.text[t.from:t.to]
	return t
}

func (l *lexer) at(offset int, fits func(byte) bool) bool {
	i := l.pos + offset
	return i < len(l.text) && fits(l.text[i])
}

// while returns where the bytes that fit end.
func (l *lexer) while(fits func(byte) bool) int {
	end := l.pos
	for end < len(l.text) && fits(l.text[end]) {
		end++
	}
	return end
}

// number reads 1, 1.5, 1e-7, 0x1F. What is no number the server refuses.
func (l *lexer) number() int {
	end := l.pos
	for end < len(l.text) {
		c := l.text[end]
		exponent := end > l.pos && l.text[end-1]|0x20 == 'e' && !strings.HasPrefix(l.text[l.pos:], "0x")
		if !isWordByte(c) && c != '.' && (!exponent || c != '-' && c != '+') {
			break
		}
		end++
	}
	return end
}

// quoted returns where the literal or name ends that begins here.
func (l *lexer) quoted(quote byte) int {
	for i := l.pos + 1; i < len(l.text); i++ {
		switch l.text[i] {
		case '\\':
			i++
		case quote:
			if i+1 == len(l.text) || l.text[i+1] != quote {
				return i + 1
			}
			i++
		}
	}
	return len(l.text)
}

// dollar reads $1, $tag$…$tag$ or a lone dollar.
func (l *lexer) dollar() (tokenKind, int) {
	if l.at(1, isDigit) {
		l.pos++
		return tokenParam, l.while(isDigit)
	}
	end := strings.IndexByte(l.text[l.pos+1:], '$')
	if end < 0 {
		return tokenOther, l.pos + 1
	}
	tag := l.text[l.pos : l.pos+end+2]
	for _, c := range []byte(tag[1 : len(tag)-1]) {
		if !isWordByte(c) {
			return tokenOther, l.pos + 1
		}
	}
	body := l.pos + len(tag)
	if end = strings.Index(l.text[body:], tag); end < 0 {
		return tokenOther, l.pos + 1
	}
	return tokenHeredoc, body + end + len(tag)
}

// skip passes blanks and comments.
func (l *lexer) skip() {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.IndexByte(" \t\n\r\f\v", rest[0]) >= 0:
			l.pos++
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "#!"), strings.HasPrefix(rest, "# "):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest) - 1
			}
			l.pos += end + 1
		case strings.HasPrefix(rest, "/*"):
			l.pos = l.comment()
		default:
			return
		}
	}
}

// comment returns where the comment ends that begins here; they nest.
func (l *lexer) comment() int {
	depth := 0
	for i := l.pos; i+1 < len(l.text); i++ {
		switch l.text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(l.text)
}

func isDigit(c byte) bool     { return c >= '0' && c <= '9' }
func isWordStart(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80 }
func isWordByte(c byte) bool  { return isWordStart(c) || isDigit(c) }
