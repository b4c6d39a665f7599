package sqltext

import "strings"

const (
	prefix       = "store:"
	maxStoreName = 32
)

// routing is what stands before the first keyword of a text.
type routing struct {
	store string
	kept  string // comments that stood before a directive; "" in the common cases, which then need no copy
	from  int    // the statement's text is kept + text[from:]
	body  int    // where the first keyword stands
}

// route finds every directive before the first keyword: the prefix, and the
// comment that holds nothing else. All of them must name the same store.
func route(text string) (routing, error) {
	var r routing
	for {
		r.body = skipBlanks(text, r.body)
		word, end := directive(text, r.body)
		if end == r.body {
			return r, nil
		}
		if word == "" { // an ordinary comment
			r.body = end
			continue
		}
		name := word[len(prefix):]
		if !strings.HasPrefix(word, prefix) || !isStoreName(name) {
			return routing{}, &InvalidStore{Word: word}
		}
		if r.store != "" && r.store != name {
			return routing{}, &Conflict{First: r.store, Second: name}
		}
		r.store = name
		if before := text[r.from:r.body]; r.kept != "" || skipBlanks(before, 0) < len(before) {
			r.kept += before
		}
		r.body = skipBlanks(text, end)
		r.from = r.body
	}
}

// directive reads the comment or the prefix at position at. word is the whole
// "store:NAME", right or wrong, of a directive and "" for any other comment; end
// is at where neither begins.
func directive(text string, at int) (word string, end int) {
	if hasPrefixWord(text[at:]) {
		end = at
		for end < len(text) && !isBlank(text[end]) {
			end++
		}
		return text[at:end], end
	}
	end, closed := skipComment(text, at)
	if end == at || !closed {
		return "", end
	}
	content := text[at+2 : end]
	if text[at] == '/' {
		content = content[:len(content)-2]
	}
	content = strings.Trim(content, blanks)
	// More than one word is prose that begins with "store:", not a directive.
	if !hasPrefixWord(content) || strings.ContainsAny(content, blanks) {
		return "", end
	}
	return content, end
}

// hasPrefixWord is blind to case, so that STORE:ch is refused and not sent to
// the default store.
func hasPrefixWord(text string) bool {
	return len(text) >= len(prefix) && text[len(prefix)-1] == ':' && strings.EqualFold(text[:len(prefix)], prefix)
}

func isStoreName(name string) bool {
	if name == "" || len(name) > maxStoreName || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}
