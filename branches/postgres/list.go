package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

var _ branches.Lister = (*Store)(nil)

// Prepared lists the prepared transactions of this database, whoever owns them.
// pg_prepared_xacts shows the whole cluster; those of other databases are left
// out by the server, in one scan however many there are. A standby, where the
// view is empty, refuses.
//
// A transaction is ours if it holds RowExclusiveLock on our dat_applied, that
// is, has inserted its marker there. pg_locks shows a prepared transaction
// without pid, and under a virtualtransaction that is that of its session
// before a restart of the server and -1/xid after it; so the two locks that it
// holds, on its own xid and on the table, are joined by it. Else ours are all,
// if ours is the only dat_applied of the database.
func (s *Store) Prepared(ctx context.Context) ([]branches.Prepared, error) {
	var list []branches.Prepared
	err := s.run(ctx, func(session *Session) error {
		names, err := s.knownBy(ctx, session)
		if err != nil {
			return err
		}
		got, err := ask(ctx, session.client(), ownTransaction(listText(names)))
		if err != nil {
			return err
		}
		list = list[:0]
		for _, row := range got.rows(ownFirst) {
			gid, err := branches.ParseGID(string(row[0]))
			if err != nil {
				continue // only looks like one of our form
			}
			prepared, err := readPrepared(gid, row)
			if err != nil {
				return err
			}
			list = append(list, prepared)
		}
		return nil
	})
	if err != nil {
		return nil, s.explain("list prepared transactions", err)
	}
	return list, nil
}

func listText(names *tables) string {
	ours := "pg_catalog.to_regclass(" + literalText(names.applied) + ")"
	return `WITH held AS MATERIALIZED (
    SELECT locktype, relation, transactionid, virtualtransaction, mode
    FROM pg_catalog.pg_locks
    WHERE pid IS NULL AND (locktype = 'transactionid' AND mode = 'ExclusiveLock'
        OR locktype = 'relation' AND mode = 'RowExclusiveLock' AND relation = ` + ours + `
            AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))
), marked AS (
    SELECT self.transactionid AS xid
    FROM held self JOIN held mark USING (virtualtransaction)
    WHERE self.locktype = 'transactionid' AND mark.locktype = 'relation'
), alone AS (
    SELECT count(*) = 1 AND ` + ours + ` IS NOT NULL AS is_ours FROM pg_catalog.pg_class
    WHERE relname = '` + appliedTable + `' AND relkind IN ('r', 'p') AND relpersistence <> 't'
)
SELECT p.gid, (extract(epoch FROM p.prepared) * 1000000)::pg_catalog.int8, coalesce(p.owner, ''),
    EXISTS (SELECT FROM marked WHERE marked.xid = p.transaction) OR (SELECT is_ours FROM alone),
    coalesce(pg_catalog.pg_has_role(p.owner, CASE
        WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 160000 THEN 'SET' ELSE 'MEMBER' END),
        (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user))
FROM pg_catalog.pg_prepared_xacts p
WHERE p.database = pg_catalog.current_database() AND p.gid LIKE 'dat:%'
ORDER BY p.prepared`
}

func readPrepared(gid branches.GID, row [][]byte) (branches.Prepared, error) {
	micros, err := strconv.ParseInt(string(row[1]), 10, 64)
	if err != nil {
		return branches.Prepared{}, fmt.Errorf("time of a prepared transaction: %w", err)
	}
	return branches.Prepared{
		GID: gid, Since: time.UnixMicro(micros), Owner: string(row[2]),
		Ours: string(row[3]) == "t", MayFinish: string(row[4]) == "t",
	}, nil
}
