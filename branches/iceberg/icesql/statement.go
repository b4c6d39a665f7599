package icesql

import (
	"strings"

	"github.com/apache/iceberg-go"
)

// Statement is one parsed statement: one of the pointer types of this file.
// String prints it in this package's grammar, so that Parse(s.String()) gives
// an equal statement.
type Statement interface {
	String() string
	statement()
}

// Name is a table's name: the parts of its namespace, outermost first, and the
// table. An unquoted identifier is folded to lower case, a quoted one is kept.
type Name struct {
	Namespace []string // empty where the statement names the table alone
	Table     string
}

// Parts is the name as a catalog takes it.
func (n Name) Parts() []string {
	return append(append(make([]string, 0, len(n.Namespace)+1), n.Namespace...), n.Table)
}

func (n Name) String() string { return quotePath(n.Parts()) }

// CreateNamespace is CREATE NAMESPACE [IF NOT EXISTS] name.
type CreateNamespace struct {
	Name        []string
	IfNotExists bool
}

// DropNamespace is DROP NAMESPACE [IF EXISTS] name.
type DropNamespace struct {
	Name     []string
	IfExists bool
}

// CreateTable is CREATE TABLE. Schema and PartitionSpec make iceberg-go's own
// types of it.
type CreateTable struct {
	Table       Name
	IfNotExists bool
	Columns     []Column
	Partition   []PartitionField
	Properties  map[string]string // nil where there is no TBLPROPERTIES
	Comment     string
}

// Column is one column of a CREATE TABLE. The field ids inside a nested Type
// are provisional: a catalog assigns its own.
type Column struct {
	Name     string
	Type     iceberg.Type
	Required bool // NOT NULL
	Doc      string
}

// PartitionField is one entry of PARTITIONED BY.
type PartitionField struct {
	Path      []string // the column; more than one part for a field of a struct
	Transform iceberg.Transform
}

// DropTable is DROP TABLE [IF EXISTS] name.
type DropTable struct {
	Table    Name
	IfExists bool
}

// Insert is INSERT INTO … VALUES. Every row has as many values as there are
// Columns, or, where no columns are named, as many as the first row.
type Insert struct {
	Table   Name
	Columns []string // empty: all columns of the table in its order
	Rows    [][]Expr
}

// Select is a query of one table.
type Select struct {
	Items   []Item
	From    Name
	Alias   string
	AsOf    *AsOf // nil: the table as it is
	Where   Expr  // nil: every row
	GroupBy []Expr
	OrderBy []Order
	Limit   Expr // a number or a parameter; nil: all
	Offset  Expr // a number or a parameter; nil: from the first
}

// Item is one column of a Select's result.
type Item struct {
	Star  bool // all columns of the table; Expr is nil
	Expr  Expr
	Alias string
}

// AsOf is FOR VERSION AS OF or FOR TIMESTAMP AS OF; one of the two is set, to a
// literal or a parameter.
type AsOf struct {
	Version   Expr
	Timestamp Expr
}

// Order is one key of ORDER BY.
type Order struct {
	Expr  Expr
	Desc  bool
	Nulls NullOrder
}

// NullOrder says where ORDER BY puts NULL. The zero NullOrder is the default:
// NULL counts as greater than any value, as in PostgreSQL.
type NullOrder uint8

// The orders of NULL.
const (
	NullsDefault NullOrder = iota
	NullsFirst
	NullsLast
)

// Delete is DELETE FROM table [WHERE …].
type Delete struct {
	Table Name
	Alias string
	Where Expr // nil: every row
}

// Update is UPDATE table SET … [WHERE …].
type Update struct {
	Table Name
	Alias string
	Set   []Assignment
	Where Expr // nil: every row
}

// Assignment is column = value.
type Assignment struct {
	Column string
	Value  Expr
}

// ShowTables is SHOW TABLES [IN namespace].
type ShowTables struct {
	Namespace []string // empty: of every namespace
}

// ShowNamespaces is SHOW NAMESPACES [IN namespace].
type ShowNamespaces struct {
	Parent []string // empty: the outermost ones
}

// Describe is DESCRIBE [TABLE] name.
type Describe struct {
	Table Name
}

func (*CreateNamespace) statement() {}
func (*DropNamespace) statement()   {}
func (*CreateTable) statement()     {}
func (*DropTable) statement()       {}
func (*Insert) statement()          {}
func (*Select) statement()          {}
func (*Delete) statement()          {}
func (*Update) statement()          {}
func (*ShowTables) statement()      {}
func (*ShowNamespaces) statement()  {}
func (*Describe) statement()        {}

// IsDDL reports whether s changes the catalog and not a table's rows; such a
// statement cannot be part of a unit of work.
func IsDDL(s Statement) bool {
	switch s.(type) {
	case *CreateNamespace, *DropNamespace, *CreateTable, *DropTable:
		return true
	}
	return false
}

// Writes reports whether s changes anything at all.
func Writes(s Statement) bool {
	switch s.(type) {
	case *Select, *ShowTables, *ShowNamespaces, *Describe:
		return false
	}
	return true
}

// quoteIdent prints an identifier so that Parse reads the same one.
func quoteIdent(s string) string {
	if plainIdent(s) && !reserved[s] {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

func quotePath(parts []string) string {
	quoted := make([]string, len(parts))
	for i, p := range parts {
		quoted[i] = quoteIdent(p)
	}
	return strings.Join(quoted, ".")
}
