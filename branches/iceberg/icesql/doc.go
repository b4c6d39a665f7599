// Package icesql is the SQL of Iceberg tables: it parses statements, binds them to
// a table's schema and their arguments, and evaluates them over Arrow batches.
package icesql
