package sqltext

import "strings"

// verb is the first word of a statement that Scan has to look into.
type verb int

const (
	noVerb verb = iota
	verbAbort
	verbBegin
	verbCommit
	verbDiscard
	verbDo
	verbEnd
	verbPrepare
	verbRelease
	verbReset
	verbRollback
	verbSavepoint
	verbSet
	verbStart
)

// verbOf is noVerb for every word that begins an ordinary statement. Length and
// first letter go first: they settle most of those without a comparison of text.
func verbOf(word string) verb {
	if len(word) < 2 || len(word) > 9 {
		return noVerb
	}
	switch word[0] | 0x20 {
	case 'a':
		return verbIf(word, "abort", verbAbort)
	case 'b':
		return verbIf(word, "begin", verbBegin)
	case 'c':
		return verbIf(word, "commit", verbCommit)
	case 'd':
		return max(verbIf(word, "do", verbDo), verbIf(word, "discard", verbDiscard))
	case 'e':
		return verbIf(word, "end", verbEnd)
	case 'p':
		return verbIf(word, "prepare", verbPrepare)
	case 'r':
		switch len(word) {
		case 5:
			return verbIf(word, "reset", verbReset)
		case 7:
			return verbIf(word, "release", verbRelease)
		}
		return verbIf(word, "rollback", verbRollback)
	case 's':
		switch len(word) {
		case 3:
			return verbIf(word, "set", verbSet)
		case 5:
			return verbIf(word, "start", verbStart)
		}
		return verbIf(word, "savepoint", verbSavepoint)
	}
	return noVerb
}

func verbIf(word, full string, v verb) verb {
	if len(word) == len(full) && strings.EqualFold(word, full) {
		return v
	}
	return noVerb
}
