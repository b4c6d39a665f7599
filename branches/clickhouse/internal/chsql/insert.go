package chsql

import (
	"fmt"
	"strings"
)

// InsertInto is an INSERT whose rows are given with it or as arguments.
type InsertInto struct {
	Database string // empty where the text names none
	Table    string
	Columns  []string // nil where the text names none
	// Rows are those of VALUES. Nil: the text ends before VALUES or behind it,
	// and the arguments of each execution are one row.
	Rows [][]Cell
}

// Cell is one value of VALUES as it was written.
type Cell struct {
	Text string
	Kind CellKind
	// Value of a Literal: the string. Name of a Named; Index of a Numbered,
	// from 0.
	Value string
	Index int
	// Params is how many ? an Expression holds.
	Params int
}

// CellKind says what a cell is.
type CellKind int

// The kinds of a cell.
const (
	Expression CellKind = iota // for the server to evaluate
	Positional                 // ?
	Numbered                   // $1
	Named                      // @name, {name:Type}
	String                     // '…'
	Number                     // -1, 1.5
	Null                       // NULL
	Bool                       // true, false
)

// Refused says why an INSERT cannot be buffered.
type Refused struct{ Reason, Way string }

func (e *Refused) Error() string {
	if e.Way == "" {
		return e.Reason
	}
	return e.Reason + " (" + e.Way + ")"
}

func refuse(reason, way string) error { return &Refused{reason, way} }

const wayValues = "write INSERT INTO table (columns) VALUES (?, …)"

// ParseInsert reads an INSERT that can be buffered. Its error is a *Refused.
func ParseInsert(text string) (*InsertInto, error) {
	p := &parser{lexer: lexer{text: text}}
	in := &InsertInto{}
	if t := p.next(); !t.is("insert") {
		return nil, refuse("it does not begin with INSERT", wayValues)
	}
	if t := p.next(); !t.is("into") {
		return nil, refuse("INSERT without INTO", wayValues)
	}
	if p.peek().is("table") {
		// A table may be named so.
		if ahead := p.lexer; !isNameEnd(ahead.next(), ahead.peek()) {
			p.next()
		}
	}
	if t := p.peek(); t.is("function") {
		return nil, refuse("INSERT INTO FUNCTION writes where no marker is", wayValues)
	}
	if err := p.target(in); err != nil {
		return nil, err
	}
	if p.peek().isByte('(') {
		if err := p.columns(in); err != nil {
			return nil, err
		}
	}
	switch t := p.next(); {
	case t.kind == tokenEnd, t.isByte(';'):
		return in, p.end(t)
	case t.is("values"):
		return in, p.rows(in)
	case t.is("select"), t.is("with"), t.is("from"), t.isByte('('):
		return nil, refuse("INSERT … SELECT is evaluated by the server at another time than the decision", "select the rows first and insert them as VALUES")
	case t.is("settings"):
		return nil, refuse("INSERT … SETTINGS: the settings of this insert are the driver's own", "leave SETTINGS out")
	case t.is("format"):
		return nil, refuse("INSERT … FORMAT has its data outside of the statement", wayValues)
	default:
		return nil, refuse("INSERT is followed by "+t.text, wayValues)
	}
}

func isNameEnd(_, after token) bool {
	return after.isByte('.') || after.isByte('(') || after.is("values") || after.kind == tokenEnd
}

type parser struct {
	lexer
	used int // ? seen so far
}

// target reads [database.]table.
func (p *parser) target(in *InsertInto) error {
	name, err := p.name()
	if err != nil {
		return err
	}
	in.Table = name
	if !p.peek().isByte('.') {
		return nil
	}
	p.next()
	in.Database = name
	in.Table, err = p.name()
	return err
}

func (p *parser) name() (string, error) {
	t := p.next()
	switch t.kind { //nolint:exhaustive // everything else is no name
	case tokenWord:
		return t.text, nil
	case tokenQuoted:
		if name, ok := Unquote(t.text); ok && name != "" {
			return name, nil
		}
	}
	return "", refuse("a name is wanted, not "+orEnd(t.text), wayValues)
}

func orEnd(text string) string {
	if text == "" {
		return "the end"
	}
	return text
}

// columns reads (a, b, nested.c).
func (p *parser) columns(in *InsertInto) error {
	p.next()
	if t := p.peek(); t.isByte('*') || t.is("select") || t.is("with") {
		if t.isByte('*') {
			return refuse("INSERT with (* …)", "name the columns")
		}
		return refuse("INSERT … SELECT is evaluated by the server at another time than the decision", "select the rows first and insert them as VALUES")
	}
	in.Columns = []string{}
	for {
		name, err := p.name()
		if err != nil {
			return err
		}
		for p.peek().isByte('.') { // a column of a Nested
			p.next()
			sub, err := p.name()
			if err != nil {
				return err
			}
			name += "." + sub
		}
		in.Columns = append(in.Columns, name)
		switch t := p.next(); {
		case t.isByte(')'):
			return nil
		case !t.isByte(','):
			return refuse("the list of columns holds "+orEnd(t.text), "name the columns between commas")
		}
	}
}

