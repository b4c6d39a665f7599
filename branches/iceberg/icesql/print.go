package icesql

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
)

// How tightly the forms of the grammar bind, loosest first. A part that binds
// looser than its place demands stands in parentheses.
const (
	bindOr = iota + 1
	bindAnd
	bindNot
	bindPredicate
	bindConcat
	bindAdd
	bindMul
	bindUnary
	bindPrimary
)

func binding(e Expr) int {
	switch e := e.(type) {
	case *Or:
		return bindOr
	case *And:
		return bindAnd
	case *Not:
		return bindNot
	case *IsNull, *IsTruth, *Between, *In, *Like:
		return bindPredicate
	case *Neg:
		return bindUnary
	case *Binary:
		switch e.Op {
		case Concat:
			return bindConcat
		case Add, Sub:
			return bindAdd
		case Mul, Div:
			return bindMul
		case Eq, Ne, Lt, Le, Gt, Ge:
			return bindPredicate
		}
	}
	return bindPrimary
}

func within(e Expr, least int) string {
	if binding(e) < least {
		return "(" + e.String() + ")"
	}
	return e.String()
}

func (l *Literal) String() string {
	switch l.Kind {
	case NullLiteral:
		return "NULL"
	case BoolLiteral:
		return strings.ToUpper(l.Text)
	case NumberLiteral:
		return l.Text
	case StringLiteral:
		return quoteText(l.Text)
	case BytesLiteral:
		return "X'" + hex.EncodeToString([]byte(l.Text)) + "'"
	case DateLiteral:
		return "DATE " + quoteText(l.Text)
	case TimeLiteral:
		return "TIME " + quoteText(l.Text)
	case TimestampLiteral:
		return "TIMESTAMP " + quoteText(l.Text)
	case TimestamptzLiteral:
		return "TIMESTAMPTZ " + quoteText(l.Text)
	case UUIDLiteral:
		return "UUID " + quoteText(l.Text)
	case DecimalLiteral:
		return "DECIMAL " + quoteText(l.Text)
	}
	return "NULL"
}

func (p *Param) String() string {
	if p.Name != "" {
		return ":" + p.Name
	}
	return "$" + strconv.Itoa(p.Ordinal)
}

func (c *ColumnRef) String() string { return quotePath(c.Path) }

func (a *And) String() string { return joined(a.Terms, " AND ", bindNot) }
func (o *Or) String() string  { return joined(o.Terms, " OR ", bindAnd) }
func (n *Not) String() string { return "NOT " + within(n.X, bindNot) }

func (b *Binary) String() string {
	left, right := bindConcat, bindConcat // of a comparison
	if !b.Op.Compares() {
		left = binding(b)
		right = left + 1
	}
	return within(b.Left, left) + " " + b.Op.String() + " " + within(b.Right, right)
}

// String leaves a space after the sign: two signs together would open a comment.
func (n *Neg) String() string { return "- " + within(n.X, bindUnary) }

func (i *IsNull) String() string { return within(i.X, bindConcat) + " IS " + negated(i.Not) + "NULL" }

func (i *IsTruth) String() string {
	return within(i.X, bindConcat) + " IS " + negated(i.Not) + strings.ToUpper(strconv.FormatBool(i.Want))
}

func (b *Between) String() string {
	return within(b.X, bindConcat) + " " + negated(b.Not) + "BETWEEN " + within(b.Low, bindConcat) + " AND " + within(b.High, bindConcat)
}

func (i *In) String() string {
	return within(i.X, bindConcat) + " " + negated(i.Not) + "IN (" + joined(i.List, ", ", bindConcat) + ")"
}

func (l *Like) String() string {
	s := within(l.X, bindConcat) + " " + negated(l.Not) + "LIKE " + within(l.Pattern, bindConcat)
	if l.Escape != nil {
		s += " ESCAPE " + within(l.Escape, bindConcat)
	}
	return s
}

