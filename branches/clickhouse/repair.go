package clickhouse

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

var (
	errRaw     = errors.New("rhizodat: read payload column: it is only written")
	errPending = errors.New("a DELETE of these rows has been accepted and is not done")
)

// defaultDeleteTime bounds a DELETE: on a full disk it waits for ever.
const defaultDeleteTime = 20 * time.Second

// repair takes back what a torn insert has left: the parts that were counted and
// no others, and only while no marker stands (C1). Whether it did is counted
// afterwards, never believed.
func (s *Store) repair(ctx context.Context, r *run, b *batch, seen sighting) error {
	condition := "dat_txn=" + literalTxn(r.txn)
	if !guard.Off(guard.Parts) {
		condition += " AND _part IN (" + textList(seen.parts) + ")"
	}
	if !b.told {
		b.told = true
		s.opts.Logger.WarnContext(ctx, "rhizodat: rows of a unit are incomplete in a table: deleting them to insert them again",
			"store", s.name, "dat_txn", r.txn, "table", b.name.String(), "rows", seen.rows, "want", b.before(len(b.lists)))
	}
	err := s.deleteRows(ctx, b.name, r.txn, condition+" AND "+s.noMarker(r.txn))
	s.reach(momentDeleted)
	return err
}

func textList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = chsql.Text(text)
	}
	return strings.Join(quoted, ",")
}

// deleteRows deletes within a bound. One that the server has accepted before
// and not carried out is waited for, not repeated: each would stay and run when
// there is room again.
func (s *Store) deleteRows(ctx context.Context, name tableName, txn branches.TxnID, condition string) error {
	ctx, cancel := context.WithTimeout(ctx, s.deleteTime)
	defer cancel()
	pending, err := s.pending(ctx, name, txn)
	if err != nil {
		return err
	}
	if pending {
		if err := s.pause(ctx, longestPause); err != nil {
			return errors.Join(err, errPending)
		}
		return s.busy("delete rows", "table "+name.String(), errPending)
	}
	err = s.exec(ctx, "DELETE FROM "+name.quoted()+" WHERE "+condition, options{settings: map[string]any{"mutations_sync": 2}})
	switch {
	case err == nil:
		return nil
	case code(err) == codeUnknownIdentifier && strings.Contains(err.Error(), "_part"):
		return &branches.Error{
			Store: s.name, Doing: "delete rows", Err: err,
			Cause: "rows of a torn insert cannot be taken back: this server does not take _part in a DELETE",
			Way:   "with no recovery running, DELETE FROM " + name.quoted() + " WHERE dat_txn='" + txn.String() + "'",
			Asks:  branches.Transient, ByHand: true,
		}
	case code(err) == codeUnfinished || !answered(err):
		// Detached: the end of ctx may be why there is no answer. pending has its own bound.
		if waiting, lookErr := s.pending(context.WithoutCancel(ctx), name, txn); lookErr == nil && waiting {
			return s.busy("delete rows", "table "+name.String(), errors.Join(errPending, err))
		}
	}
	return err
}

// pending reports whether a DELETE of rows of txn waits in the table.
func (s *Store) pending(ctx context.Context, name tableName, txn branches.TxnID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.deleteTime)
	defer cancel()
	var waiting uint64
	_, err := s.row(ctx, "SELECT count() FROM system.mutations WHERE database="+chsql.Text(name.database)+
		" AND table="+chsql.Text(name.table)+" AND NOT is_done AND position(command,"+chsql.Text(txn.String())+")>0", &waiting)
	return waiting > 0, err
}

// clear takes every row of a unit out of tables that it may have reached. No
// marker may stand: of a unit that is applied nothing is taken.
func (s *Store) clear(ctx context.Context, gid branches.GID, txn branches.TxnID, names []tableName) error {
	for _, name := range names {
		if err := s.clearTable(ctx, gid, txn, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) clearTable(ctx context.Context, gid branches.GID, txn branches.TxnID, name tableName) error {
	var last error
	for range rounds {
		if err := s.quiet(ctx, gid, s.settlePatience()); err != nil {
			return err
		}
		seen, err := s.count(ctx, name, txn)
		switch {
		case code(err) == codeUnknownTable && !missing(err):
			return nil // with the table its rows are gone
		case err != nil:
			return err
		case seen.rows == 0:
			return nil
		}
		last = s.deleteRows(ctx, name, txn, "dat_txn="+literalTxn(txn)+
			" AND (SELECT count() FROM "+s.applied+" WHERE dat_txn="+literalTxn(txn)+" AND dat_tx_time>0)=0")
		if !again(ctx, last) {
			return last
		}
	}
	return s.busy("delete rows", "table "+name.String()+" keeps rows of a unit that was given up", last)
}
