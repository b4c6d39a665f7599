//go:build !rhizodat_no_iceberg

package rhizodat

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
)

func init() {
	for _, scheme := range []string{"iceberg+sqlite", "iceberg+postgres", "iceberg+rest+http", "iceberg+rest+https", "iceberg+dir"} {
		RegisterStore(scheme, openIceberg)
	}
}

func openIceberg(_ context.Context, name string, cfg StoreConfig, env StoreEnv) (branches.Store, error) {
	opts, ok := cfg.Options.(iceberg.Options)
	switch {
	case cfg.Options != nil && !ok:
		return nil, errors.New("its Options are not iceberg.Options")
	case cfg.Connector != nil:
		return nil, errors.New("it takes no Connector: a catalog is reached by iceberg-go, not by database/sql")
	}
	if opts.Logger == nil {
		opts.Logger = env.Config.Logger
	}
	if opts.Locker == nil && !env.Config.Journal.IsZero() && env.journal != nil {
		opts.Locker = &tableLock{journal: env.journal, wall: env.Wall}
	}
	if opts.CommitWait == 0 {
		opts.CommitWait = env.Config.CommitWait
	}
	opts.Clock, opts.Wall = env.Clock, env.Wall
	return iceberg.Open(name, cfg.URL, opts)
}
