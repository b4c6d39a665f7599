// Package guard names the safety guards of the protocol, so that a test build
// can take one out and prove that the checkers notice.
//
// In a normal build Off is the constant false and the compiler removes every
// use of it. With the build tag rhizodat_guards the environment variable
// RHIZODAT_GUARD_OFF names the one guard that is out.
package guard

// Name of a guard. The text is what RHIZODAT_GUARD_OFF holds.
type Name string

// The guards, each with the failure it prevents.
const (
	// Tag: the command tag of PREPARE TRANSACTION is checked. PostgreSQL answers
	// an aborted transaction with ROLLBACK and no error.
	Tag Name = "tag"
	// Order: nothing is released before COMMITTED was acknowledged.
	Order Name = "order"
	// Exists: "does not exist" at COMMIT PREPARED is not success by itself.
	Exists Name = "exists"
	// Conditional: S7 expects PREPARED.
	Conditional Name = "conditional"
	// Marker: a lost answer to a one-phase COMMIT is settled by the marker.
	Marker Name = "marker"
	// Forced: recovery acts only on an ABORTED that it forced to the disk.
	Forced Name = "forced"
	// Fence: S7 under a lease expects the fence.
	Fence Name = "fence"
	// FenceLock: it locks the row that carries the fence. A look alone is write skew.
	FenceLock Name = "fence_lock"

	// Of ClickHouse, where a payload is inserted once by whoever comes first.

	// Token: an insert after a DELETE has a deduplication token that was never
	// used. The server remembers the old one and swallows the rows.
	Token Name = "token"
	// Quiet: nothing is counted while an attempt is running.
	Quiet Name = "quiet"
	// Twice: a torn insert is looked at twice before its rows are deleted. It may
	// be one that has only just begun.
	Twice Name = "twice"
	// Inside: an insert holds its condition in its own statement. A worker may
	// have slept since it counted.
	Inside Name = "inside"
	// MarkerInside: that condition asks for the marker too. Rows that the
	// application deleted would come back.
	MarkerInside Name = "marker_inside"
	// Parts: a DELETE takes only the parts that were counted. Another worker may
	// have inserted the rows anew.
	Parts Name = "parts"
	// Whole: the marker of a first attempt is written only where all rows are
	// there. What was acknowledged may have been taken for a repetition.
	Whole Name = "whole"

	// Of Iceberg, where a payload is committed once by whoever comes first.

	// OneCommit: the library does not retry a commit. Its retry appends the same
	// files to a head that holds them.
	OneCommit Name = "one_commit"
	// Pinned: a commit stands on exactly the head that was looked at.
	Pinned Name = "pinned"
	// Nulls: a row for which the WHERE of a DELETE is unknown stays.
	Nulls Name = "nulls"
	// Unfiltered: a file is rewritten from a plan without a filter. One with it
	// lacks equality deletes, whose rows come back.
	Unfiltered Name = "unfiltered"

	// Of drevo.

	// Outdated: a transaction that drevo refuses because another one came first is
	// run again on what that one left.
	Outdated Name = "outdated"
	// Between: nothing runs between drevo's prepare and the COMMIT that detaches the
	// connection. The next unit's COMMIT there would be acknowledged and not done.
	Between Name = "between"
	// Log: a prepare that drevo refuses because its log failed proves nothing. A
	// restart may find it prepared.
	Log Name = "log"
	// Line: a decision that was only read in drevo is followed by two records of
	// its log. The first may share a line with it, and be lost with it.
	Line Name = "line"
)

// Names lists every guard.
var Names = []Name{Tag, Order, Exists, Conditional, Marker, Forced, Fence, FenceLock, Token, Quiet, Twice, Inside, MarkerInside, Parts, Whole, OneCommit, Pinned, Nulls, Unfiltered, Outdated, Line, Between, Log}
