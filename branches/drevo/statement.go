package drevo

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// statement is what has to be known of a statement's text. drevo tells over Bolt
// neither what a statement did nor whether it did anything.
type statement struct {
	writes   bool // it may write; in doubt it does
	resolves bool // it names a procedure of drevo.tx
}

// readers are the words that a statement which only reads may begin with.
var readers = map[string]bool{"MATCH": true, "OPTIONAL": true, "WITH": true, "UNWIND": true, "RETURN": true}

// writers are the words that may begin a clause which writes. CALL is one of them:
// who knows what a procedure does.
var writers = map[string]bool{
	"CREATE": true, "MERGE": true, "SET": true, "DELETE": true, "DETACH": true, "REMOVE": true, "FOREACH": true,
	"CALL": true, "LOAD": true, "DROP": true, "INSERT": true, "ALTER": true,
}

// read looks at the words of a statement outside of literals and comments.
func read(query string) statement {
	var st statement
	var before [2]string // the two tokens before this one
	first := true
	for rest := query; ; {
		var t token
		t, rest = cut(rest)
		switch {
		case t.kind == tokenEnd:
			st.writes = st.writes || first
			return st
		case t.kind == tokenBroken:
			st.writes = true // it does not end as it should
			return st
		case t.named() && (t.text == "tx" && before == [2]string{"drevo", "."} || strings.HasPrefix(t.text, "drevo.tx.")):
			st.resolves = true
		}
		st.writes = st.writes || t.mayWrite(first, before[1])
		before = [2]string{before[1], t.text}
		first = false
	}
}

// mayWrite: a clause that writes begins here, or it cannot be told.
func (t token) mayWrite(first bool, before string) bool {
	word := strings.ToUpper(t.text)
	switch {
	case first && (t.kind != tokenName || !readers[word]):
		return true
	case t.kind == tokenName:
		return writers[word] && before != ":" && before != "$" // a label, a parameter
	}
	return t.kind == tokenSign && t.text == `\` // an escape may spell any word
}

type token struct {
	kind tokenKind
	text string
}

type tokenKind int

const (
	tokenEnd    tokenKind = iota
	tokenBroken           // a literal, a quoted name or a comment has no end
	tokenName
	tokenQuoted // a name in backticks, without them
	tokenLiteral
	tokenSign
)

func (t token) named() bool { return t.kind == tokenName || t.kind == tokenQuoted }

// cut takes the next token off, over blanks and comments.
func cut(s string) (t token, rest string) {
	s, closed := skipBlanks(s)
	if !closed {
		return token{kind: tokenBroken}, ""
	}
	if s == "" {
		return token{kind: tokenEnd}, ""
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == '\'' || r == '"':
		rest, closed := skipLiteral(s)
		if !closed {
			return token{kind: tokenBroken}, ""
		}
		return token{kind: tokenLiteral}, rest
	case r == '`':
		name, rest, closed := strings.Cut(s[1:], "`")
		if !closed {
			return token{kind: tokenBroken}, ""
		}
		return token{tokenQuoted, name}, rest
	case isWord(r):
		end := strings.IndexFunc(s, func(r rune) bool { return !isWord(r) })
		if end < 0 {
			end = len(s)
		}
		return token{tokenName, s[:end]}, s[end:]
	}
	return token{tokenSign, s[:size]}, s[size:]
}

// skipBlanks skips blanks and comments.
func skipBlanks(s string) (rest string, closed bool) {
	for {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		switch {
		case strings.HasPrefix(s, "//"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*"):
			if _, s, closed = strings.Cut(s[2:], "*/"); !closed {
				return "", false
			}
		default:
			return s, true
		}
	}
}

// skipLiteral skips a literal in quotes; a backslash escapes.
func skipLiteral(s string) (rest string, closed bool) {
	quote := s[0]
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return s[i+1:], true
		}
	}
	return "", false
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
