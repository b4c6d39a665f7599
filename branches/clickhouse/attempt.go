package clickhouse

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

var (
	errMarkerLost = errors.New("the marker was written and is not there")
	errRunning    = errors.New("an attempt of this branch is still running")
)

// Between two looks at what another attempt does.
const (
	shortestPause = 5 * time.Millisecond
	longestPause  = 200 * time.Millisecond
	// idTries: a query id stays taken for a moment after its query has ended.
	idTries = 40
)

// exclusive runs a statement under a query id that others use too. The server
// refuses a second query of one id while the first runs (C2).
func (s *Store) exclusive(ctx context.Context, id string, run func(id string) error) error {
	delay := shortestPause
	for try := 1; ; try++ {
		err := run(id)
		if code(err) != codeSameQueryID || try == idTries {
			return err
		}
		if s.pause(ctx, delay) != nil {
			return ended(ctx, err)
		}
		delay = min(2*delay, longestPause)
	}
}

// quiet returns when no attempt of a branch is running at the server, whoever
// has sent it. One that runs is waited for, and killed when it has run for longer
// than patience: a count beside a running insert is a guess.
func (s *Store) quiet(ctx context.Context, gid branches.GID, patience time.Duration) error {
	if guard.Off(guard.Quiet) {
		return nil
	}
	match := attempts(gid)
	delay := shortestPause
	for {
		var running uint64
		var seconds float64
		if _, err := s.row(ctx, "SELECT count(),max(elapsed) FROM system.processes WHERE "+match, &running, &seconds); err != nil {
			return err
		}
		if running == 0 {
			return nil
		}
		if seconds >= patience.Seconds() {
			if err := s.exec(ctx, "KILL QUERY WHERE "+match+" SYNC", options{}); err != nil {
				return errors.Join(errRunning, err)
			}
		}
		if err := s.pause(ctx, delay); err != nil {
			return errors.Join(err, errRunning)
		}
		delay = min(2*delay, longestPause)
	}
}

// settlePatience is quiet's for a branch that may still be given up.
func (s *Store) settlePatience() time.Duration { return min(s.opts.Patience, settlePatience) }

// attempts matches the statements of a branch: by query id, and by log_comment,
// which lists the gids where one insert serves several units.
func attempts(gid branches.GID) string {
	return "(startsWith(query_id," + chsql.Text(string(gid)+":") + ")" +
		" OR has(splitByChar(' ',Settings['log_comment'])," + chsql.Text(string(gid)) + "))"
}

// sighting is what a table holds of a unit.
type sighting struct {
	rows  int
	parts []string
	fate  branches.Fate // the unit's marker, at the same look
}

// same reports whether nothing has changed between two looks.
func (s sighting) same(other sighting) bool {
	return s.rows == other.rows && slices.Equal(s.parts, other.parts)
}

// count looks at a table, and at the marker in the same request.
func (s *Store) count(ctx context.Context, name tableName, txn branches.TxnID) (sighting, error) {
	var rows, markers uint64
	var latest int64
	var seen sighting
	_, err := s.row(ctx, "WITH (SELECT (count(),max(dat_tx_time)) FROM "+s.applied+" WHERE dat_txn="+literalTxn(txn)+") AS marker"+
		" SELECT count(),arraySort(groupUniqArray(_part)),marker.1,marker.2"+
		" FROM "+name.quoted()+" WHERE dat_txn="+literalTxn(txn), &rows, &seen.parts, &markers, &latest)
	if err != nil {
		return seen, s.vanished(name, txn, err)
	}
	seen.rows, seen.fate = int(rows), fateOf(markers, latest)
	return seen, nil
}

// vanished says what to do where a table has gone after the decision.
func (s *Store) vanished(name tableName, txn branches.TxnID, err error) error {
	if missing(err) || code(err) != codeUnknownTable && code(err) != codeUnknownDatabase {
		return err
	}
	return &branches.Error{
		Store: s.name, Doing: "insert rows", Err: err,
		Cause: "table " + name.String() + " was dropped after the unit was staged",
		Way: "create it again as it was, and recovery goes on; or give the branch up: rhizorecover resolve " +
			txn.String() + " --store " + s.name + " --as skipped",
		Asks: branches.Permanent,
	}
}
