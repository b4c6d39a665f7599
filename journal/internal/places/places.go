// Package places counts how many may use a journal at once.
package places

import (
	"context"
	"sync"

	"github.com/rhizodat/rhizodat-go/journal"
)

// Places counts the journal's places. One more than commits may hold is kept
// back: a listing or a sweep must not wait for a commit, which may be waiting
// for what the sweep would free. And one each for what a commit waits for.
type Places struct {
	commits  chan struct{}
	spare    chan struct{}
	reserved [purposes]chan struct{}
	closed   chan struct{}
}

// Purpose is what a reserved place is for.
type Purpose int

// The purposes.
const (
	Renewals  Purpose = iota // of leases: neither a commit nor a sweep may make one lapse
	Records                  // of several commits at once, S4
	Decisions                // the same for S7
	purposes
)

// New makes n places for commits, the spare one and the reserved ones.
func New(n int) *Places {
	p := &Places{commits: make(chan struct{}, n), spare: make(chan struct{}, 1), closed: make(chan struct{})}
	for i := range p.reserved {
		p.reserved[i] = make(chan struct{}, 1)
	}
	return p
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

// Reserved is Take for the place of one purpose alone.
func (p *Places) Reserved(ctx context.Context, purpose Purpose) (release func(), err error) {
	select {
	case <-p.closed:
		return nil, journal.ErrClosed
	default:
	}
	place := p.reserved[purpose]
	select {
	case place <- struct{}{}:
		return sync.OnceFunc(func() { <-place }), nil
	case <-p.closed:
		return nil, journal.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close lets nobody in any more. It may be called once.
func (p *Places) Close() { close(p.closed) }
