// Package orm runs the tools that Go programs reach PostgreSQL with over the
// driver, each once with one store (where the driver is pgx) and once with two
// stores and a journal. Its code is what docs/orms.md shows.
//
// It is a module of its own, so that the library's go.mod names none of them.
package orm
