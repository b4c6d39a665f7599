package icesql

import "strings"

func (s *Insert) String() string {
	var b strings.Builder
	b.WriteString("INSERT INTO " + s.Table.String() + " ")
	if len(s.Columns) > 0 {
		b.WriteString("(")
		for i, c := range s.Columns {
			b.WriteString(when(i > 0, ", ") + quoteIdent(c))
		}
		b.WriteString(") ")
	}
	b.WriteString("VALUES ")
	for i, row := range s.Rows {
		b.WriteString(when(i > 0, ", ") + "(" + joined(row, ", ", bindConcat) + ")")
	}
	return b.String()
}

func (s *Select) String() string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i, it := range s.Items {
		b.WriteString(when(i > 0, ", ") + it.String())
	}
	b.WriteString(" FROM " + s.From.String())
	if s.AsOf != nil {
		b.WriteString(s.AsOf.String())
	}
	b.WriteString(asAlias(s.Alias) + whereText(s.Where))
	if len(s.GroupBy) > 0 {
		b.WriteString(" GROUP BY " + joined(s.GroupBy, ", ", bindConcat))
	}
	for i, o := range s.OrderBy {
		b.WriteString(when(i == 0, " ORDER BY ") + when(i > 0, ", ") + o.String())
	}
	if s.Limit != nil {
		b.WriteString(" LIMIT " + s.Limit.String())
	}
	if s.Offset != nil {
		b.WriteString(" OFFSET " + s.Offset.String())
	}
	return b.String()
}

func (it Item) String() string {
	if it.Star {
		return "*"
	}
	return it.Expr.String() + asAlias(it.Alias)
}

func (a *AsOf) String() string {
	if a.Version != nil {
		return " FOR VERSION AS OF " + a.Version.String()
	}
	return " FOR TIMESTAMP AS OF " + a.Timestamp.String()
}

func (o Order) String() string {
	s := within(o.Expr, bindConcat) + when(o.Desc, " DESC")
	switch o.Nulls {
	case NullsFirst:
		return s + " NULLS FIRST"
	case NullsLast:
		return s + " NULLS LAST"
	case NullsDefault:
	}
	return s
}

func (s *Delete) String() string {
	return "DELETE FROM " + s.Table.String() + asAlias(s.Alias) + whereText(s.Where)
}

func (s *Update) String() string {
	var b strings.Builder
	b.WriteString("UPDATE " + s.Table.String() + asAlias(s.Alias) + " SET ")
	for i, a := range s.Set {
		b.WriteString(when(i > 0, ", ") + quoteIdent(a.Column) + " = " + within(a.Value, bindConcat))
	}
	return b.String() + whereText(s.Where)
}

func asAlias(a string) string { return when(a != "", " AS "+quoteIdent(a)) }

func whereText(e Expr) string {
	if e == nil {
		return ""
	}
	return " WHERE " + e.String()
}
