package icesql

import (
	"fmt"
	"slices"
)

func (p *parser) selectStatement() Statement {
	s := &Select{}
	if p.isWord("distinct") || p.isWord("all") {
		p.refuse("SELECT DISTINCT is not supported: name the columns in GROUP BY")
	}
	s.Items = commas(p, p.item)
	p.expectWord("from")
	s.From = p.name()
	s.AsOf = p.asOf()
	s.Alias = p.alias()
	if s.AsOf == nil {
		s.AsOf = p.asOf()
	}
	if p.tok.kind == tokSign && p.tok.text == "," || p.isWord("join") || p.isWord("left") || p.isWord("inner") {
		p.refuse("a query reads one table")
	}
	s.Where = p.where()
	if p.words("group", "by") {
		s.GroupBy = commas(p, p.value)
	}
	if p.isWord("having") {
		p.refuse("HAVING is not supported")
	}
	if p.words("order", "by") {
		s.OrderBy = commas(p, p.orderKey)
	}
	// Either order, as PostgreSQL takes them.
	for {
		switch {
		case s.Limit == nil && p.word("limit"):
			s.Limit = p.count("LIMIT")
			continue
		case s.Offset == nil && p.word("offset"):
			s.Offset = p.count("OFFSET")
			continue
		}
		break
	}
	p.refuseAggregates(s.Where, "WHERE")
	for _, g := range s.GroupBy {
		p.refuseAggregates(g, "GROUP BY")
	}
	p.unscope(s.From, s.Alias, s.exprs())
	return s
}

// aggregateAlone refuses sum(a) / count(*): the caller can divide.
func (p *parser) aggregateAlone(e Expr) {
	if _, ok := e.(*Aggregate); !ok {
		p.refuseAggregates(e, "a larger expression: select it as a column of its own")
	}
}

func (p *parser) item() Item {
	if p.accept("*") {
		return Item{Star: true}
	}
	it := Item{Expr: p.expr()}
	p.aggregateAlone(it.Expr)
	if p.word("as") {
		it.Alias = p.ident("an alias")
	} else if p.isIdent() {
		it.Alias = p.ident("an alias")
	}
	return it
}

// asOf reads FOR VERSION AS OF or FOR TIMESTAMP AS OF, and the SQL standard's
// spelling of the two with SYSTEM_.
func (p *parser) asOf() *AsOf {
	if !p.word("for") {
		return nil
	}
	var out AsOf
	switch {
	case p.word("version"), p.word("system_version"):
		p.expectWord("as")
		p.expectWord("of")
		out.Version = p.constant("a snapshot id")
	case p.word("timestamp"), p.word("system_time"):
		p.expectWord("as")
		p.expectWord("of")
		out.Timestamp = p.constant("a timestamp")
	default:
		p.unexpected()
	}
	return &out
}

func (p *parser) alias() string {
	if p.word("as") {
		return p.ident("an alias")
	}
	if p.isIdent() {
		return p.ident("an alias")
	}
	return ""
}

func (p *parser) where() Expr {
	if !p.word("where") {
		return nil
	}
	return p.expr()
}

func (p *parser) orderKey() Order {
	o := Order{Expr: p.value()}
	p.aggregateAlone(o.Expr)
	if p.word("desc") {
		o.Desc = true
	} else {
		p.word("asc")
	}
	if p.word("nulls") {
		switch {
		case p.word("first"):
			o.Nulls = NullsFirst
		case p.word("last"):
			o.Nulls = NullsLast
		default:
			p.unexpected()
		}
	}
	return o
}

// count reads the number of LIMIT or OFFSET.
func (p *parser) count(what string) Expr {
	e := p.constant("a number of rows")
	if l, ok := e.(*Literal); ok && l.Kind != NumberLiteral && l.Kind != NullLiteral {
		p.refuse(what + " takes a number or a parameter")
	}
	return e
}

// constant reads a literal or a parameter.
func (p *parser) constant(what string) Expr {
	p.try(what)
	at := p.tok.start
	e := p.unary()
	switch e.(type) {
	case *Literal, *Param:
		return e
	}
	p.refuseAt(at, "here must stand "+what+" as a literal or a parameter")
	return nil
}

func (p *parser) insertStatement() Statement {
	p.expectWord("into")
	s := &Insert{Table: p.name()}
	if p.tok.kind == tokSign && p.tok.text == "(" {
		s.Columns = list(p, func() string { return p.ident("a column") })
	}
	if p.isWord("select") {
		p.refuse("INSERT … SELECT is not supported: insert VALUES")
	}
	p.expectWord("values")
	width := len(s.Columns)
	s.Rows = commas(p, func() []Expr {
		at := p.tok.start
		row := list(p, p.value)
		if width == 0 {
			width = len(row)
		}
		if len(row) != width {
			p.refuseAt(at, fmt.Sprintf("a row of %d values where %d are expected", len(row), width))
		}
		return row
	})
	if p.isWord("returning") || p.isWord("on") {
		p.refuse("RETURNING and ON CONFLICT are not supported: an Iceberg table has no keys")
	}
	for _, row := range s.Rows {
		for _, v := range row {
			p.refuseAggregates(v, "VALUES")
		}
	}
	return s
}

func (p *parser) updateStatement() Statement {
	s := &Update{Table: p.name()}
	if !p.isWord("set") {
		s.Alias = p.alias()
	}
	p.expectWord("set")
	s.Set = commas(p, func() Assignment {
		path := p.path("a column")
		path = p.cut(path, s.Table, s.Alias)
		if len(path) > 1 {
			p.refuse("a field inside a struct cannot be set alone: set the whole column")
		}
		p.expect("=")
		return Assignment{Column: path[0], Value: p.value()}
	})
	s.Where = p.where()
	exprs := []Expr{s.Where}
	for _, a := range s.Set {
		p.refuseAggregates(a.Value, "SET")
		exprs = append(exprs, a.Value)
	}
	p.refuseAggregates(s.Where, "WHERE")
	p.unscope(s.Table, s.Alias, exprs)
	return s
}

func (p *parser) deleteStatement() Statement {
	p.expectWord("from")
	s := &Delete{Table: p.name()}
	s.Alias = p.alias()
	s.Where = p.where()
	p.refuseAggregates(s.Where, "WHERE")
	p.unscope(s.Table, s.Alias, []Expr{s.Where})
	return s
}

func (p *parser) refuseAggregates(e Expr, clause string) {
	for x := range walk(e) {
		if a, ok := x.(*Aggregate); ok {
			p.refuse("the aggregate " + a.Func.String() + " cannot stand in " + clause)
		}
	}
}

// unscope cuts the table's name or alias from the front of column paths, as in
// t.a or ns.t.a: generated SQL writes them so.
func (p *parser) unscope(table Name, alias string, exprs []Expr) {
	for _, e := range exprs {
		for x := range walk(e) {
			if c, ok := x.(*ColumnRef); ok {
				c.Path = p.cut(c.Path, table, alias)
			}
		}
	}
}

func (*parser) cut(path []string, table Name, alias string) []string {
	fronts := [][]string{table.Parts(), {table.Table}}
	if alias != "" {
		fronts = [][]string{{alias}}
	}
	for _, front := range fronts {
		if n := len(front); n < len(path) && slices.Equal(path[:n], front) {
			return path[n:]
		}
	}
	return path
}
