//go:build !rhizodat_no_drevo

package rhizodat

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
)

func init() {
	for _, scheme := range []string{"bolt", "bolt+s", "bolt+ssc"} {
		RegisterStore(scheme, openDrevo)
	}
}

func openDrevo(_ context.Context, name string, cfg StoreConfig, env StoreEnv) (branches.Store, error) {
	opts, ok := cfg.Options.(drevo.Options)
	switch {
	case cfg.Options != nil && !ok:
		return nil, errors.New("its Options are not drevo.Options")
	case cfg.Connector != nil:
		return nil, errors.New("it takes no Connector: drevo is reached over Bolt, not by database/sql")
	}
	if opts.Patience == 0 {
		// A unit that is decided when its process dies is finished by recovery.
		opts.Patience = env.Config.FinishTimeout + env.Config.StaleAfter
	}
	opts.Wall = env.Wall
	return drevo.Open(name, cfg.URL, opts)
}
