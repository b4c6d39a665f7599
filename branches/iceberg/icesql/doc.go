// Package icesql is the SQL of Iceberg tables: it parses statements, binds them to
// a table's schema and their arguments, and evaluates them over Arrow batches. It
// reads and writes no table itself.
//
//	Parse                     text -> Statement, or a *SyntaxError with its position
//	Bind, BindSelect,         Statement + schema + arguments -> Predicate, Query,
//	BindUpdate, BindInsert      UpdatePlan, InsertPlan, or a *BindError
//	Predicate.Eval            batch -> Mask: False, Unknown or True for every row
//	Predicate.Prune           what a plan of files may leave out
//	Query.Rows                batches of a scan -> driver.Rows
//	UpdatePlan.Apply          batch + Mask -> batch with the new values
//	InsertPlan.AppendTo       arguments -> rows for data files, all or none
//
// # Grammar
//
//	statement = select | insert | update | delete | create | drop | show | describe .
//	select    = SELECT item {"," item} FROM name [as_of] [[AS] ident] [WHERE expr] [GROUP BY value {"," value}]
//	            [ORDER BY order {"," order}] [LIMIT constant] [OFFSET constant] .
//	item      = "*" | (expr | aggregate) [[AS] ident] .
//	aggregate = COUNT "(" "*" ")" | COUNT "(" [DISTINCT] value ")" | (SUM | MIN | MAX | AVG) "(" value ")" .
//	as_of     = FOR (VERSION | SYSTEM_VERSION | TIMESTAMP | SYSTEM_TIME) AS OF constant .
//	order     = (value | aggregate) [ASC | DESC] [NULLS (FIRST | LAST)] .
//	insert    = INSERT INTO name ["(" ident {"," ident} ")"] VALUES row {"," row} .
//	row       = "(" constant {"," constant} ")" .
//	update    = UPDATE name [[AS] ident] SET ident "=" value {"," ident "=" value} [WHERE expr] .
//	delete    = DELETE FROM name [[AS] ident] [WHERE expr] .
//	create    = CREATE NAMESPACE [IF NOT EXISTS] name
//	          | CREATE TABLE [IF NOT EXISTS] name "(" column {"," column} ")"
//	            {PARTITIONED BY "(" part {"," part} ")" | COMMENT string | TBLPROPERTIES "(" string "=" string {"," …} ")"} .
//	drop      = DROP (NAMESPACE | TABLE) [IF EXISTS] name .
//	show      = SHOW (TABLES | NAMESPACES) [(IN | FROM) name] .
//	describe  = (DESCRIBE | DESC) [TABLE] name .
//	column    = ident type [NOT NULL | NULL] [COMMENT string] .
//	part      = name | (BUCKET | TRUNCATE) "(" integer "," name ")" | (IDENTITY | YEAR | MONTH | DAY | HOUR) "(" name ")" .
//	type      = BOOLEAN | INT | LONG | FLOAT | DOUBLE | DATE | TIME | TIMESTAMP | TIMESTAMPTZ | TIMESTAMP_NS
//	          | TIMESTAMPTZ_NS | STRING | UUID | BINARY | DECIMAL "(" integer ["," integer] ")" | FIXED "(" integer ")"
//	          | STRUCT "<" ident [":"] type [NOT NULL] {"," …} ">" | LIST "<" type [NOT NULL] ">" | MAP "<" type "," type [NOT NULL] ">" .
//	expr      = and {OR and} .
//	and       = not {AND not} .
//	not       = NOT not | predicate .
//	predicate = value [("=" | "<>" | "!=" | "<" | "<=" | ">" | ">=") value | IS [NOT] (NULL | UNKNOWN | TRUE | FALSE)
//	          | [NOT] BETWEEN value AND value | [NOT] IN "(" value {"," value} ")" | [NOT] LIKE value [ESCAPE value]] .
//	value     = sum {"||" sum} .
//	sum       = product {("+" | "-") product} .
//	product   = unary {("*" | "/") unary} .
//	unary     = {"-" | "+"} (constant | name | "(" expr ")") .
//	constant  = NULL | TRUE | FALSE | number | string | "X" string | "?" | "$" integer | (":" | "@") ident
//	          | (DATE | TIME | TIMESTAMP | TIMESTAMPTZ | UUID | DECIMAL) string .
//	name      = ident {"." ident} .
//
// An unquoted identifier is folded to lower case, a "quoted" one is kept.
// docs/iceberg-sql.md says the rest in words: the types of values and results, the
// order of NULL, NaN and -0, and what is not in the grammar.
package icesql
