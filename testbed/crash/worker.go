package main

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/internal/byteproxy"
	"github.com/rhizodat/rhizodat-go/testbed/crash/events"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// worker is one pass of recovery beside others, by its own way to the third
// store: it can be held up at a request.
type worker struct {
	*rig.Child
	net  *byteproxy.Proxy
	rule *byteproxy.Rule
}

// hold arms a rule at a network.
type hold func(*byteproxy.Proxy) *byteproxy.Rule

// What a finisher is held up at.
var (
	beforeInsert  hold = func(p *byteproxy.Proxy) *byteproxy.Rule { return p.HoldRequest(events.TextInsert) }
	beforeDelete  hold = func(p *byteproxy.Proxy) *byteproxy.Rule { return p.HoldRequest(events.TextDelete) }
	beforeMarker  hold = func(p *byteproxy.Proxy) *byteproxy.Rule { return p.HoldRequest(events.TextMarker) }
	havingCounted hold = func(p *byteproxy.Proxy) *byteproxy.Rule { return p.HoldReply(events.TextCount) }
	foundQuiet    hold = func(p *byteproxy.Proxy) *byteproxy.Rule { return p.HoldReply(events.TextQuiet) }
)

// errMissed: a worker has ended without coming to the request at which it should
// be held up. Then the scene has not come about.
var errMissed = errors.New("a worker was not held up")

// worker starts a pass, and returns when it is held up where it should be. The
// error is errMissed if it never is.
func (l *lane) worker(ctx context.Context, at hold) (*worker, error) {
	net, err := byteproxy.Listen(ctx, l.far.Addr())
	if err != nil {
		return nil, err
	}
	w := &worker{net: net, rule: at(net)}
	env := append([]string{"RHIZODAT_DSN=" + l.DSNVia(l.through(net), optionsOfRecovery)}, l.env...)
	if w.Child, err = rig.Start(ctx, l.recovery.Program, []string{"once"}, env...); err != nil {
		_ = net.Close() // the other error says more
		return nil, err
	}
	go func() {
		for range w.Lines { // what it did is looked up in the stores
			continue
		}
	}()
	if err := met(ctx, w.rule, w.Child); err != nil {
		return nil, err
	}
	if !w.rule.Met() {
		w.end()
		return nil, errMissed
	}
	return w, nil
}

// met waits until a rule has met its request; that it never will, because the
// child has ended, is no error.
func met(ctx context.Context, rule *byteproxy.Rule, child *rig.Child) error {
	select {
	case <-rule.Hit():
	case <-child.Ended():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// end waits for the worker's end, lets go whatever it was held up at, and
// reports whether it had been. Its exit code says what it has left, which is
// for others to finish.
func (w *worker) end() bool {
	w.rule.Release()
	_ = w.Wait()
	_ = w.net.Close() // its listener is all that could fail
	return w.rule.Met()
}

// lapse ends the time for which a worker has claimed a record.
func (l *lane) lapse(ctx context.Context) error {
	_, err := l.Journal.Exec(ctx, `UPDATE dat_journal SET note = jsonb_set(note::jsonb, '{claim,until_ms}', '1')::text
		WHERE state = 'COMMITTED' AND note::jsonb ? 'claim'`)
	return err
}
