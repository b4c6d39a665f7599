package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal/internal/places"
	"github.com/rhizodat/rhizodat-go/journal/sqljournal"
)

const (
	// pingAfter: a connection idle for longer may have died unseen. S4 on a
	// dead one would abort the unit for nothing.
	pingAfter = time.Second
	// idleFor bounds how long a connection that nobody needs is kept.
	idleFor = 5 * time.Minute
	// closeWithin bounds the goodbye to a server that may be gone.
	closeWithin = time.Second
)

// pool is the journal's own pool: its places are counted apart from its
// connections, so that a session whose connection dies gets a new one without
// queueing again behind others.
type pool struct {
	config *pgx.ConnConfig
	opts   Options
	wall   hlc.Wall
	places *places.Places

	mu     sync.Mutex
	idle   []*link // the last used one at the end
	closed bool
}

// link is a connection and what the pool knows of it.
type link struct {
	conn *pgx.Conn
	used time.Time
	// unconfirmed is set by the notice handler, which runs inside calls of conn.
	unconfirmed bool
	// plain: a transaction that says nothing of itself is READ COMMITTED and READ
	// WRITE here, and no pooler stands in between that would hand it to another
	// server. Then a write needs no BEGIN.
	plain bool
	// goodbye ends the connection in bounded time: it may be called where
	// there is no caller whose context counts.
	goodbye func()
}

func newPool(config *pgx.ConnConfig, opts Options) *pool {
	return &pool{config: config, opts: opts, wall: opts.Wall, places: places.New(opts.Places)}
}

// Take implements sqljournal.Pool.
func (p *pool) Take(ctx context.Context, spare bool) (sqljournal.Conn, error) {
	release, err := p.places.Take(ctx, spare)
	if err != nil {
		return nil, err
	}
	return &place{pool: p, release: release}, nil
}

// Reserved implements sqljournal.Pool.
func (p *pool) Reserved(ctx context.Context, purpose places.Purpose) (sqljournal.Conn, error) {
	release, err := p.places.Reserved(ctx, purpose)
	if err != nil {
		return nil, err
	}
	return &place{pool: p, release: release}, nil
}

// Close implements sqljournal.Pool.
func (p *pool) Close() error {
	p.mu.Lock()
	idle, first := p.idle, !p.closed
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	if first {
		p.places.Close()
	}
	for _, l := range idle {
		l.goodbye()
	}
	return nil
}

// get returns a connection that works: an idle one, asked first where it may
// have died, or a new one.
func (p *pool) get(ctx context.Context) (*link, error) {
	for {
		l := p.pop()
		if l == nil {
			return p.connect(ctx)
		}
		if l.alive(ctx, p.wall.Now()) {
			return l, nil
		}
		l.goodbye()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

func (p *pool) pop() *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	l := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return l
}

func (p *pool) connect(ctx context.Context) (*link, error) {
	config := p.config.Copy()
	if p.opts.BeforeConnect != nil {
		if err := p.opts.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	l := &link{}
	theirs := config.OnNotice
	config.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		// By the server's source file: the text is translated.
		if n.File == "syncrep.c" {
			l.unconfirmed = true
		}
		if theirs != nil {
			theirs(c, n)
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	l.conn = conn
	detached := context.WithoutCancel(ctx) // the goodbye is said long after the call that connected
	l.goodbye = func() {
		bounded, cancel := context.WithTimeout(detached, closeWithin)
		defer cancel()
		_ = conn.Close(bounded) // it is closed, whatever it answers
	}
	if p.opts.AfterConnect != nil {
		if err := p.opts.AfterConnect(ctx, conn); err != nil {
			l.goodbye()
			return nil, err
		}
	}
	if l.plain, err = isPlain(ctx, conn); err != nil {
		l.goodbye()
		return nil, err
	}
	return l, nil
}

// isPlain asks what a transaction without a word of its own would be: a role or
// a database can set it. Nothing is set instead, since a pooler that nobody has
// told us of would hand what we set to others.
func isPlain(ctx context.Context, conn *pgx.Conn) (bool, error) {
	switch conn.Config().DefaultQueryExecMode { //nolint:exhaustive // the others are for poolers
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe:
	default:
		return false, nil
	}
	var isolation, readOnly string
	err := conn.QueryRow(ctx, `SELECT pg_catalog.current_setting('default_transaction_isolation'),
		pg_catalog.current_setting('default_transaction_read_only')`).Scan(&isolation, &readOnly)
	return isolation == "read committed" && readOnly == "off", err
}

// put takes a connection back, and closes those that nobody has needed lately.
func (p *pool) put(l *link) {
	l.used = p.wall.Now()
	var old []*link
	p.mu.Lock()
	if p.closed {
		old = append(old, l)
	} else {
		p.idle = append(p.idle, l)
		for len(p.idle) > 1 && l.used.Sub(p.idle[0].used) > idleFor {
			old, p.idle = append(old, p.idle[0]), p.idle[1:]
		}
	}
	p.mu.Unlock()
	for _, o := range old {
		o.goodbye()
	}
}

// alive asks the server where the connection was idle for longer.
func (l *link) alive(ctx context.Context, now time.Time) bool {
	return now.Sub(l.used).Abs() < pingAfter || l.conn.Ping(ctx) == nil
}

// usable reports whether the connection is idle and in no transaction.
func (l *link) usable() bool {
	pg := l.conn.PgConn()
	return !pg.IsClosed() && !pg.IsBusy() && pg.TxStatus() == 'I'
}
