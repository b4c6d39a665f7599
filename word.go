package rhizodat

import (
	"strings"
	"unicode/utf8"
)

// blanks separate the words of a DSN; a line break is one, so that a DSN in a
// file may have a line for each store.
const blanks = " \t\n\r\v\f"

// word is one key=value of a DSN.
type word struct {
	key, value string
	offset     int
}

// lexer walks a DSN from left to right.
type lexer struct {
	text string
	pos  int
}

// splitWords cuts a DSN into its words. Quotes and backslashes mean something
// only in a value that begins with a quote: a URL is pasted in as it is, and
// may hold either.
func splitWords(dsn string) ([]word, *DSNError) {
	if i := invalidUTF8(dsn); i >= 0 {
		return nil, textFault("the text is not valid UTF-8", "").at(i)
	}
	if i := strings.IndexByte(dsn, 0); i >= 0 {
		return nil, textFault("a NUL byte", "").at(i)
	}
	l := lexer{text: dsn}
	var words []word
	for l.skipBlanks(); l.pos < len(dsn); l.skipBlanks() {
		w, fault := l.word()
		if fault != nil {
			return nil, fault
		}
		words = append(words, w)
	}
	return words, nil
}

func (l *lexer) skipBlanks() {
	l.pos = len(l.text) - len(strings.TrimLeft(l.text[l.pos:], blanks))
}

// until returns the text up to the first byte of stop, and stands there.
func (l *lexer) until(stop string) string {
	rest := l.text[l.pos:]
	if i := strings.IndexAny(rest, stop); i >= 0 {
		rest = rest[:i]
	}
	l.pos += len(rest)
	return rest
}

func (l *lexer) word() (word, *DSNError) {
	start := l.pos
	key := l.until("=" + blanks)
	switch {
	case !strings.HasPrefix(l.text[l.pos:], "="):
		return word{}, textFault("a word without \"=\"", missingEqualsWay).at(start)
	case key == "":
		return word{}, textFault("no name before the \"=\"", "no blank may stand before it").at(start)
	case strings.ContainsAny(key, ":/"):
		return word{}, textFault("a URL without a name before it", "write the store's name and \"=\" before it, as in pg=postgres://…").at(start)
	}
	l.pos++
	value, fault := l.value(start)
	if fault != nil {
		fault.Key = shown(key)
		return word{}, fault
	}
	return word{key: key, value: value, offset: start}, nil
}

const missingEqualsWay = "a DSN is name=value words; a value with blanks is quoted as in name='a b'"

// value reads what stands behind the "=".
func (l *lexer) value(start int) (string, *DSNError) {
	if !strings.HasPrefix(l.text[l.pos:], "'") {
		value := l.until(blanks)
		if value == "" {
			return "", textFault("the value is empty", "leave the word out for the default; no blank may stand after the \"=\"").at(start)
		}
		return value, nil
	}
	opened := l.pos
	value, closed := l.quoted()
	switch {
	case !closed:
		return "", textFault("the quote is not closed", "").at(opened)
	case l.pos < len(l.text) && strings.IndexByte(blanks, l.text[l.pos]) < 0:
		return "", textFault("no blank after the closing quote", "inside quotes a quote is written \\' and a backslash \\\\").at(l.pos)
	}
	if reason := valueReason(value); reason != "" {
		return "", textFault(reason, "").at(opened)
	}
	return value, nil
}

// quoted reads '…' by libpq's rule: a backslash takes the next byte as it is.
func (l *lexer) quoted() (value string, closed bool) {
	var b strings.Builder
	for l.pos++; l.pos < len(l.text); l.pos++ {
		switch c := l.text[l.pos]; c {
		case '\'':
			l.pos++
			return b.String(), true
		case '\\':
			if l.pos++; l.pos < len(l.text) {
				b.WriteByte(l.text[l.pos])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// valueReason says why no word of a DSN can have this value; "" if one can.
// A blank at an end is refused and not trimmed: ' postgres://…' would be an
// unknown option instead of a store, which nobody would see by looking.
func valueReason(value string) string {
	switch {
	case value == "":
		return "the value is empty"
	case invalidUTF8(value) >= 0:
		return "the value is not valid UTF-8"
	case strings.Contains(value, "\x00"):
		return "the value has a NUL byte"
	case strings.Trim(value, blanks) != value:
		return "the value begins or ends with a blank"
	}
	return ""
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(s string) int {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// quote writes value so that splitWords reads it back.
func quote(value string) string {
	if !strings.ContainsAny(value, blanks) && !strings.HasPrefix(value, "'") {
		return value
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

func textFault(reason, way string) *DSNError {
	return &DSNError{Offset: -1, Reason: reason, Way: way}
}
