package postgres

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A branch of a unit of several stores sends its BEGIN with its first statement
// where it can (design/speed.md, section 2): one wait less. Until then nothing
// of it has reached the server, and [Branch.Begun] says so: the first statement
// may answer driver.ErrBadConn, and the caller begins once more on a new session.

// mayDelay reports whether the session can put off a BEGIN. pgx must keep
// statements by their text, for the message then takes one wait; a tracer must
// see the statements that the application sends; and the session's own
// lock_timeout must be known, since the first statement runs under it.
func (s *Session) mayDelay() bool {
	return s.prepares && s.bounded && s.client().Config().Tracer == nil
}

// Begun reports whether BEGIN has been sent.
func (b *Branch) Begun() bool { return b == nil || b.opening == "" }

// begin sends a BEGIN that was put off, by itself.
func (b *Branch) begin(ctx context.Context) error {
	if b.Begun() {
		return nil
	}
	if b.session.dead() {
		return driver.ErrBadConn
	}
	if err := b.session.beginBounded(ctx, b.opening); err != nil {
		return b.session.notBegun(ctx, err)
	}
	b.opening = ""
	return nil
}

// execFirst runs a statement with its values behind the BEGIN that was put off.
// done is false where nothing of either has happened: then BEGIN goes by itself,
// and the statement's error is the one that pgx has for it.
func (b *Branch) execFirst(ctx context.Context, query string, values []any) (tag pgconn.CommandTag, done bool, err error) {
	s := b.session
	first, ok := s.first(ctx, query, values)
	if !ok {
		return tag, false, nil
	}
	pipeline := s.client().PgConn().StartPipeline(ctx)
	for _, name := range first.before {
		pipeline.SendQueryPrepared(name, nil, nil, nil)
	}
	pipeline.SendQueryStatement(first.statement, first.built.ParamValues, first.built.ParamFormats, nil)
	err = pipeline.Sync()
	var shown string
	for range first.before {
		if err == nil {
			shown, err = answer(pipeline, shown)
		}
	}
	if err != nil {
		_ = pipeline.Close() // the error at hand is the first
		return tag, false, s.notOpened(ctx, err)
	}
	b.opening = ""
	tag, err = tagOf(pipeline)
	if closeErr := pipeline.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = s.boundBy(ctx, shown)
	}
	return tag, true, err
}

// first is a branch's first statement, ready to be sent behind its BEGIN.
type first struct {
	before    []string // the prepared statements before it
	statement *pgconn.StatementDescription
	built     pgx.ExtendedQueryBuilder
}

// firsts bounds the texts that a session keeps prepared as first statements. A
// program has few.
const firsts = 64

// first prepares a statement once for the session's life, under a name of ours,
// and encodes its values. ok is false where one of both cannot be done, or is of
// no use: a text without parameters may be several statements, and the columns
// of a result may change under a prepared one.
func (s *Session) first(ctx context.Context, query string, values []any) (f first, ok bool) {
	if len(values) == 0 || !plainValue(values[0]) || traced(query) {
		return f, false
	}
	f.statement = s.firsts[query]
	if f.statement == nil {
		if len(s.firsts) == firsts {
			return f, false
		}
		described, err := s.client().PgConn().Prepare(ctx, planName("first "+query), query, nil)
		if err != nil {
			return f, false
		}
		if s.firsts == nil {
			s.firsts = map[string]*pgconn.StatementDescription{}
		}
		s.firsts[query], f.statement = described, described
	}
	if len(f.statement.Fields) > 0 || f.built.Build(s.client().TypeMap(), f.statement, values) != nil {
		return f, false
	}
	for _, text := range []string{s.branch.opening, showBound, s.bound} {
		name, err := s.plan(ctx, text)
		if err != nil {
			return f, false
		}
		f.before = append(f.before, name)
	}
	return f, true
}

// answer reads one answer of BEGIN and its companions; the value of SHOW stays.
func answer(pipeline *pgconn.Pipeline, shown string) (string, error) {
	results, err := pipeline.GetResults()
	if err != nil {
		return shown, err
	}
	reader, ok := results.(*pgconn.ResultReader)
	if !ok {
		return shown, errNoAnswer
	}
	got := reader.Read()
	if len(got.Rows) == 1 {
		shown = string(got.Rows[0][0])
	}
	return shown, got.Err
}

var errNoAnswer = errors.New("the server answered something else")

// tagOf reads the answer of the statement itself.
func tagOf(pipeline *pgconn.Pipeline) (pgconn.CommandTag, error) {
	results, err := pipeline.GetResults()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	reader, ok := results.(*pgconn.ResultReader)
	if !ok {
		return pgconn.CommandTag{}, errNoAnswer
	}
	return reader.Close()
}

// notOpened is nil where BEGIN was refused by a session that is well.
func (s *Session) notOpened(ctx context.Context, err error) error {
	if code(err) == codeNoSuchStatement {
		s.forget()
	}
	if !s.dead() && s.client().PgConn().TxStatus() == statusIdle && ctx.Err() == nil {
		return nil
	}
	if serverError(err) != nil || unsent(err) {
		// Ended by the server before it answered BEGIN, or never reached.
		_ = s.conn.Close() // the error at hand says more
		return driver.ErrBadConn
	}
	return err
}

// plainValue tells a statement's value from the options that pgx takes in its
// place.
func plainValue(value any) bool {
	switch value.(type) {
	case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.QueryRewriter:
		return false
	}
	return true
}
