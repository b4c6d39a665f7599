//go:build !rhizodat_no_sqlite

package rhizodat

import (
	"context"

	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/sqlite"
)

func init() {
	RegisterJournal("file", func(_ context.Context, cfg JournalConfig, env StoreEnv) (journal.Journal, error) {
		return sqlite.Open(cfg.URL, env.journalOptions())
	})
}
