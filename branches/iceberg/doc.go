// Package iceberg is the branch of a meta-transaction in Apache Iceberg tables, over
// iceberg-go.
//
//	iceberg+sqlite:///FILE?warehouse=…          a SQL catalog in a SQLite file
//	iceberg+postgres://…?warehouse=…            a SQL catalog in PostgreSQL; what is not ours is pgx's
//	iceberg+rest+http(s)://HOST/PATH            a REST catalog
//	iceberg+dir:///DIR                          a Hadoop catalog in a local directory
//
//	warehouse=file:///path | s3://bucket/path   where files of new tables go
//	namespace=default                           the one that units write to
//	catalog=default                             catalog_name of a SQL catalog
//	schema=                                     of PostgreSQL
//	s3.endpoint= s3.region= s3.access-key-id= s3.secret-access-key= …   as in every Iceberg client
//	token= credential= scope= prefix= …         of a REST catalog
//
// A catalog has no transaction to prepare, so a unit writes its data files first,
// which nobody sees, and names them in one snapshot of each table when it is decided:
//
//	S2  Session.Exec    INSERT goes to memory, and at a size to Parquet files; DELETE and
//	                    UPDATE write the files that they touch anew
//	S3  Branch.Stage    the last rows go to files; each table is looked at again; the
//	                    payload names the files
//	S9  Branch.Finish,  a snapshot with dat.txn in its summary, once, by whoever
//	    Store.Finish    comes first
//	    Branch.Commit   the same where the unit has one branch
//
// # Once
//
// A worker may have slept since it looked, the catalog's answer may be lost, the
// snapshot may have expired before recovery looks, and a table may say that commits
// are to be retried. What holds against all of that:
//
// INVARIANT ICE1: a commit stands on exactly the head in which the unit was looked
// for and not found. The catalog's compare-and-swap refuses it on any other, and only
// a new look begins another try. The library's own retry is never used: it appends
// the same files to a head that holds them.
// INVARIANT ICE2: "not applied" is concluded from a complete history, or from every
// manifest and every older metadata file that is there; an UPDATE is never done again
// on less than a complete one.
// INVARIANT ICE3: every staged file is looked at before the commit. One that is gone
// is a heuristic outcome; named in a snapshot it would make the table unreadable.
// INVARIANT ICE4: a file is removed only where no snapshot can name it: before the
// commit was sent, after it was certainly refused, or when the unit is durably aborted
// and the table does not hold it.
// INVARIANT ICE5: a file is rewritten from a plan without a filter, and what a
// DELETE keeps are the rows for which its condition is not true.
//
// # What of iceberg-go is not used
//
// Version 0.7.0 loses rows in Table.Delete, Table.Overwrite with a filter and
// filtered reads (NULLs in a copy-on-write DELETE, half-null row groups, rows that
// were deleted before), panics in goroutines of its own on some filters, and commits
// files that do not exist. A filter chooses files here and nothing else; rows are
// read whole and judged by icesql.
//
// # What stands in a store
//
// The marker of a unit is its snapshot: dat.txn and dat.tx_time in the summary. A
// tombstone is an empty snapshot with dat.never. They go with the snapshots'
// expiry, so there is nothing to clean. The property dat.meta of the namespace ties
// the store to its journal; in a directory, which has no properties, files
// dat.meta-N stand in for it.
package iceberg
