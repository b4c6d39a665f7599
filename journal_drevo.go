//go:build !rhizodat_no_drevo

package rhizodat

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/drevo"
)

func init() {
	for _, scheme := range []string{"bolt", "bolt+s", "bolt+ssc"} {
		RegisterJournal(scheme, openDrevoJournal)
	}
}

func openDrevoJournal(_ context.Context, cfg JournalConfig, env StoreEnv) (journal.Journal, error) {
	opts, ok := cfg.Options.(drevo.Options)
	if cfg.Options != nil && !ok {
		return nil, errors.New("its Options are not those of package journal/drevo")
	}
	if cfg.Connector != nil {
		return nil, errors.New("a drevo journal takes a bolt:// URL, not a Connector")
	}
	opts.Options = env.journalOptions()
	if opts.Label == "" {
		opts.Label = env.Config.JournalLabel
	}
	return drevo.Open(cfg.URL, opts)
}
