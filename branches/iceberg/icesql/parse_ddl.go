package icesql

import (
	"fmt"

	"github.com/apache/iceberg-go"
)

func (p *parser) createStatement() Statement {
	switch {
	case p.word("namespace"), p.word("schema"), p.word("database"):
		s := &CreateNamespace{IfNotExists: p.words("if", "not", "exists")}
		s.Name = p.path("a namespace")
		return s
	case p.word("table"):
		return p.createTable()
	}
	p.unexpected()
	return nil
}

func (p *parser) dropStatement() Statement {
	switch {
	case p.word("namespace"), p.word("schema"), p.word("database"):
		s := &DropNamespace{IfExists: p.words("if", "exists")}
		s.Name = p.path("a namespace")
		return s
	case p.word("table"):
		s := &DropTable{IfExists: p.words("if", "exists")}
		s.Table = p.name()
		return s
	}
	p.unexpected()
	return nil
}

func (p *parser) showStatement() Statement {
	tables := p.word("tables")
	if !tables && !p.word("namespaces") && !p.word("schemas") && !p.word("databases") {
		p.unexpected()
	}
	var in []string
	if p.word("in") || p.word("from") {
		in = p.path("a namespace")
	}
	if tables {
		return &ShowTables{Namespace: in}
	}
	return &ShowNamespaces{Parent: in}
}

// nestedIDs is where the provisional field ids inside types begin: above those of
// the columns, which count from 1.
const nestedIDs = 1 << 24

func (p *parser) createTable() Statement {
	s := &CreateTable{IfNotExists: p.words("if", "not", "exists")}
	s.Table = p.name()
	p.lex.colon = true // a CREATE TABLE has no parameters
	ids := nestedIDs
	seen := map[string]bool{}
	s.Columns = list(p, func() Column {
		at := p.tok.start
		c := p.column(&ids)
		if seen[c.Name] {
			p.refuseAt(at, "the column stands twice")
		}
		seen[c.Name] = true
		return c
	})
	for {
		switch {
		case s.Partition == nil && p.words("partitioned", "by"):
			s.Partition = list(p, p.partitionField)
			continue
		case s.Comment == "" && p.word("comment"):
			s.Comment = p.stringText("a comment")
			continue
		case s.Properties == nil && p.word("tblproperties"):
			s.Properties = p.properties()
			continue
		}
		return s
	}
}

func (p *parser) column(ids *int) Column {
	if p.isWord("primary") || p.isWord("unique") || p.isWord("foreign") || p.isWord("constraint") || p.isWord("check") {
		p.refuse("an Iceberg table has no constraints but NOT NULL")
	}
	c := Column{Name: p.ident("a column")}
	c.Type = p.columnType(ids)
	c.Required, c.Doc = p.columnTail()
	return c
}

// columnTail reads NOT NULL or NULL, and COMMENT 'text'.
func (p *parser) columnTail() (required bool, doc string) {
	if p.words("not", "null") {
		required = true
	} else {
		p.word("null")
	}
	if p.word("comment") {
		doc = p.stringText("a comment")
	}
	switch {
	case p.isWord("primary"), p.isWord("unique"), p.isWord("references"), p.isWord("check"):
		p.refuse("an Iceberg table has no constraints but NOT NULL")
	case p.isWord("default"):
		p.refuse("DEFAULT is not supported")
	}
	return required, doc
}

func (p *parser) properties() map[string]string {
	out := map[string]string{}
	list(p, func() struct{} {
		at := p.tok.start
		key := p.stringText("a property's name in quotes")
		p.expect("=")
		if _, twice := out[key]; twice {
			p.refuseAt(at, "the property stands twice")
		}
		out[key] = p.stringText("a property's value in quotes")
		return struct{}{}
	})
	return out
}

// timeTransforms are written as PARTITIONED BY (year(c)) or, as Spark does, years(c).
var timeTransforms = map[string]iceberg.Transform{
	"identity": iceberg.IdentityTransform{},
	"year":     iceberg.YearTransform{}, "years": iceberg.YearTransform{},
	"month": iceberg.MonthTransform{}, "months": iceberg.MonthTransform{},
	"day": iceberg.DayTransform{}, "days": iceberg.DayTransform{},
	"hour": iceberg.HourTransform{}, "hours": iceberg.HourTransform{},
}

func (p *parser) partitionField() PartitionField {
	at, word := p.tok.start, p.tok.kind == tokWord
	path := p.path("a column or a transform")
	if !word || len(path) > 1 || p.tok.kind != tokSign || p.tok.text != "(" {
		return PartitionField{Path: path, Transform: iceberg.IdentityTransform{}}
	}
	p.expect("(")
	out := PartitionField{Transform: timeTransforms[path[0]]}
	switch path[0] {
	case "bucket":
		n := p.integer("the number of buckets", 1, 1<<31-1)
		out.Transform = iceberg.BucketTransform{NumBuckets: n}
		p.expect(",")
	case "truncate":
		n := p.integer("the width", 1, 1<<31-1)
		out.Transform = iceberg.TruncateTransform{Width: n}
		p.expect(",")
	}
	if out.Transform == nil {
		p.refuseAt(at, "there is no partition transform "+path[0]+": there are identity, bucket, truncate, year, month, day and hour")
	}
	out.Path = p.path("a column")
	p.expect(")")
	return out
}

