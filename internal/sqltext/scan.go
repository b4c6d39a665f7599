// Package sqltext reads what the driver must know of a statement before any
// store sees it: the store it is routed to, whether it starts, ends or marks a
// transaction, and whether it could notify or make its transaction read-only
// (protocol §3, orm.md §2).
//
// It reads as PostgreSQL's own lexer does with standard_conforming_strings=on:
// '…', E'…', U&'…', "…", $tag$…$tag$, -- and nested /* */. Text of other stores
// passes through as Plain. It is no parser: a text that PostgreSQL would refuse
// is passed on, so that its own error is what the caller sees.
//
// INVARIANT T1: text inside a literal, a quoted name, a dollar quote or a
// comment never routes and never is transaction control, but for the comment
// whose whole content is a directive.
// INVARIANT T2: Statement.Text is the given text with directives and the
// blanks after them taken out, and scanning it again finds the same without a store.
// INVARIANT T3: no transaction control of a text of several statements goes unseen.
package sqltext

import "strings"

// Statement is what Scan finds in one text.
type Statement struct {
	// Text is what reaches the store and keys its statement cache: the routing
	// prefix or directive comment is gone, every other comment is kept.
	Text string
	// Store is the name in `store:NAME ` or in a comment of that content, or
	// "" where the text names none. Whether it is configured is not known here.
	Store string
	// Kind tells transaction control from everything else. Every Kind but Plain
	// stands alone: Scan refuses it in a text of several statements.
	Kind Kind
	// Name is the savepoint's name where Kind has one, as PostgreSQL stores it:
	// in lower case unless quoted, cut to 63 bytes.
	Name string
	// Notify: the text may queue a notification, which takes effect at COMMIT
	// without a transaction id being assigned. In doubt true.
	Notify bool
	// SetsReadOnly: the text may make its transaction read-only or change its
	// isolation, now or for later transactions of the session. In doubt true.
	SetsReadOnly bool
	// Multi: the text holds more than one statement.
	Multi bool
}

// Scan reads text. Its errors are *InvalidStore (a routing prefix without a
// proper name), *Conflict (two prefixes that disagree), *TransactionControl
// (transaction control or a savepoint among several statements) and
// *InvalidSavepoint; the Statement is zero with any of them. Transaction control
// that stands alone is no error of Scan, see Kind.Refusal.
//
// Scan runs before every statement. One with nothing to find costs no
// allocation and one vectorized search for each of five bytes.
func Scan(text string) (Statement, error) {
	routed, err := route(text)
	if err != nil {
		return Statement{}, err
	}
	statement := Statement{Text: routed.kept + text[routed.from:], Store: routed.store}
	body := text[routed.body:]
	if isPlain(body) {
		return statement, nil
	}
	found := inspect(body)
	if err := found.refusal(); err != nil {
		return Statement{}, err
	}
	statement.Kind = found.first.kind
	statement.Name = found.first.name
	statement.Notify = found.notify
	statement.SetsReadOnly = found.setsReadOnly
	statement.Multi = found.statements > 1
	return statement, nil
}

// isPlain reports that body, which starts at its first keyword, needs no closer
// look. It must never be true of a text for which inspect finds something.
func isPlain(body string) bool {
	if i := strings.IndexByte(body, ';'); i >= 0 && skipBlanks(body, i+1) < len(body) {
		return false
	}
	return verbOf(firstWord(body)) == noVerb && !containsFold(body, "notify") && !containsFold(body, "set_config")
}

func firstWord(body string) string {
	end := 0
	for end < len(body) && isWordByte(body[end]) {
		end++
	}
	return body[:end]
}

// containsFold looks for needle, which is lower case ASCII, in any case. It asks
// for the last letter, because bytes are searched for with vector instructions
// and the letters that our needles end with are rare in SQL.
func containsFold(text, needle string) bool {
	last := needle[len(needle)-1]
	return endsAt(text, needle, last) || endsAt(text, needle, last-'a'+'A')
}

func endsAt(text, needle string, last byte) bool {
	for from := len(needle) - 1; from < len(text); {
		i := strings.IndexByte(text[from:], last)
		if i < 0 {
			return false
		}
		from += i + 1
		if strings.EqualFold(text[from-len(needle):from], needle) {
			return true
		}
	}
	return false
}
