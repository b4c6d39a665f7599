package sqltext

// Kind tells the statements that start, end or mark a transaction from all others.
type Kind int

// The kinds. The zero Kind is Plain: a statement for one store.
const (
	Plain              Kind = iota
	Begin                   // BEGIN, START TRANSACTION
	Commit                  // COMMIT, END
	Rollback                // ROLLBACK, ABORT
	PrepareTransaction      // PREPARE TRANSACTION; PREPARE name AS is Plain
	CommitPrepared          // COMMIT PREPARED
	RollbackPrepared        // ROLLBACK PREPARED
	Savepoint               // SAVEPOINT name
	RollbackTo              // ROLLBACK TO [SAVEPOINT] name
	Release                 // RELEASE [SAVEPOINT] name
)

// String is the statement's keyword as PostgreSQL's manual writes it, or "plain".
func (k Kind) String() string {
	switch k {
	case Plain:
		return "plain"
	case Begin:
		return "BEGIN"
	case Commit:
		return "COMMIT"
	case Rollback:
		return "ROLLBACK"
	case PrepareTransaction:
		return "PREPARE TRANSACTION"
	case CommitPrepared:
		return "COMMIT PREPARED"
	case RollbackPrepared:
		return "ROLLBACK PREPARED"
	case Savepoint:
		return "SAVEPOINT"
	case RollbackTo:
		return "ROLLBACK TO SAVEPOINT"
	case Release:
		return "RELEASE SAVEPOINT"
	}
	return "unknown"
}

// Refusal is nil for Plain and for savepoints, which the driver carries out
// itself, and a *TransactionControl that names the call to use instead for
// every other kind.
func (k Kind) Refusal() error {
	switch k {
	case Plain, Savepoint, RollbackTo, Release:
		return nil
	case Begin, Commit, Rollback, PrepareTransaction, CommitPrepared, RollbackPrepared:
		return k.control()
	}
	return nil
}

func (k Kind) control() *TransactionControl {
	const twoPhase = "tx.Commit (two-phase commit is the driver's own)"
	instead := ""
	switch k {
	case Plain:
	case Begin:
		instead = "db.BeginTx"
	case Commit:
		instead = "tx.Commit"
	case Rollback:
		instead = "tx.Rollback"
	case PrepareTransaction, CommitPrepared:
		instead = twoPhase
	case RollbackPrepared:
		instead = "tx.Rollback (two-phase commit is the driver's own)"
	case Savepoint, RollbackTo, Release:
		instead = "a call of its own for each savepoint statement"
	}
	return &TransactionControl{Keyword: k.String(), Instead: instead}
}
