package postgres

import "strings"

// The driver reads statements only to guess, never to decide: a wrong guess
// costs a round trip. What is true is asked of the server at S3.

// writes reports whether a statement that returned rows or was prepared is
// plainly one that writes.
func writes(query string) bool {
	switch word := firstWord(query); len(word) {
	case 5:
		return strings.EqualFold(word, "merge")
	case 6:
		return strings.EqualFold(word, "insert") || strings.EqualFold(word, "update") || strings.EqualFold(word, "delete")
	}
	return false
}

// firstWord is the first keyword after blanks and comments.
func firstWord(query string) string {
	for {
		query = strings.TrimLeft(query, " \t\r\n\f\v;(")
		switch {
		case strings.HasPrefix(query, "--"):
			_, rest, ok := strings.Cut(query, "\n")
			if !ok {
				return ""
			}
			query = rest
		case strings.HasPrefix(query, "/*"):
			query = afterComment(query)
		default:
			end := 0
			for end < len(query) && isLetter(query[end]) {
				end++
			}
			return query[:end]
		}
	}
}

// afterComment skips a /* comment */, which nests.
func afterComment(query string) string {
	depth := 0
	for i := 0; i+1 < len(query); i++ {
		switch query[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return query[i+1:]
			}
		}
	}
	return ""
}

// traced reports whether the text holds a trace's id, as tracing tools write it
// into a comment. Such a text comes once: a cache of statements by their text
// would lose those of the program to it, one by one.
func traced(query string) bool { return strings.Contains(query, "traceparent=") }

// namesMode reports whether the text may change a transaction's access mode:
// READ ONLY, READ WRITE, transaction_read_only, with any blanks and comments.
func namesMode(query string) bool {
	for i := 0; i+8 < len(query); i++ {
		if query[i]|0x20 != 'r' || !strings.EqualFold(query[i:i+4], "read") || isLetter(query[i+4]) {
			continue
		}
		word := firstWord(strings.TrimLeft(query[i+4:], "_"))
		if strings.EqualFold(word, "only") || strings.EqualFold(word, "write") {
			return true
		}
	}
	return false
}

// namesBound reports whether the text may change lock_timeout, by its name or
// by taking back all settings.
func namesBound(query string) bool {
	const name = "lock_timeout"
	for i := 0; i+len(name) <= len(query); i++ {
		if query[i]|0x20 == 'l' && strings.EqualFold(query[i:i+len(name)], name) {
			return true
		}
	}
	word := firstWord(query)
	return strings.EqualFold(word, "reset") || strings.EqualFold(word, "discard")
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// cutName reads one part of a table's name; tail is empty or begins with the
// dot before the next part.
func cutName(text string) (part, tail string, ok bool) {
	if rest, quoted := strings.CutPrefix(text, `"`); quoted {
		var b strings.Builder
		for {
			before, after, found := strings.Cut(rest, `"`)
			b.WriteString(before)
			if !found {
				return "", "", false
			}
			if !strings.HasPrefix(after, `"`) {
				return b.String(), after, b.Len() > 0 && (after == "" || len(after) > 1 && after[0] == '.')
			}
			b.WriteByte('"')
			rest = after[1:]
		}
	}
	end := strings.IndexByte(text, '.')
	if end < 0 {
		end = len(text)
	}
	part, tail = strings.ToLower(text[:end]), text[end:]
	return part, tail, part != "" && tail != "." && !strings.ContainsAny(part, "\" \t\r\n;")
}
