// Package places counts how many may use a journal at once.
package places

import (
	"context"
	"sync"

	"github.com/rhizodat/rhizodat-go/journal"
)

// Places counts the journal's places. One more than commits may hold is kept
// back: a listing or a sweep must not wait for a commit, which may be waiting
// for what the sweep would free.
type Places struct {
	commits chan struct{}
	spare   chan struct{}
	kept    chan struct{}
	closed  chan struct{}
}

// New makes n places for commits, the spare one and the kept one.
func New(n int) *Places {
	return &Places{
		commits: make(chan struct{}, n), spare: make(chan struct{}, 1), kept: make(chan struct{}, 1),
		closed: make(chan struct{}),
	}
}

// Take waits for a place and returns the function that gives it back, once
// however often it is called.
func (p *Places) Take(ctx context.Context, spare bool) (release func(), err error) {
	var also chan struct{}
	if spare {
		also = p.spare
	}
	select {
	case <-p.closed:
		return nil, journal.ErrClosed
	default:
	}
	select {
	case p.commits <- struct{}{}:
		return sync.OnceFunc(func() { <-p.commits }), nil
	case also <- struct{}{}:
		return sync.OnceFunc(func() { <-p.spare }), nil
	case <-p.closed:
		return nil, journal.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Keep is Take for the place that is for renewals alone.
func (p *Places) Keep(ctx context.Context) (release func(), err error) {
	select {
	case <-p.closed:
		return nil, journal.ErrClosed
	default:
	}
	select {
	case p.kept <- struct{}{}:
		return sync.OnceFunc(func() { <-p.kept }), nil
	case <-p.closed:
		return nil, journal.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close lets nobody in any more. It may be called once.
func (p *Places) Close() { close(p.closed) }
