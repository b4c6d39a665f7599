//go:build !rhizodat_no_postgres

package rhizodat

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/postgres"
)

func init() {
	RegisterJournal("postgres", openPostgresJournal)
	RegisterJournal("postgresql", openPostgresJournal)
}

func openPostgresJournal(_ context.Context, cfg JournalConfig, env StoreEnv) (journal.Journal, error) {
	opts, ok := cfg.Options.(postgres.Options)
	if cfg.Options != nil && !ok {
		return nil, errors.New("its Options are not those of package journal/postgres")
	}
	if cfg.Connector != nil {
		return nil, errors.New("a PostgreSQL journal takes postgres.Options{ConnConfig: …} of package journal/postgres, not a Connector")
	}
	opts.Options = env.journalOptions()
	return postgres.Open(cfg.URL, opts)
}
