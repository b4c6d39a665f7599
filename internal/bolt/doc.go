// Package bolt is what the drevo branch and the drevo journal share of a
// connection to drevo: the URL of a graph, reads and writes that hold drevo's
// rules, what its errors prove, and the identity of a graph.
//
// The rules, each with the failure that it prevents:
//
//   - A write of ours is a transaction, never an autocommit statement. drevo
//     applies and logs an autocommit statement write by write, and its log may
//     hold an acknowledged one behind a transaction that came after it: a
//     restart then undoes the transaction.
//   - A conflict is of the whole graph: whatever was committed since BEGIN, in
//     another node too, makes COMMIT fail. It proves that nothing was written.
//   - No answer to COMMIT, and "write-ahead log write failed", prove nothing: the
//     record may be in the log, and a restart then applies it.
package bolt
