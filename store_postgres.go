//go:build !rhizodat_no_postgres

package rhizodat

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
)

func init() {
	RegisterStore("postgres", openPostgres)
	RegisterStore("postgresql", openPostgres)
}

func openPostgres(_ context.Context, name string, cfg StoreConfig, env StoreEnv) (branches.Store, error) {
	opts, ok := cfg.Options.(postgres.Options)
	if cfg.Options != nil && !ok {
		return nil, errors.New("its Options are not postgres.Options")
	}
	if cfg.Connector != nil {
		opts.Connector = cfg.Connector
	}
	if opts.LockTimeout == 0 && env.Config.LockTimeout > 0 {
		opts.LockTimeout = env.Config.LockTimeout
	}
	if opts.ApplicationName == "" {
		opts.ApplicationName = env.Config.ApplicationName
	}
	opts.Wall = env.Wall
	return postgres.Open(name, cfg.URL, opts)
}