// primitives are the type names; the SQL names of other databases stand beside
// Iceberg's where they can mean one thing only.
var primitives = map[string]iceberg.Type{
	"boolean": iceberg.PrimitiveTypes.Bool, "bool": iceberg.PrimitiveTypes.Bool,
	"int": iceberg.PrimitiveTypes.Int32, "integer": iceberg.PrimitiveTypes.Int32,
	"long": iceberg.PrimitiveTypes.Int64, "bigint": iceberg.PrimitiveTypes.Int64,
	"float": iceberg.PrimitiveTypes.Float32, "real": iceberg.PrimitiveTypes.Float32,
	"double": iceberg.PrimitiveTypes.Float64,
	"date":   iceberg.PrimitiveTypes.Date, "time": iceberg.PrimitiveTypes.Time,
	"timestamp": iceberg.PrimitiveTypes.Timestamp, "timestamptz": iceberg.PrimitiveTypes.TimestampTz,
	"timestamp_ns": iceberg.PrimitiveTypes.TimestampNs, "timestamptz_ns": iceberg.PrimitiveTypes.TimestampTzNs,
	"string": iceberg.PrimitiveTypes.String, "text": iceberg.PrimitiveTypes.String, "varchar": iceberg.PrimitiveTypes.String,
	"uuid": iceberg.PrimitiveTypes.UUID, "binary": iceberg.PrimitiveTypes.Binary, "bytea": iceberg.PrimitiveTypes.Binary,
}

func (p *parser) columnType(ids *int) iceberg.Type {
	defer p.deeper()()
	if p.tok.kind != tokWord {
		p.try("a type")
		p.unexpected()
	}
	t := p.tok
	p.advance()
	switch t.text {
	case "decimal", "numeric":
		return p.decimalType()
	case "fixed":
		p.expect("(")
		n := p.integer("the length", 1, 1<<31-1)
		p.expect(")")
		return iceberg.FixedTypeOf(n)
	case "list", "array":
		return p.listType(ids)
	case "map":
		return p.mapType(ids)
	case "struct":
		return p.structType(ids)
	case "double":
		p.word("precision")
	}
	typ, ok := primitives[t.text]
	if !ok {
		p.refuseAt(t.start, "there is no type "+t.text+": Iceberg has boolean, int, long, float, double, decimal(p,s), date, time, timestamp, timestamptz, "+
			"timestamp_ns, timestamptz_ns, string, uuid, fixed(n), binary, struct<…>, list<…> and map<…>")
	}
	if t.text == "varchar" && p.tok.kind == tokSign && p.tok.text == "(" {
		p.refuse("a string has no greatest length in Iceberg")
	}
	return typ
}

func (p *parser) decimalType() iceberg.Type {
	p.expect("(")
	precision := p.integer("the precision", 1, 38)
	scale := 0
	if p.accept(",") {
		at := p.tok.start
		if scale = p.integer("the scale", 0, 38); scale > precision {
			p.refuseAt(at, fmt.Sprintf("the scale must not be greater than the precision, %d", precision))
		}
	}
	p.expect(")")
	return iceberg.DecimalTypeOf(precision, scale)
}

func (p *parser) listType(ids *int) iceberg.Type {
	*ids++
	l := &iceberg.ListType{ElementID: *ids}
	p.expect("<")
	l.Element = p.columnType(ids)
	l.ElementRequired = p.words("not", "null")
	p.closeAngle()
	return l
}

func (p *parser) mapType(ids *int) iceberg.Type {
	*ids += 2
	m := &iceberg.MapType{KeyID: *ids - 1, ValueID: *ids}
	p.expect("<")
	m.KeyType = p.columnType(ids)
	p.words("not", "null") // a key is always required
	p.expect(",")
	m.ValueType = p.columnType(ids)
	m.ValueRequired = p.words("not", "null")
	p.closeAngle()
	return m
}

func (p *parser) structType(ids *int) iceberg.Type {
	s, seen := &iceberg.StructType{}, map[string]bool{}
	p.expect("<")
	s.FieldList = commas(p, func() iceberg.NestedField {
		*ids++
		at := p.tok.start
		f := iceberg.NestedField{ID: *ids, Name: p.ident("a field")}
		if seen[f.Name] {
			p.refuseAt(at, "the field stands twice")
		}
		seen[f.Name] = true
		p.accept(":")
		f.Type = p.columnType(ids)
		f.Required, f.Doc = p.columnTail()
		return f
	})
	p.closeAngle()
	return s
}

// closeAngle takes one >. Two types that end together are one sign only in
// languages with a shift operator; here >> never is a token.
func (p *parser) closeAngle() { p.expect(">") }
