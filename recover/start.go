package recovery

import "context"

// Source is what recovery is started from: a rhizodat connector, or a [Config].
type Source interface {
	Recovery() (Config, error)
}

// Running is a worker that runs in this process.
type Running struct {
	worker *Worker
	cancel context.CancelFunc
	done   chan struct{}
}

// Start runs a worker beside the application, until ctx ends or Stop is called.
// It returns at once and connects to nothing itself.
func Start(ctx context.Context, source Source) (*Running, error) {
	cfg, err := source.Recovery()
	if err != nil {
		return nil, err
	}
	worker, err := New(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Running{worker: worker, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		defer cancel()
		_ = worker.Run(ctx) // it is nil: Run ends with ctx
	}()
	return r, nil
}

// Worker is the worker that runs.
func (r *Running) Worker() *Worker { return r.worker }

// Stop ends the worker and waits for what it is doing. Call it before the
// connector is closed.
func (r *Running) Stop() {
	r.cancel()
	<-r.done
}
