package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	recovery "github.com/rhizodat/rhizodat-go/recover"
)

type runCmd struct {
	Interval     time.Duration `default:"10s" help:"Time between two passes."`
	CompactEvery time.Duration `default:"1h" help:"Time between two compactions; 0 is never."`
	Listen       string        `default:"127.0.0.1:9721" help:"Address of /metrics, /healthz and /readyz; empty for none. They tell names of stores and counts, to everybody who can reach them."`
}

// Run recovers until SIGINT or SIGTERM. What is being worked on then is finished.
func (c *runCmd) Run(s *session) error {
	if c.Interval <= 0 {
		return &usageError{errors.New("--interval: it must be more than 0")}
	}
	watch := newWatch(c.Interval)
	change := func(cfg *recovery.Config) {
		cfg.Interval, cfg.CompactEvery, cfg.Observer = c.Interval, c.CompactEvery, watch
		if c.CompactEvery == 0 {
			cfg.CompactEvery = -1
		}
	}
	return s.open(change, func(ctx context.Context, d *deployment) error {
		watch.registry.MustRegister(newCensus(ctx, d.journal))
		stop, err := c.serve(ctx, s, watch)
		if err != nil {
			return err
		}
		err = d.worker.Run(ctx)
		return errors.Join(err, stop())
	})
}

// serve answers HTTP until the returned function is called.
func (c *runCmd) serve(ctx context.Context, s *session, watch *watch) (stop func() error, err error) {
	if c.Listen == "" {
		return func() error { return nil }, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: watch.handler(), ReadHeaderTimeout: 5 * time.Second}
	s.logger().InfoContext(ctx, "rhizorecover: serves /metrics, /healthz and /readyz", "address", listener.Addr())
	var serving sync.WaitGroup
	var failed error
	serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed = err
		}
	})
	return func() error {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err := server.Shutdown(limit)
		serving.Wait()
		return errors.Join(err, failed)
	}, nil
}
