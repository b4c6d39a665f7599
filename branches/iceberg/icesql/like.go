package icesql

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// like binds x LIKE pattern.
func (b *binder) like(e *Like) (bound, error) {
	at, err := b.operand(e.X)
	if err != nil {
		return bound{}, err
	}
	col := &b.columns[at]
	if col.family != famString {
		return bound{}, &BindError{Column: col.name(), Type: typeText(col.field.Type), Cause: "LIKE is for strings"}
	}
	pattern, null, err := b.likeText(col, e.Pattern, "a pattern")
	if err != nil {
		return bound{}, err
	}
	escape := `\`
	if e.Escape != nil {
		var nullEscape bool
		if escape, nullEscape, err = b.likeText(col, e.Escape, "an escape character"); err != nil {
			return bound{}, err
		}
		null = null || nullEscape
		if utf8.RuneCountInString(escape) > 1 {
			return bound{}, &BindError{Column: col.name(), Value: icevalue.Shown(escape), Cause: "ESCAPE takes one character, or none"}
		}
	}
	if null {
		return bound{node: always(Unknown)}, nil
	}
	match, ok := compilePattern(pattern, escape)
	if !ok {
		return bound{}, &BindError{Column: col.name(), Value: icevalue.Shown(pattern), Cause: "the pattern ends with its escape character"}
	}
	var n node = likeNode{at, match}
	if e.Not {
		n = notNode{n}
	}
	return bound{node: n}, nil
}

func (b *binder) likeText(col *boundColumn, e Expr, what string) (text string, null bool, err error) {
	c, ok, err := b.constant(e)
	switch {
	case err != nil:
		return "", false, err
	case !ok:
		return "", false, &BindError{Column: col.name(), Value: shorten(e.String()), Cause: what + " is a string or a parameter"}
	case c.null():
		return "", true, nil
	}
	v, err := col.convertPlain(c)
	if err != nil {
		return "", false, col.refuse(c, err)
	}
	text, _ = v.(string)
	return text, false, nil
}

// likeNode matches a pattern.
type likeNode struct {
	column slot
	match  pattern
}

func (n likeNode) eval(f *frame, out Mask) {
	v := &f.columns[n.column]
	at := stringsOf(v.values)
	for i := range out {
		out[i] = truthOf(n.match.matches(at(i)))
	}
	v.hideNulls(out)
}

// pattern is a LIKE pattern: pieces with a % between each two of them. The text
// must begin with the first piece and end with the last.
type pattern []piece

// piece is a run of characters; any marks those that stand for any one character.
type piece struct {
	text string // where no character is any
	runs []rune // else, with anyRune for _
}

const anyRune rune = -1

// compilePattern is false for a pattern that ends with its escape character, which
// then escapes nothing.
func compilePattern(s, escape string) (pattern, bool) {
	var out pattern
	var p piece
	wild := false
	flush := func() {
		if !wild {
			p.text, p.runs = string(p.runs), nil
		}
		out = append(out, p)
		p, wild = piece{}, false
	}
	for s != "" {
		if escape != "" && strings.HasPrefix(s, escape) {
			if s = s[len(escape):]; s == "" {
				return nil, false
			}
			r, n := utf8.DecodeRuneInString(s)
			p.runs, s = append(p.runs, r), s[n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		switch r {
		case '%':
			flush()
		case '_':
			p.runs, wild = append(p.runs, anyRune), true
		default:
			p.runs = append(p.runs, r)
		}
	}
	flush()
	return out, true
}

// matches takes the first piece at the front, the last at the end, and every other
// one as early as it is found: no choice is ever taken back, so the time is at most
// the product of both lengths.
func (p pattern) matches(s string) bool {
	n, ok := p[0].prefix(s)
	if !ok {
		return false
	}
	s = s[n:]
	if len(p) == 1 {
		return s == ""
	}
	for _, m := range p[1 : len(p)-1] {
		if s, ok = m.cut(s); !ok {
			return false
		}
	}
	return p[len(p)-1].suffix(s)
}

// prefix is how many bytes of the front of s the piece takes.
func (p *piece) prefix(s string) (int, bool) {
	if p.runs == nil {
		return len(p.text), strings.HasPrefix(s, p.text)
	}
	n := 0
	for _, want := range p.runs {
		r, size := utf8.DecodeRuneInString(s[n:])
		if size == 0 || want != anyRune && r != want {
			return 0, false
		}
		n += size
	}
	return n, true
}

// cut is what follows the first place where the piece stands in s.
func (p *piece) cut(s string) (string, bool) {
	if p.runs == nil {
		_, after, ok := strings.Cut(s, p.text)
		return after, ok
	}
	for {
		if n, ok := p.prefix(s); ok {
			return s[n:], true
		}
		_, size := utf8.DecodeRuneInString(s)
		if size == 0 {
			return "", false
		}
		s = s[size:]
	}
}

func (p *piece) suffix(s string) bool {
	if p.runs == nil {
		return strings.HasSuffix(s, p.text)
	}
	at := len(s)
	for _, want := range slices.Backward(p.runs) {
		r, size := utf8.DecodeLastRuneInString(s[:at])
		if size == 0 || want != anyRune && r != want {
			return false
		}
		at -= size
	}
	return true
}
