//go:build !rhizodat_no_clickhouse

package rhizodat

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
)

func init() {
	for _, scheme := range []string{"clickhouse", "clickhouse+http", "clickhouse+https"} {
		RegisterStore(scheme, openClickHouse)
	}
}

func openClickHouse(_ context.Context, name string, cfg StoreConfig, env StoreEnv) (branches.Store, error) {
	opts, ok := cfg.Options.(clickhouse.Options)
	switch {
	case cfg.Options != nil && !ok:
		return nil, errors.New("its Options are not clickhouse.Options")
	case cfg.Connector != nil:
		return nil, errors.New("it takes no Connector: ClickHouse is reached by its own client, not by database/sql")
	}
	opts.Markers = opts.Markers || env.Config.marked()
	if opts.MaxPayload == 0 && len(env.Config.Stores) > 1 {
		opts.MaxPayload = env.Config.MaxPayload
	}
	if opts.Logger == nil {
		opts.Logger = env.Config.Logger
	}
	opts.Clock, opts.Wall = env.Clock, env.Wall
	return clickhouse.Open(name, cfg.URL, opts)
}
