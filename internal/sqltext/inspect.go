package sqltext

// marker is transaction control or a savepoint as it stands in a text.
type marker struct {
	kind    Kind
	name    string
	invalid bool // a savepoint without exactly one name
}

// finding is what inspect found in the statements of one text.
type finding struct {
	statements   int    // empty ones do not count
	first        marker // of the first statement
	later        Kind   // the first control behind a ';' that is no literal's
	notify       bool
	setsReadOnly bool
}

// refusal is the error for what may not stand in one text.
func (f *finding) refusal() error {
	switch {
	case f.statements > 1 && f.first.kind != Plain:
		return f.first.kind.control()
	case f.later != Plain:
		return f.later.control()
	case f.first.invalid:
		return &InvalidSavepoint{Keyword: f.first.kind.String()}
	}
	return nil
}

// reader walks the statements of a text. Where a ';' separates statements is
// psql's rule (psqlscan.l): not in parentheses (CREATE RULE) and not in a
// BEGIN ATOMIC body.
type reader struct {
	lexer
	finding
	depth   int  // of parentheses
	routine bool // in CREATE FUNCTION or CREATE PROCEDURE
	atomic  bool // in its BEGIN ATOMIC body
	do      bool // in DO, whose literal is code that runs now
	set     bool // in SET, RESET or DISCARD
}

func inspect(body string) finding {
	r := reader{lexer: lexer{text: body}}
	starts, top := true, true // the next token starts a statement; one of its own, not inside another
	for t := r.next(); t.kind != tokenEnd; t = r.next() {
		switch {
		case t.isByte(';'):
			starts = true
			top = top || r.depth == 0 && !r.atomic
		case starts && r.atomic && t.is("end"):
			// A body's statements all end with ';', so this END, and no CASE's, closes it.
			r.atomic, starts = false, false
		case starts:
			r.start(t, top)
			starts, top = false, false
		default:
			r.token(t)
		}
	}
	return r.finding
}

// start looks at the first token of a statement. Statements inside another one
// (a body, parentheses) are judged as well: PostgreSQL refuses control there, so
// reporting it costs nothing, and a body that was seen where none is hides
// nothing (T3).
func (r *reader) start(t token, top bool) {
	found := r.marker(t)
	if top {
		r.statements++
		v := noVerb
		if t.kind == tokenWord {
			v = verbOf(t.text)
		}
		r.do, r.set = v == verbDo, v == verbSet || v == verbReset || v == verbDiscard
		// A bare BEGIN ATOMIC is no statement: PostgreSQL refuses the text and says why.
		r.routine = v == verbBegin || t.is("create") && r.createsRoutine()
	}
	if r.statements == 1 && top {
		r.first = found
	} else if r.later == Plain {
		r.later = found.kind
	}
	r.token(t)
}

// token collects what any token may tell.
func (r *reader) token(t token) {
	switch {
	case t.isByte('('):
		r.depth++
	case t.isByte(')'):
		r.depth = max(r.depth-1, 0)
	case t.is("begin") && r.peek().is("atomic"):
		// In parentheses it is a parameter "begin" of a type "atomic".
		r.atomic = r.atomic || r.routine && r.depth == 0
	}
	r.notify = r.notify || r.notifies(t)
	r.setsReadOnly = r.setsReadOnly || r.readOnly(t)
}

// notifies is true for NOTIFY, for a call of anything so named (pg_notify, and
// the function that wraps it), and for code in a quote that may hold either. A
// column such as notify_by_mail is none of these.
func (r *reader) notifies(t token) bool {
	switch t.kind {
	case tokenWord, tokenQuoted:
		return t.is("notify") || containsFold(t.text, "notify") && r.peek().isByte('(')
	case tokenDollar:
		return containsFold(t.text, "notify")
	case tokenLiteral:
		return r.do && containsFold(t.text, "notify")
	case tokenEnd, tokenOther:
		return false
	}
	return false
}

// readOnly is true for a SET or RESET that names anything of a transaction (the
// statements SET TRANSACTION and SET SESSION CHARACTERISTICS, the settings
// transaction_… and default_transaction_…) or ALL, for set_config of such a
// setting or of a name that is no plain literal, and for DO with either in it.
func (r *reader) readOnly(t token) bool {
	switch t.kind {
	case tokenWord, tokenQuoted:
		if containsFold(t.text, "set_config") {
			return r.configures()
		}
		return r.set && (t.escaped || t.is("all") || containsFold(t.text, "transaction"))
	case tokenDollar, tokenLiteral:
		return r.do && (containsFold(t.text, "transaction") || containsFold(t.text, "set_config"))
	case tokenEnd, tokenOther:
		return false
	}
	return false
}

// configures reports whether the arguments that follow set_config could name a
// setting of the transaction.
func (r *reader) configures() bool {
	ahead := r.lexer
	if !ahead.next().isByte('(') {
		return false
	}
	setting := ahead.next()
	plain := setting.kind == tokenLiteral && !setting.escaped && ahead.next().isByte(',')
	return !plain || containsFold(setting.text, "transaction")
}

// createsRoutine reads on behind CREATE.
func (r *reader) createsRoutine() bool {
	ahead := r.lexer
	t := ahead.next()
	if t.is("or") && ahead.next().is("replace") {
		t = ahead.next()
	}
	return t.is("function") || t.is("procedure")
}

// marker reads the statement that starts with t, without moving on.
func (r *reader) marker(t token) marker {
	if t.kind != tokenWord {
		return marker{}
	}
	ahead := r.lexer
	switch verbOf(t.text) {
	case noVerb, verbDo, verbSet, verbReset, verbDiscard:
	case verbBegin:
		if !ahead.next().is("atomic") {
			return marker{kind: Begin}
		}
	case verbStart:
		if ahead.next().is("transaction") {
			return marker{kind: Begin}
		}
	case verbCommit:
		if ahead.next().is("prepared") {
			return marker{kind: CommitPrepared}
		}
		return marker{kind: Commit}
	case verbEnd:
		return marker{kind: Commit}
	case verbAbort:
		return marker{kind: Rollback}
	case verbRollback:
		return rollback(ahead)
	case verbPrepare:
		// "PREPARE transaction AS …" prepares a statement of that name.
		if ahead.next().is("transaction") && !ahead.peek().is("as") && !ahead.peek().isByte('(') {
			return marker{kind: PrepareTransaction}
		}
	case verbSavepoint:
		return savepoint(Savepoint, ahead)
	case verbRelease:
		return optionalSavepoint(Release, ahead)
	}
	return marker{}
}

func rollback(ahead lexer) marker {
	t := ahead.next()
	if t.is("prepared") {
		return marker{kind: RollbackPrepared}
	}
	if t.is("work") || t.is("transaction") {
		t = ahead.next()
	}
	if t.is("to") {
		return optionalSavepoint(RollbackTo, ahead)
	}
	return marker{kind: Rollback}
}

// optionalSavepoint reads [SAVEPOINT] name; the word alone is a name itself.
func optionalSavepoint(kind Kind, ahead lexer) marker {
	behind := ahead
	if behind.next().is("savepoint") && !behind.peek().ends() {
		ahead = behind
	}
	return savepoint(kind, ahead)
}

// savepoint reads the name and the end of the statement.
func savepoint(kind Kind, ahead lexer) marker {
	name, ok := identifier(ahead.next())
	if !ok || !ahead.next().ends() {
		return marker{kind: kind, invalid: true}
	}
	return marker{kind: kind, name: name}
}
