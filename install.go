package rhizodat

import (
	"context"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Install makes the tables of ours in the journal and in every store, upgrades
// older ones, and binds the stores to the journal. It is idempotent, and needs
// the right to create tables; `rhizorecover init` does the same, and with
// --print shows the SQL for a DBA to run instead.
func (c *Connector) Install(ctx context.Context) error {
	if i, ok := c.journal.(branches.Installer); ok {
		if err := i.Install(ctx); err != nil {
			return fmt.Errorf("rhizodat: install journal: %w", err)
		}
	}
	for _, name := range c.cfg.StoreNames() {
		if i, ok := c.stores[name].(branches.Installer); ok {
			if err := i.Install(ctx); err != nil {
				return fmt.Errorf("rhizodat: install store %s: %w", name, err)
			}
		}
	}
	return c.check(ctx)
}
