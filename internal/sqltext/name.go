package sqltext

import (
	"strings"
	"unicode/utf8"
)

// maxName is PostgreSQL's NAMEDATALEN - 1: longer names are cut, so two names
// that differ only later are one savepoint.
const maxName = 63

// identifier is the name that t spells as PostgreSQL stores it. Not ok: t is no
// name, an empty or unterminated one, or U&"…", which ORMs never write and which
// would have to be decoded to be compared.
func identifier(t token) (name string, ok bool) {
	switch t.kind {
	case tokenWord:
		return cut(lowerASCII(t.text)), true
	case tokenQuoted:
		if t.escaped || len(t.text) < 3 || t.text[len(t.text)-1] != '"' {
			return "", false
		}
		inner := t.text[1 : len(t.text)-1]
		name = strings.ReplaceAll(inner, `""`, `"`)
		if strings.Count(inner, `"`)%2 != 0 { // "a"" is unterminated
			return "", false
		}
		return cut(name), true
	case tokenEnd, tokenLiteral, tokenDollar, tokenOther:
		return "", false
	}
	return "", false
}

// lowerASCII folds as PostgreSQL does in a multibyte encoding: ASCII alone.
func lowerASCII(name string) string {
	for i := range len(name) {
		if c := name[i]; c >= 'A' && c <= 'Z' {
			lower := []byte(name)
			for j, c := range lower {
				if c >= 'A' && c <= 'Z' {
					lower[j] = c + 'a' - 'A'
				}
			}
			return string(lower)
		}
	}
	return name
}

// cut shortens to maxName bytes, whole characters only.
func cut(name string) string {
	if len(name) <= maxName {
		return name
	}
	end := maxName
	for end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}
