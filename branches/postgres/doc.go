// Package postgres is the branch of a meta-transaction in PostgreSQL (13 and
// newer, and servers that speak like it).
//
// Statements run through [github.com/jackc/pgx/v5/stdlib], with its errors, its
// types and its settings: a program with one store and no journal sees pgx and
// nothing else. What this package adds is the end of a transaction:
//
//	S3  Branch.Stage    deferred constraints are checked, the role goes back to
//	                    the login, the marker row is written; one message, which
//	                    travels with that of S5 or COMMIT where the vote is certain
//	S5  Branch.Prepare  PREPARE TRANSACTION, its command tag checked
//	S8  Branch.Finish   COMMIT PREPARED over the same session, or
//	    Store.Finish    over any other, from any process
//	    Branch.Commit   COMMIT
//
// Two tables of ours lie in one schema, fixed when the store is opened and
// always written out, because the application may change search_path or make a
// temporary table of the same name: dat_applied holds the markers (dat_txn,
// dat_tx_time; 0 is a tombstone: this unit never commits), dat_meta the one row
// that ties the store to its journal. Both travel with every backup of the
// database, which is what makes a marker a proof.
//
// What of ours is the same in every unit (BEGIN, S3) is prepared once for a
// session, under names that say the text (message.go). With an exec mode made for
// a pooler in transaction mode nothing is: it then goes as text, by the simple
// protocol, as everything else of ours always does. Names and numbers in such text
// are quoted or made of digits; nothing of a user's gets in.
package postgres
