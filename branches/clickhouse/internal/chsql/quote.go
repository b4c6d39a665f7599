package chsql

import "strings"

var (
	nameEscapes = strings.NewReplacer("\\", "\\\\", "`", "\\`")
	textEscapes = strings.NewReplacer("\\", "\\\\", "'", "\\'", "\n", "\\n", "\x00", "\\0")
)

// Name quotes a name.
func Name(name string) string { return "`" + nameEscapes.Replace(name) + "`" }

// Text quotes a string.
func Text(text string) string { return "'" + textEscapes.Replace(text) + "'" }

// escapes are ClickHouse's (parseEscapeSequence).
var escapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'e': 0x1B, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '0': 0,
	'\\': '\\', '\'': '\'', '"': '"', '`': '`', '/': '/',
}

// Unquote reads '…', `…` or "…". ok is false for an escape whose meaning the
// server had better tell itself.
func Unquote(quoted string) (text string, ok bool) {
	if len(quoted) < 2 || quoted[0] != quoted[len(quoted)-1] {
		return "", false
	}
	quote, body := quoted[0], quoted[1:len(quoted)-1]
	if strings.IndexByte(body, '\\') < 0 && strings.IndexByte(body, quote) < 0 {
		return body, true
	}
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch c {
		case quote: // doubled
			i++
		case '\\':
			i++
			if i == len(body) {
				return "", false
			}
			if c, ok = escapes[body[i]]; !ok {
				return "", false
			}
		}
		b.WriteByte(c)
	}
	return b.String(), true
}
