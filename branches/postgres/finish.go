package postgres

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// The two ends of a prepared transaction; each is also its command tag.
const (
	commitPrepared   = "COMMIT PREPARED"
	rollbackPrepared = "ROLLBACK PREPARED"
)

// Finish is S8 over the branch's own session, where that still lives and acts
// as the login that prepared it, else what Store.Finish does. After the unit's
// Commit has returned the session belongs to others: Store.Finish is the one
// to call.
func (b *Branch) Finish(ctx context.Context, ref branches.Ref) error {
	s := b.session
	if !b.elsewhere && s.Usable() {
		err := s.store.finishOver(ctx, s, ref)
		if err == nil || !s.dead() && code(err) != codeNoPrivilege {
			return err
		}
	}
	return s.store.Finish(ctx, ref)
}

// Finish commits the prepared transaction. nil is the server's own tag, or a
// marker that proves it was done before.
func (s *Store) Finish(ctx context.Context, ref branches.Ref) error {
	return s.run(ctx, func(session *Session) error {
		return s.finishOver(ctx, session, ref)
	})
}

func (s *Store) finishOver(ctx context.Context, session *Session, ref branches.Ref) error {
	err := s.end(ctx, session, commitPrepared, ref)
	if code(err) != codeUndefinedObject {
		return err
	}
	// Somebody has ended it. That alone is never success: the marker decides.
	if guard.Off(guard.Exists) {
		return nil
	}
	fate, err := s.lookUp(ctx, session, ref.Txn)
	switch {
	case err != nil:
		return s.explain("finish branch", err)
	case fate == branches.FateApplied:
		return nil
	case fate == branches.FateNever:
		return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Evidence: "no prepared transaction, and a tombstone for a marker"}
	}
	return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Evidence: "no prepared transaction and no marker"}
}

// Abort rolls the prepared transaction back. That it is not there is success,
// unless its marker shows that it was committed.
func (s *Store) Abort(ctx context.Context, ref branches.Ref) error {
	return s.run(ctx, func(session *Session) error {
		err := s.end(ctx, session, rollbackPrepared, ref)
		if code(err) != codeUndefinedObject {
			return err
		}
		fate, err := s.lookUp(ctx, session, ref.Txn)
		if err != nil {
			return s.explain("abort branch", err)
		}
		if fate == branches.FateApplied {
			return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Committed: true, Evidence: "its marker stands"}
		}
		return nil
	})
}

// end sends COMMIT PREPARED or ROLLBACK PREPARED.
func (s *Store) end(ctx context.Context, session *Session, verb string, ref branches.Ref) error {
	literal, err := literalGID(ref.GID)
	if err == nil && ref.GID.Txn() != ref.Txn {
		err = errors.New("the gid belongs to another unit")
	}
	if err != nil {
		return s.fail("end branch", err)
	}
	got, err := ask(ctx, session.client(), verb+" "+literal)
	if code(err) == codeNoPrivilege {
		return s.endAsOwner(ctx, session, verb, literal)
	}
	if err == nil && got.last() != verb {
		err = errors.New("the server answered with another command tag")
	}
	return s.endError(err)
}

// endAsOwner tries once under the role that owns the prepared transaction: one
// that was prepared under another login, or by an older deployment.
func (s *Store) endAsOwner(ctx context.Context, session *Session, verb, literal string) error {
	// Its role is not put back but thrown away with the connection.
	session.spoiled = true
	got, err := ask(ctx, session.client(), "SELECT owner,pg_catalog.pg_backend_pid() FROM pg_catalog.pg_prepared_xacts"+
		" WHERE gid="+literal+" AND database=pg_catalog.current_database()")
	if err != nil {
		return s.endError(err)
	}
	if owner := got.cell(0, 0); owner != "" {
		// Behind a pooler the role might be set on one connection and the verb
		// sent over another, and a third program would go on under the role.
		if got.cell(0, 1) != literalInt(int64(session.client().PgConn().PID())) {
			return s.notOwner(owner, errPooled)
		}
		if _, err := ask(ctx, session.client(), "SET ROLE "+quote(owner)); err != nil {
			return s.notOwner(owner, err)
		}
		got, err := ask(ctx, session.client(), verb+" "+literal)
		if err == nil && got.last() != verb {
			err = errors.New("the server answered with another command tag")
		}
		if code(err) == codeNoPrivilege {
			return s.notOwner(owner, err)
		}
		return s.endError(err)
	}
	// Gone since: the verb now says so.
	_, err = ask(ctx, session.client(), verb+" "+literal)
	return s.endError(err)
}

var errPooled = errors.New("a connection pooler stands between, so that the role cannot be taken: run rhizorecover without it")

func (s *Store) notOwner(owner string, err error) error {
	return &branches.Error{
		Store: s.name, Doing: "end branch", Cause: "its prepared transaction belongs to role " + owner, Err: err,
		Way:  "grant that role to the login of this store, or end it as a superuser",
		Asks: branches.Permanent,
	}
}

func (s *Store) endError(err error) error {
	if err == nil {
		return nil
	}
	wrapped := &branches.Error{Store: s.name, Doing: "end branch", Err: err, Asks: classify(err)}
	if code(err) == codeNotInState {
		wrapped.Cause, wrapped.Asks = "another session is ending it", branches.Transient
	}
	return wrapped
}
