package clickhouse

import (
	"context"

	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

var (
	_ branches.Placer = (*Store)(nil)
	_ branches.Prober = (*Store)(nil)
)

// Place is ch:<id>/<database>, in the server's words. The id is the database's
// own where its engine gives it one (Atomic, the default), which is the same over
// every host name and both protocols, and for all replicas of a Replicated
// database; else it is the server's.
func (s *Store) Place(ctx context.Context) (branches.Place, error) {
	var id, server string
	found, err := s.row(ctx, "SELECT toString(uuid),toString(serverUUID()) FROM system.databases WHERE name="+chsql.Text(s.database), &id, &server)
	if err != nil {
		return "", s.fail("find place", err)
	}
	if !found {
		return "", s.refuse("find place", "there is no database "+s.database, "create it, or name another in the DSN")
	}
	if id == uuid.Nil.String() {
		id = server
	}
	return branches.Place("ch:" + id + "/" + s.database), nil
}

// Probe looks for what a unit of several stores will need here. A good answer is
// kept.
func (s *Store) Probe(ctx context.Context) error {
	if s.probed.Load() {
		return nil
	}
	var version string
	var rows uint64
	if _, err := s.row(ctx, "SELECT version(),(SELECT count() FROM "+s.applied+" WHERE dat_txn="+literalUUID(uuid.Nil)+")", &version, &rows); err != nil {
		return s.fail("probe store", err)
	}
	if !recent(version) {
		return s.refuse("probe store", "ClickHouse "+version+" has no lightweight DELETE", "use ClickHouse "+oldest+" or newer")
	}
	s.probed.Store(true)
	return nil
}

// oldest is the first version whose lightweight DELETE is not experimental.
const oldest = "23.3"

func recent(version string) bool {
	server := serverContext(version, "UTC", 0)
	return server.VersionMajor > 23 || server.VersionMajor == 23 && server.VersionMinor >= 3
}
