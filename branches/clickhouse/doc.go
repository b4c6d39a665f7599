// Package clickhouse is the branch of a meta-transaction in ClickHouse (23.3
// and newer), over clickhouse-go's native interface.
//
// ClickHouse has no transaction to prepare, so the rows of a unit are kept here
// until it is decided:
//
//	S2  Session.Exec    INSERT … VALUES is checked against the table and kept
//	    CopyFrom        column by column; everything else that writes is refused
//	S3  Branch.Stage    the tables are checked again; the rows become a payload,
//	                    which travels in the journal's record
//	S9  Branch.Finish,  the payload is inserted, once, by whoever comes first:
//	    Store.Finish    the coordinator or any recovery worker
//	    Branch.Commit   the same where the unit has one branch
//
// # The finisher
//
// "Once" has no help from the server: an insert may go on after its client has
// given up, may stop half-way, and may be begun by two workers at once, one of
// which slept for a minute since it last looked. What holds against all of that
// (attempt.go, apply.go, repair.go), in this order:
//
//	the marker is there            done; nothing is counted
//	an attempt is running          wait for its end, or end it
//	count the rows of this unit
//	  none                         insert them, by a statement that holds the
//	                               condition itself: no row and no marker of this unit
//	  all                          the next table
//	  fewer, or more               an attempt was torn: look once more, and if nothing
//	                               has moved delete the parts that were counted
//	after the last table           the marker row
//
// The coordinator, who knows that nobody has tried before, begins with the insert and
// then lets the marker's own statement count: it writes the marker only where
// every table holds its rows. If it does not, the list above is gone through.
//
// INVARIANT C1: a statement that adds or takes rows of a unit says in its own
// text under which condition it may. Whatever was looked up before is old news.
// INVARIANT C2: all attempts at one table of one branch have one query id, which
// the server runs one at a time.
// INVARIANT C3: the marker is the last thing written. Rows that the application
// deletes after it never come back.
// INVARIANT C4: the deduplication token of an attempt after a DELETE was never
// used before: the server remembers tokens longer than rows.
// INVARIANT C5: rows are taken for torn only after two equal looks at their parts
// with a quiet server in between. An insert that began after the server was quiet
// shows its parts one by one; while they are there no other begins (C1), and a
// DELETE changes the names of parts. With one look a worker deleted the first part of
// another's insert, which was then counted, and marked, as whole: rows were lost.
//
// Two tables of ours lie in the DSN's database: dat_applied holds the markers
// (dat_txn, dat_tx_time; 0 is a tombstone: this unit never commits), dat_meta the
// row that ties the store to its journal.
package clickhouse
