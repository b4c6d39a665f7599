// Package pooled is the journal of a coordinator whose connection outlives a
// crash of the journal's server, as it does behind a connection pooler that
// checks its servers. Without one the coordinator's own connection breaks with
// the server, and it gives its unit up before anything can go wrong.
//
//	journal=pooled:postgres://…
package pooled

import (
	"context"
	"errors"
	"strings"

	rhizodat "github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/postgres"
)

// Scheme of the journal's URL.
const Scheme = "pooled"

func init() {
	rhizodat.RegisterJournal(Scheme, func(_ context.Context, cfg rhizodat.JournalConfig, _ rhizodat.StoreEnv) (journal.Journal, error) {
		j, err := postgres.Open(strings.TrimPrefix(cfg.URL, Scheme+":"), postgres.Options{})
		if err != nil {
			return nil, err
		}
		registry, ok := j.(journal.Registry)
		if !ok {
			return nil, errors.New("pooled: open journal: it keeps no registry")
		}
		return &pooled{j, registry}, nil
	})
}

type pooled struct {
	journal.Journal
	journal.Registry
}

func (p *pooled) Session(ctx context.Context) (journal.Session, error) {
	s, err := p.Journal.Session(ctx)
	return &session{s}, err
}

// session checks its connection before S7.
type session struct{ journal.Session }

func (s *session) Decide(ctx context.Context, d journal.Decision) error {
	_, _ = s.Read(ctx, d.Txn) // a dead connection is replaced by the next request
	return s.Session.Decide(ctx, d)
}