// rows reads (…), (…). The comma between two rows may be missing, as it may
// for the server.
func (p *parser) rows(in *InsertInto) error {
	if t := p.peek(); t.kind == tokenEnd || t.isByte(';') {
		return p.end(p.next())
	}
	for {
		if t := p.next(); !t.isByte('(') {
			return refuse("a row is wanted behind VALUES, not "+orEnd(t.text), "write each row in brackets")
		}
		row, err := p.row()
		if err != nil {
			return err
		}
		if len(in.Rows) > 0 && len(row) != len(in.Rows[0]) {
			return refuse(fmt.Sprintf("row %d has %d values, the first has %d", len(in.Rows)+1, len(row), len(in.Rows[0])), "")
		}
		in.Rows = append(in.Rows, row)
		switch t := p.peek(); {
		case t.isByte(','):
			p.next()
			if after := p.peek(); after.kind == tokenEnd || after.isByte(';') {
				return p.end(p.next())
			}
		case t.isByte('('):
		default:
			return p.end(p.next())
		}
	}
}

func (p *parser) end(t token) error {
	if t.isByte(';') {
		t = p.next()
	}
	if t.kind != tokenEnd {
		return refuse("the statement goes on with "+t.text, "run one statement at a time")
	}
	return nil
}

func (p *parser) row() ([]Cell, error) {
	var row []Cell
	for {
		cell, last, err := p.cell()
		if err != nil {
			return nil, err
		}
		row = append(row, cell)
		if last {
			return row, nil
		}
	}
}

// cell reads up to the comma or bracket that ends it.
func (p *parser) cell() (cell Cell, last bool, err error) {
	var tokens []token
	depth := 0
	for {
		t := p.next()
		switch {
		case t.kind == tokenEnd:
			return cell, false, refuse("a row is not closed", "")
		case depth == 0 && (t.isByte(',') || t.isByte(')')):
			cell, err = p.read(tokens)
			return cell, t.isByte(')'), err
		case t.isByte('('), t.isByte('['), t.isByte('{'):
			depth++
		case t.isByte(')'), t.isByte(']'), t.isByte('}'):
			depth--
		}
		tokens = append(tokens, t)
	}
}

// read tells what a cell is.
func (p *parser) read(tokens []token) (Cell, error) {
	if len(tokens) == 0 {
		return Cell{}, refuse("a row holds no value between two commas", "")
	}
	first, last := tokens[0], tokens[len(tokens)-1]
	cell := Cell{Text: p.text[first.from:last.to]}
	if len(tokens) == 1 {
		return p.single(first, cell)
	}
	if name := parameter(tokens); name != "" {
		cell.Kind, cell.Value = Named, name
		return cell, nil
	}
	if len(tokens) == 2 && tokens[1].kind == tokenNumber && (first.isByte('-') || first.isByte('+')) {
		cell.Kind, cell.Value = Number, strings.TrimPrefix(first.text, "+")+tokens[1].text
		return cell, nil
	}
	for _, t := range tokens {
		if t.kind == tokenParam && t.text == "?" {
			cell.Params++
		}
	}
	cell.Index = p.used
	p.used += cell.Params
	return cell, nil
}

func (p *parser) single(t token, cell Cell) (Cell, error) {
	switch {
	case t.kind == tokenParam && t.text == "?":
		cell.Kind, cell.Index = Positional, p.used
		p.used++
	case t.kind == tokenParam && t.text[0] == '$':
		n := 0
		for _, c := range []byte(t.text[1:]) {
			if n = n*10 + int(c-'0'); n > 1<<20 {
				break
			}
		}
		if n < 1 || n > 1<<16 {
			return cell, refuse("there is no argument "+t.text, "arguments are numbered from $1")
		}
		cell.Kind, cell.Index = Numbered, n-1
	case t.kind == tokenParam:
		cell.Kind, cell.Value = Named, t.text[1:]
	case t.kind == tokenString:
		if text, ok := Unquote(t.text); ok {
			cell.Kind, cell.Value = String, text
		}
	case t.kind == tokenNumber:
		cell.Kind, cell.Value = Number, t.text
	case t.is("null"):
		cell.Kind = Null
	case t.is("true"), t.is("false"):
		cell.Kind, cell.Value = Bool, strings.ToLower(t.text)
	case t.is("default"):
		return cell, refuse("DEFAULT among the values", "leave the column out of the list of columns")
	}
	return cell, nil
}

// parameter reads {name:Type}.
func parameter(tokens []token) string {
	if len(tokens) < 5 || !tokens[0].isByte('{') || tokens[1].kind != tokenWord ||
		!tokens[2].isByte(':') || !tokens[len(tokens)-1].isByte('}') {
		return ""
	}
	return tokens[1].text
}

// ParseName reads [database.]table as SQL has it.
func ParseName(text string) (database, table string, err error) {
	p := &parser{lexer: lexer{text: text}}
	in := &InsertInto{}
	if err := p.target(in); err != nil {
		return "", "", err
	}
	if t := p.next(); t.kind != tokenEnd {
		return "", "", refuse("the name of a table goes on with "+t.text, "quote a name that is no word")
	}
	return in.Database, in.Table, nil
}
