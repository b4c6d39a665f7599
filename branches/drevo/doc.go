// Package drevo is the branch of a meta-transaction in drevo, a graph store with
// two-phase commit, over the Bolt protocol.
//
// Statements are Cypher and run through neo4j-go-driver, with its errors. What
// this package adds is the end of a transaction:
//
//	S3  Branch.Stage    the marker node is written
//	S5  Branch.Prepare  CALL drevo.tx.prepare, and behind it the COMMIT that closes
//	                    the connection's transaction and does nothing else
//	S8  Store.Finish    CALL drevo.tx.commitPrepared, from any process
//	    Branch.Commit   COMMIT
//
// What decides the design is drevo's:
//
//   - A conflict is of the whole graph. Any commit since BEGIN, of any node,
//     refuses COMMIT and prepare; what was refused was not done, and the unit is
//     worth running again.
//   - One transaction at most is prepared in a graph, and while it is, every other
//     write of that graph is refused: the fence.
//   - An error of drevo's log proves nothing. What it refused may be there after a
//     restart, prepared or committed, so such an answer is as good as none.
//   - A failed statement is the end of its transaction. There are no savepoints.
//   - After prepare, nothing may run before COMMIT: the connection would keep a
//     mark that makes the next transaction's COMMIT a silent no-op.
//
// INVARIANT D1: our own nodes are written in transactions only. drevo logs an
// autocommit statement after others have seen it, and a restart may then undo a
// transaction that came later.
//
// Our nodes: DatApplied, one per marker, its title DatApplied:<dat_txn>, which the
// engine keeps unique; DatMeta, the one that ties the store to its journal;
// DatGraph, the graph's identity (internal/bolt).
package drevo
