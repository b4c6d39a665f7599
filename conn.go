package rhizodat

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/internal/sqltext"
)

// Conn is what (*sql.Conn).Raw hands out.
type Conn interface {
	// Store returns the session's own connection of the named store's client,
	// opened if need be, or an error. postgres.Conn gives it its type.
	Store(name string) any
}

// conn is one driver connection: at most one session per store. database/sql
// serialises its calls.
type conn struct {
	connector *Connector
	slots     map[string]*slot
	only      *slot      // of a DSN with one store
	tx        *tx        // the open unit
	owned     *Connector // closed with it; of Driver.Open
	closed    bool
}

var (
	_ driver.Conn               = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.SessionResetter    = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
	_ Conn                      = (*conn)(nil)
)

func newConn(connector *Connector) *conn {
	c := &conn{connector: connector, slots: make(map[string]*slot, len(connector.stores))}
	for name, store := range connector.stores {
		s := &slot{name: name, store: store}
		c.slots[name] = s
		if len(connector.stores) == 1 {
			c.only = s
		}
	}
	return c
}

// ExecContext routes one statement and runs it.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	st, s, err := c.dispatch(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return driver.ResultNoRows, c.tx.savepoint(ctx, st)
	}
	call := callOf(args)
	run := func() (driver.Result, error) {
		if call != nil {
			return call.run(ctx, s.session)
		}
		return s.session.Exec(ctx, st.Text, args)
	}
	result, err := run()
	if err == driver.ErrBadConn { //nolint:errorlint // the contract's own value, never wrapped; hot path
		if err = c.again(ctx, s); err == nil {
			result, err = run()
		}
	}
	return result, c.hint(ctx, s, err)
}

// QueryContext routes one query and runs it.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	st, s, err := c.dispatch(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return noRows{}, c.tx.savepoint(ctx, st)
	}
	rows, err := s.session.Query(ctx, st.Text, args)
	if err == driver.ErrBadConn { //nolint:errorlint // as in ExecContext
		if err = c.again(ctx, s); err == nil {
			rows, err = s.session.Query(ctx, st.Text, args)
		}
	}
	if err != nil {
		return nil, c.hint(ctx, s, err)
	}
	return columned(rows), nil
}

// hint lets the store name the likely cause of a statement's error by the other
// stores of the unit. The error stays the store's own value.
func (c *conn) hint(ctx context.Context, s *slot, err error) error {
	h, ok := s.store.(branches.Hinter)
	if err == nil || !ok || c.tx == nil || len(c.tx.unit.Parts) < 2 {
		return err
	}
	others := map[string]branches.Store{}
	for _, p := range c.tx.unit.Parts {
		if p != s.part {
			others[p.Name] = p.Store
		}
	}
	h.Hint(ctx, err, others)
	return err
}

// dispatch finds the statement's store and opens what it needs there. A nil
// slot is a savepoint of the whole unit.
func (c *conn) dispatch(ctx context.Context, query string) (sqltext.Statement, *slot, error) {
	st, err := c.scan(query)
	if err != nil {
		return st, nil, err
	}
	if st.Kind != sqltext.Plain && c.only == nil {
		return st, nil, c.tx.checkSavepoint(st)
	}
	name, err := c.route(ctx, st)
	if err != nil {
		return st, nil, err
	}
	s, err := c.reach(ctx, name)
	if err == nil && st.Notify && s.part != nil {
		s.part.Notice = true
	}
	return st, s, err
}

// scan reads a statement's head and refuses text that is the driver's own to send.
func (c *conn) scan(query string) (sqltext.Statement, error) {
	st, err := sqltext.Scan(query)
	if err != nil {
		return st, err
	}
	return st, st.Kind.Refusal()
}

// route names the store of a statement: by its text, else by its context, else
// the default.
func (c *conn) route(ctx context.Context, st sqltext.Statement) (string, error) {
	wanted := storeOf(ctx)
	switch {
	case st.Store != "" && wanted != "" && st.Store != wanted:
		return "", &RouteError{Store: st.Store, Reason: "the statement's text says " + st.Store + ", its context (WithStore) says " + wanted}
	case st.Store != "":
		return st.Store, nil
	case wanted != "":
		return wanted, nil
	case c.connector.cfg.Default != "":
		return c.connector.cfg.Default, nil
	}
	return "", &RouteError{Reason: "the statement names no store and the DSN has no default: write store:NAME before it, use rhizodat.WithStore, or add default=NAME to the DSN", Known: c.connector.cfg.StoreNames()}
}

