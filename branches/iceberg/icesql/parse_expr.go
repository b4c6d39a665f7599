package icesql

import (
	"strconv"
)

// expr reads an expression that may be a predicate; value reads one that may
// not begin with NOT, AND or OR outside parentheses.
func (p *parser) expr() Expr {
	defer p.deeper()()
	terms := []Expr{p.conjunction()}
	for p.word("or") {
		terms = append(terms, p.conjunction())
	}
	if len(terms) == 1 {
		return terms[0]
	}
	return &Or{Terms: terms}
}

func (p *parser) conjunction() Expr {
	terms := []Expr{p.negation()}
	for p.word("and") {
		terms = append(terms, p.negation())
	}
	if len(terms) == 1 {
		return terms[0]
	}
	return &And{Terms: terms}
}

func (p *parser) negation() Expr {
	if p.word("not") {
		defer p.deeper()()
		return &Not{X: p.negation()}
	}
	return p.predicate()
}

func (p *parser) predicate() Expr {
	x := p.value()
	if op, ok := p.comparison(); ok {
		return &Binary{Op: op, Left: x, Right: p.value()}
	}
	if p.word("is") {
		return p.isTest(x)
	}
	not := p.word("not")
	switch {
	case p.word("between"):
		low := p.value()
		p.expectWord("and")
		return &Between{X: x, Low: low, High: p.value(), Not: not}
	case p.word("in"):
		return &In{X: x, List: list(p, p.value), Not: not}
	case p.word("like"):
		l := &Like{X: x, Pattern: p.value(), Not: not}
		if p.word("escape") {
			l.Escape = p.value()
		}
		return l
	case not:
		p.unexpected()
	}
	return x
}

func (p *parser) comparison() (Op, bool) {
	for op := Eq; op <= Ge; op++ {
		if p.accept(op.String()) {
			return op, true
		}
	}
	return 0, false
}

func (p *parser) isTest(x Expr) Expr {
	not := p.word("not")
	switch {
	case p.word("null"), p.word("unknown"):
		return &IsNull{X: x, Not: not}
	case p.word("true"):
		return &IsTruth{X: x, Want: true, Not: not}
	case p.word("false"):
		return &IsTruth{X: x, Not: not}
	}
	p.unexpected()
	return nil
}

// value reads ||, + and -, * and /, signs: the loosest first.
func (p *parser) value() Expr { return p.chain(0) }

var levels = [...][]Op{{Concat}, {Add, Sub}, {Mul, Div}}

func (p *parser) chain(level int) Expr {
	if level == len(levels) {
		return p.unary()
	}
	x := p.chain(level + 1)
	for n := 0; ; n++ {
		op, ok := p.operator(levels[level])
		if !ok {
			return x
		}
		if n == maxDepth {
			p.refuse("more than " + strconv.Itoa(maxDepth) + " operators in one chain")
		}
		x = &Binary{Op: op, Left: x, Right: p.chain(level + 1)}
	}
}

func (p *parser) operator(ops []Op) (Op, bool) {
	for _, op := range ops {
		if p.accept(op.String()) {
			return op, true
		}
	}
	return 0, false
}

func (p *parser) unary() Expr {
	switch {
	case p.accept("-"):
		defer p.deeper()()
		x := p.unary()
		// -9223372036854775808 is one literal: its positive half does not fit.
		if l, ok := x.(*Literal); ok && l.Kind == NumberLiteral && l.Text[0] != '-' {
			return &Literal{Kind: NumberLiteral, Text: "-" + l.Text}
		}
		return &Neg{X: x}
	case p.accept("+"):
		defer p.deeper()()
		return p.unary()
	}
	return p.primary()
}

// typedLiterals are words that make a typed literal when a string follows.
var typedLiterals = map[string]LiteralKind{
	"date": DateLiteral, "time": TimeLiteral, "timestamp": TimestampLiteral,
	"timestamptz": TimestamptzLiteral, "uuid": UUIDLiteral, "decimal": DecimalLiteral, "numeric": DecimalLiteral,
}

var aggregates = map[string]AggFunc{"count": Count, "sum": Sum, "min": Min, "max": Max, "avg": Avg}

func (p *parser) primary() Expr {
	t := p.tok
	switch t.kind {
	case tokNumber:
		p.advance()
		return &Literal{Kind: NumberLiteral, Text: t.text}
	case tokString:
		p.advance()
		return &Literal{Kind: StringLiteral, Text: t.text}
	case tokBytes:
		p.advance()
		return &Literal{Kind: BytesLiteral, Text: t.text}
	case tokPlace:
		p.advance()
		return p.param(t)
	case tokQuoted:
		return &ColumnRef{Path: p.path("a column")}
	case tokWord:
		if x := p.wordPrimary(t); x != nil {
			return x
		}
	case tokSign:
		if t.text == "(" {
			return p.parenthesis()
		}
	case tokEnd:
	}
	p.try("a value")
	p.try("a column")
	p.try("(")
	p.unexpected()
	return nil
}

func (p *parser) parenthesis() Expr {
	p.advance()
	if p.isWord("select") {
		p.refuse("a query inside a statement is not supported")
	}
	x := p.expr()
	p.expect(")")
	return x
}

func (p *parser) wordPrimary(t token) Expr {
	switch t.text {
	case "null":
		p.advance()
		return &Literal{Kind: NullLiteral}
	case "true", "false":
		p.advance()
		return &Literal{Kind: BoolLiteral, Text: t.text}
	case "case":
		p.refuse("CASE is not supported")
	}
	if reserved[t.text] {
		return nil
	}
	p.advance()
	if kind, ok := typedLiterals[t.text]; ok && p.tok.kind == tokString {
		s := p.tok.text
		p.advance()
		return &Literal{Kind: kind, Text: s}
	}
	if p.tok.kind == tokSign && p.tok.text == "(" {
		return p.call(t)
	}
	path := []string{t.text}
	for p.accept(".") {
		path = append(path, p.label())
	}
	return &ColumnRef{Path: path}
}

func (p *parser) call(name token) Expr {
	fn, ok := aggregates[name.text]
	if !ok {
		p.refuseAt(name.start, "there is no function "+name.text+": this grammar has count, sum, min, max and avg")
	}
	defer p.deeper()()
	p.expect("(")
	a := &Aggregate{Func: fn}
	if fn == Count && p.accept("*") {
		p.expect(")")
		return a
	}
	a.Distinct = p.word("distinct")
	at := p.tok.start
	a.Arg = p.value()
	for x := range walk(a.Arg) {
		if _, nested := x.(*Aggregate); nested {
			p.refuseAt(at, "an aggregate inside an aggregate")
		}
	}
	if a.Distinct && fn != Count {
		p.refuseAt(at, "DISTINCT is supported in count only")
	}
	p.expect(")")
	return a
}

// param numbers a ? by its place. The two ways to number, and names, do not mix:
// what the first ? would mean beside a $1 differs between databases.
func (p *parser) param(t token) Expr {
	out := &Param{}
	switch t.text[0] {
	case '?':
		p.marks++
		out.Ordinal = p.marks
	case '$':
		p.ordinals = true
		out.Ordinal, _ = strconv.Atoi(t.text[1:]) // the lexer bounds it
	default:
		p.names = true
		out.Name = t.text[1:]
	}
	if p.marks > 0 && p.ordinals || p.names && (p.ordinals || p.marks > 0) {
		p.refuseAt(t.start, "?, $n and :name do not mix in one statement")
	}
	return out
}
