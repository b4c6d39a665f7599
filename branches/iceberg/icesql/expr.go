package icesql

// Expr is an expression: one of the pointer types of this file.
type Expr interface {
	String() string
	expr()
}

// LiteralKind is the type that a literal's spelling gives it.
type LiteralKind uint8

// The kinds of literals. A StringLiteral takes the type of the column that it
// meets; every other kind keeps its own.
const (
	NullLiteral        LiteralKind = iota // NULL
	BoolLiteral                           // TRUE, FALSE
	NumberLiteral                         // 12, -1.50, 1e-3
	StringLiteral                         // 'text'
	BytesLiteral                          // X'00FF'
	DateLiteral                           // DATE '2026-02-03'
	TimeLiteral                           // TIME '04:05:06.123456'
	TimestampLiteral                      // TIMESTAMP '2026-02-03 04:05:06'
	TimestamptzLiteral                    // TIMESTAMPTZ '2026-02-03 04:05:06+02'
	UUIDLiteral                           // UUID '…'
	DecimalLiteral                        // DECIMAL '12.30'
)

// Literal is a constant as it was written.
type Literal struct {
	Kind LiteralKind
	Text string // unquoted; the bytes themselves for BytesLiteral; "true" or "false" for BoolLiteral
}

// Param is a parameter: by position (Ordinal ≥ 1, Name empty) or by name
// (Ordinal 0), as database/sql's NamedValue.
type Param struct {
	Ordinal int
	Name    string
}

// ColumnRef names a column, or a field inside a struct column (Path a.b.c).
// The parser has already cut the table's name or alias from its front.
type ColumnRef struct {
	Path []string
}

// And is true where every term is, by three-valued logic. It has at least two terms.
type And struct{ Terms []Expr }

// Or is true where one term is, by three-valued logic. It has at least two terms.
type Or struct{ Terms []Expr }

// Not negates; NOT unknown is unknown.
type Not struct{ X Expr }

// Op is the operator of a Binary.
type Op uint8

// The operators: comparisons first, then arithmetic.
const (
	Eq Op = iota
	Ne
	Lt
	Le
	Gt
	Ge
	Add
	Sub
	Mul
	Div
	Concat
)

func (o Op) String() string {
	switch o {
	case Eq:
		return "="
	case Ne:
		return "<>"
	case Lt:
		return "<"
	case Le:
		return "<="
	case Gt:
		return ">"
	case Ge:
		return ">="
	case Add:
		return "+"
	case Sub:
		return "-"
	case Mul:
		return "*"
	case Div:
		return "/"
	case Concat:
		return "||"
	}
	return "?"
}

// Compares reports whether o is a comparison.
func (o Op) Compares() bool { return o <= Ge }

// Binary is left op right.
type Binary struct {
	Op          Op
	Left, Right Expr
}

// Neg is the arithmetic negation of something that is not a number literal.
type Neg struct{ X Expr }

// IsNull is x IS [NOT] NULL.
type IsNull struct {
	X   Expr
	Not bool
}

// IsTruth is x IS [NOT] TRUE or FALSE; it is never unknown.
type IsTruth struct {
	X    Expr
	Want bool
	Not  bool
}

// Between is x [NOT] BETWEEN low AND high.
type Between struct {
	X, Low, High Expr
	Not          bool
}

// In is x [NOT] IN (list). The list is never empty.
type In struct {
	X    Expr
	List []Expr
	Not  bool
}

// Like is x [NOT] LIKE pattern [ESCAPE escape]. Without Escape the escape
// character is the backslash, as in PostgreSQL.
type Like struct {
	X, Pattern Expr
	Escape     Expr // nil: '\'
	Not        bool
}

// AggFunc is an aggregate function.
type AggFunc uint8

// The aggregate functions.
const (
	Count AggFunc = iota
	Sum
	Min
	Max
	Avg
)

func (f AggFunc) String() string {
	switch f {
	case Count:
		return "count"
	case Sum:
		return "sum"
	case Min:
		return "min"
	case Max:
		return "max"
	case Avg:
		return "avg"
	}
	return "?"
}

// Aggregate is a call of an aggregate function; it stands in a select list or in
// ORDER BY only, and not inside another expression.
type Aggregate struct {
	Func     AggFunc
	Distinct bool
	Arg      Expr // nil: count(*)
}

func (*Literal) expr()   {}
func (*Param) expr()     {}
func (*ColumnRef) expr() {}
func (*And) expr()       {}
func (*Or) expr()        {}
func (*Not) expr()       {}
func (*Binary) expr()    {}
func (*Neg) expr()       {}
func (*IsNull) expr()    {}
func (*IsTruth) expr()   {}
func (*Between) expr()   {}
func (*In) expr()        {}
func (*Like) expr()      {}
func (*Aggregate) expr() {}