// RouteError means that a statement's store cannot be told, or is not configured. The
// statement has reached no store.
type RouteError struct {
	Store  string
	Reason string
	Known  []string
}

func (e *RouteError) Error() string {
	text := "rhizodat: route statement: " + e.Reason
	if len(e.Known) > 0 {
		text += " (configured stores: " + strings.Join(e.Known, ", ") + ")"
	}
	return text
}

// reach gives the slot of a store with an open session, and inside a unit with
// an open branch.
func (c *conn) reach(ctx context.Context, name string) (*slot, error) {
	s := c.slots[name]
	if s == nil {
		return nil, &RouteError{Store: name, Reason: "no store is named " + name, Known: c.connector.cfg.StoreNames()}
	}
	if s.part != nil {
		return s, nil
	}
	if err := c.open(ctx, s); err != nil {
		return nil, err
	}
	if c.tx == nil {
		return s, nil
	}
	return s, c.tx.enlist(ctx, s)
}

// BeginTx begins a unit. Its branches begin when a statement first reaches
// their store; with one store, at once.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.tx != nil {
		return nil, errors.New("rhizodat: begin: the connection has an open transaction: commit it or roll it back first")
	}
	txn, err := branches.NewTxnID()
	if err != nil {
		return nil, err
	}
	t := &tx{conn: c, ctx: ctx, opts: opts, unit: &coordinator.Unit{Txn: txn}, handle: Tracked(ctx)}
	if err := t.under(ctx); err != nil {
		return nil, err
	}
	c.tx = t
	if c.only != nil {
		if _, err := c.reach(ctx, c.only.name); err != nil {
			c.tx = nil
			return nil, err
		}
	}
	t.handle.begin(c.connector, txn)
	return t, nil
}

// Begin is BeginTx without options.
func (c *conn) Begin() (driver.Tx, error) {
	//nolint:forbidigo // driver.Conn.Begin has no context; database/sql calls BeginTx
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// Ping proves that the journal and every store can be reached and belong
// together; with ping=default, only the default store.
func (c *conn) Ping(ctx context.Context) error {
	if c.only != nil && c.connector.journal == nil {
		return c.ping(ctx, c.only)
	}
	if c.connector.cfg.Ping == PingDefault {
		s := c.slots[c.connector.cfg.Default]
		if s == nil {
			return nil
		}
		return c.ping(ctx, s)
	}
	for _, name := range c.connector.cfg.StoreNames() {
		if err := c.ping(ctx, c.slots[name]); err != nil {
			return fmt.Errorf("rhizodat: ping store %s: %w", name, err)
		}
	}
	return c.connector.check(ctx)
}

func (c *conn) ping(ctx context.Context, s *slot) error {
	if s.part == nil {
		if err := c.open(ctx, s); err != nil {
			return err
		}
	}
	if p, ok := s.session.(branches.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

// CheckNamedValue accepts every value: which store converts it is known only
// when the statement is routed.
func (c *conn) CheckNamedValue(*driver.NamedValue) error { return nil }

// ResetSession resets what is local. A session that broke is replaced when its
// own store is next needed; the others stay.
func (c *conn) ResetSession(context.Context) error {
	if c.closed || c.tx != nil {
		return driver.ErrBadConn
	}
	for _, s := range c.slots {
		s.reset = true
	}
	return nil
}

// IsValid is false only when the driver connection itself cannot go on.
func (c *conn) IsValid() bool { return !c.closed }

// Close ends every session. What was prepared stays.
func (c *conn) Close() error {
	c.closed = true
	var errs []error
	for _, s := range c.slots {
		if s.session != nil {
			errs = append(errs, s.session.Close())
			s.session = nil
		}
	}
	if c.owned != nil {
		errs = append(errs, c.owned.Close())
	}
	return errors.Join(errs...)
}

// Store implements Conn.
func (c *conn) Store(name string) any {
	//nolint:forbidigo // Conn.Raw hands the caller no context
	ctx, cancel := context.WithTimeout(context.Background(), c.connector.cfg.CommitTimeout)
	defer cancel()
	s, err := c.reach(ctx, name)
	if err != nil {
		return err
	}
	if p, ok := s.session.(branches.Pinger); ok && !s.begun() { // what is done by Raw is no statement of ours
		if err = p.Ping(ctx); errors.Is(err, driver.ErrBadConn) {
			err = c.again(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	if r, ok := s.session.(branches.Raw); ok {
		return r.Raw()
	}
	return s.session
}
