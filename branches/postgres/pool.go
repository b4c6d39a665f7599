package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
)

// validAfter is the rest after which a connection is asked for a sign of life
// before it is used again.
const validAfter = time.Second

// pool holds the store's own connections: few, opened when first needed. One
// that had an I/O error or is not idle never comes back, so that a retry is
// never given the connection that has just died.
type pool struct {
	dial   func(context.Context) (*Session, error)
	wall   hlc.Wall
	places chan struct{}

	mu     sync.Mutex
	idle   []resting // the last one rested least
	closed bool
}

type resting struct {
	session *Session
	since   time.Time
}

func newPool(size int, wall hlc.Wall, dial func(context.Context) (*Session, error)) *pool {
	return &pool{dial: dial, wall: wall, places: make(chan struct{}, size)}
}

var errPoolClosed = errors.New("rhizodat: use store: it is closed")

// take waits for a place and returns a connection; reused says that it is not
// a new one.
func (p *pool) take(ctx context.Context) (session *Session, reused bool, err error) {
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	session, reused, err = p.open(ctx)
	if err != nil {
		<-p.places
	}
	return session, reused, err
}

func (p *pool) open(ctx context.Context) (*Session, bool, error) {
	for {
		rested, ok, err := p.pop()
		if err != nil {
			return nil, false, err
		}
		if !ok {
			session, err := p.dial(ctx)
			return session, false, err
		}
		if p.wall.Now().Sub(rested.since) < validAfter || rested.session.Ping(ctx) == nil {
			return rested.session, true, nil
		}
		// A failed ping has closed it. Its error would be that of a connection
		// nobody needs.
	}
}

func (p *pool) pop() (resting, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return resting{}, false, errPoolClosed
	}
	n := len(p.idle)
	if n == 0 {
		return resting{}, false, nil
	}
	last := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return last, true, nil
}

// put gives a connection and its place back.
func (p *pool) put(session *Session) {
	if !p.keep(session) {
		// Nothing of ours is open on it that the server could lose.
		_ = session.Close()
	}
	<-p.places
}

func (p *pool) keep(session *Session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || session.spoiled || !session.Usable() {
		return false
	}
	p.idle = append(p.idle, resting{session, p.wall.Now()})
	return true
}

// drop closes what rests: one has turned out dead, and a server that restarted
// has ended them all.
func (p *pool) drop() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, r := range idle {
		_ = r.session.Close() // dead already, or about to be
	}
}

func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	var all error
	for _, r := range idle {
		all = errors.Join(all, r.session.Close())
	}
	return all
}

// run does work over a connection of the store's own. REQUIRES: work may be
// done twice. It is, on a new connection, where a reused one turned out dead.
func (s *Store) run(ctx context.Context, work func(*Session) error) error {
	for {
		session, reused, err := s.control.take(ctx)
		if err != nil {
			return err
		}
		err = work(session)
		dead := session.dead()
		s.control.put(session)
		if err == nil || !reused || !dead || ctx.Err() != nil {
			return err
		}
		s.control.drop()
	}
}
