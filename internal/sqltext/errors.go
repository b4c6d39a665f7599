package sqltext

import "strconv"

// InvalidStore says that a text has a routing prefix or a routing comment whose
// name is none: names are [a-z][a-z0-9_]{0,31}, and a blank ends a prefix.
// Passing it on as an ordinary comment would write to the default store what
// was meant for another.
type InvalidStore struct {
	Word string // the whole word, "store:" included
}

// Error quotes the word.
func (e *InvalidStore) Error() string {
	return "rhizodat: scan statement: invalid store prefix: " + strconv.Quote(e.Word) +
		" is not store:NAME, with a name of [a-z][a-z0-9_]{0,31} and a blank after it"
}

// Conflict says that one text routes to two stores.
type Conflict struct {
	First, Second string // in the order of the text
}

// Error names both stores.
func (e *Conflict) Error() string {
	return "rhizodat: scan statement: two stores named: " + e.First + " and " + e.Second
}

// TransactionControl says that a text starts, ends or marks a transaction where
// that is not for text to do. The store has not seen the text.
type TransactionControl struct {
	Keyword string // as PostgreSQL's manual writes it: END is reported as COMMIT
	Instead string // the call to use instead
}

// Error names the keyword and the call.
func (e *TransactionControl) Error() string {
	return "rhizodat: scan statement: transaction control in the text: " + e.Keyword + ": use " + e.Instead
}

// InvalidSavepoint says that a savepoint statement does not consist of its
// keyword and one name. It has reached no store, so it dooms no branch.
type InvalidSavepoint struct {
	Keyword string
}

// Error names the keyword.
func (e *InvalidSavepoint) Error() string {
	return "rhizodat: scan statement: invalid savepoint: " + e.Keyword + " takes one plain or quoted name and nothing else"
}