func (a *Aggregate) String() string {
	switch {
	case a.Arg == nil:
		return a.Func.String() + "(*)"
	case a.Distinct:
		return a.Func.String() + "(DISTINCT " + within(a.Arg, bindConcat) + ")"
	}
	return a.Func.String() + "(" + within(a.Arg, bindConcat) + ")"
}

func negated(not bool) string {
	if not {
		return "NOT "
	}
	return ""
}

func joined(list []Expr, sep string, least int) string {
	var b strings.Builder
	for i, e := range list {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(within(e, least))
	}
	return b.String()
}

func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (s *CreateNamespace) String() string {
	return "CREATE NAMESPACE " + when(s.IfNotExists, "IF NOT EXISTS ") + quotePath(s.Name)
}

func (s *DropNamespace) String() string {
	return "DROP NAMESPACE " + when(s.IfExists, "IF EXISTS ") + quotePath(s.Name)
}

func (s *DropTable) String() string {
	return "DROP TABLE " + when(s.IfExists, "IF EXISTS ") + s.Table.String()
}

func (s *ShowTables) String() string     { return "SHOW TABLES" + inNamespace(s.Namespace) }
func (s *ShowNamespaces) String() string { return "SHOW NAMESPACES" + inNamespace(s.Parent) }
func (s *Describe) String() string       { return "DESCRIBE " + s.Table.String() }

func inNamespace(ns []string) string {
	if len(ns) == 0 {
		return ""
	}
	return " IN " + quotePath(ns)
}

func when(ok bool, s string) string {
	if ok {
		return s
	}
	return ""
}

func (s *CreateTable) String() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE " + when(s.IfNotExists, "IF NOT EXISTS ") + s.Table.String() + " (")
	for i, c := range s.Columns {
		b.WriteString(when(i > 0, ", ") + quoteIdent(c.Name) + " " + typeText(c.Type) + tail(c.Required, c.Doc))
	}
	b.WriteString(")")
	if len(s.Partition) > 0 {
		b.WriteString(" PARTITIONED BY (")
		for i, f := range s.Partition {
			b.WriteString(when(i > 0, ", ") + f.String())
		}
		b.WriteString(")")
	}
	if s.Comment != "" {
		b.WriteString(" COMMENT " + quoteText(s.Comment))
	}
	if s.Properties != nil {
		b.WriteString(" TBLPROPERTIES (")
		for i, key := range slices.Sorted(maps.Keys(s.Properties)) {
			b.WriteString(when(i > 0, ", ") + quoteText(key) + " = " + quoteText(s.Properties[key]))
		}
		b.WriteString(")")
	}
	return b.String()
}

func (f PartitionField) String() string {
	col := quotePath(f.Path)
	switch t := f.Transform.(type) {
	case iceberg.BucketTransform:
		return fmt.Sprintf("bucket(%d, %s)", t.NumBuckets, col)
	case iceberg.TruncateTransform:
		return fmt.Sprintf("truncate(%d, %s)", t.Width, col)
	case iceberg.IdentityTransform:
		return col
	}
	return f.Transform.String() + "(" + col + ")"
}

func tail(required bool, doc string) string {
	return when(required, " NOT NULL") + when(doc != "", " COMMENT "+quoteText(doc))
}

// typeText is a type in this package's grammar.
func typeText(t iceberg.Type) string {
	switch t := t.(type) {
	case iceberg.DecimalType:
		return fmt.Sprintf("decimal(%d, %d)", t.Precision(), t.Scale())
	case iceberg.FixedType:
		return fmt.Sprintf("fixed(%d)", t.Len())
	case *iceberg.ListType:
		return "list<" + typeText(t.Element) + tail(t.ElementRequired, "") + ">"
	case *iceberg.MapType:
		return "map<" + typeText(t.KeyType) + ", " + typeText(t.ValueType) + tail(t.ValueRequired, "") + ">"
	case *iceberg.StructType:
		parts := make([]string, len(t.FieldList))
		for i, f := range t.FieldList {
			parts[i] = quoteIdent(f.Name) + ": " + typeText(f.Type) + tail(f.Required, f.Doc)
		}
		return "struct<" + strings.Join(parts, ", ") + ">"
	}
	return t.String()
}
