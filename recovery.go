package rhizodat

import (
	"errors"

	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// Recovery is what a recovery worker of this deployment needs; it makes a
// Connector the source of recovery.Start.
func (c *Connector) Recovery() (recovery.Config, error) {
	if c.journal == nil {
		return recovery.Config{}, errors.New("rhizodat: recover: no journal configured: there is nothing to recover from")
	}
	return recovery.Config{
		Journal:       c.journal,
		Stores:        c.stores,
		Coordinator:   c.coordinator,
		Clock:         c.clock,
		StaleAfter:    c.cfg.StaleAfter,
		AlertAfter:    c.cfg.AlertAfter,
		Retain:        c.cfg.Retain,
		MaxClockDrift: c.cfg.MaxClockDrift,
		MaxPayload:    c.cfg.MaxPayload,
		Logger:        c.cfg.Logger,
	}, nil
}

// journalOptions are what every kind of journal takes from the DSN.
func (e StoreEnv) journalOptions() journal.Options {
	return journal.Options{
		Places:     e.Config.JournalConns,
		MaxDrift:   e.Config.MaxClockDrift,
		MaxPayload: e.Config.MaxPayload,
		Wall:       e.Wall,
		Logger:     e.Config.Logger,
	}
}
