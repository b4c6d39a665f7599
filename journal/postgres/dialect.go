package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal/sqljournal"
)

// dialect is what PostgreSQL spells differently.
type dialect struct {
	schema string // empty: asked at the first connection
	wall   hlc.Wall
}

var _ sqljournal.Dialect = (*dialect)(nil)

// Names implements sqljournal.Dialect. Every name carries its schema: a later
// change of search_path or a temporary table must not lead elsewhere.
func (d *dialect) Names(ctx context.Context, conn sqljournal.Conn) (sqljournal.Names, error) {
	schema := d.schema
	if schema == "" && conn != nil {
		results, err := conn.Run(ctx, sqljournal.Read, sqljournal.Ask(`SELECT CAST(pg_catalog.current_schema() AS text)`))
		if err != nil {
			return sqljournal.Names{}, err
		}
		found, _ := results[0].Rows[0][0].(string)
		if found == "" {
			return sqljournal.Names{}, errors.New("no schema of search_path exists: name one with schema= in the journal's URL")
		}
		schema = found
	}
	prefix, place := "", `pg_catalog.current_schema()`
	if schema != "" {
		prefix, place = pgx.Identifier{schema}.Sanitize()+".", literal(schema)
	}
	return sqljournal.Names{
		Schema:  schema,
		Journal: prefix + `dat_journal`,
		Meta:    prefix + `dat_journal_meta`,
		Store:   prefix + `dat_store`,
		Lease:   prefix + `dat_lease`,
		Step:    prefix + `dat_step`,
		Fence:   prefix + `dat_fence`,
		ID:      `CAST(pg_catalog.gen_random_uuid() AS text)`,
		Place:   placeExpr(systemIdentifier, place),
	}, nil
}

func literal(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }

const systemIdentifier = `CAST((SELECT system_identifier FROM pg_catalog.pg_control_system()) AS text)`

func placeExpr(system, schema string) string {
	return `'pg:' || ` + system + ` || '/' || pg_catalog.current_database() || '/' || ` + schema
}

// Advisory locks are of a database, not of a schema: the key keeps journals of
// one database apart. The derivation is format: all programs of a deployment
// meet at the same key (docs/journal.md).
func advisoryKey(purpose, schema string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte("rhizodat." + purpose + ":" + schema)) // never fails
	return strconv.FormatInt(int64(h.Sum64()), 10)               //nolint:gosec // G115: the bits are the key
}

// Spelling implements sqljournal.Dialect.
func (d *dialect) Spelling(n sqljournal.Names) sqljournal.Spelling {
	return sqljournal.Spelling{
		UUID:     `uuid`,
		Now:      `CAST(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000 AS bigint)`,
		Greatest: `greatest`,
		// A sequence is read outside every snapshot (reads.md, The fence).
		Fence: `(SELECT last_value FROM ` + n.Fence + `)`,
		Share: `pg_catalog.pg_advisory_xact_lock_shared(` + advisoryKey("fence", n.Schema) + `)`,
		Lock:  `SELECT 1 FROM (SELECT pg_catalog.pg_advisory_xact_lock(` + advisoryKey("init", n.Schema) + `)) AS held`,
		Tables: `SELECT CAST(pg_catalog.to_regclass(` + literal(n.Meta) + `) IS NOT NULL AS integer),
			CAST(pg_catalog.to_regclass(` + literal(n.Journal) + `) IS NOT NULL AS integer)`,
		Among: `dat_txn = ANY(CAST(CAST($1 AS text) AS uuid[]))`,
		List:  func(ids []string) string { return "{" + strings.Join(ids, ",") + "}" },
		Records: func(param string, columns ...string) string {
			return `SELECT * FROM pg_catalog.json_to_recordset(CAST(` + param + ` AS json)) AS r(` + strings.Join(columns, ", ") + `)`
		},
		// A fence is in a unique index, so that a grant changes a key and waits
		// for, or is refused by, a commit that shares it. A renewal does not.
		Rows: sqljournal.RowLocks{
			Share: ` FOR KEY SHARE`,
			Hold:  ` FOR NO KEY UPDATE`,
			Seize: ` FOR UPDATE SKIP LOCKED`,
			Touch: ` FOR NO KEY UPDATE SKIP LOCKED`,
		},
		// Base64 holds no quote and no backslash, so this finds payloads
		// only. JSON functions would fail on the NULs that JSON may hold.
		Light: `CASE WHEN octet_length(branches) <= 8192 THEN branches
			ELSE regexp_replace(branches, '"payload"\s*:\s*"[^"\\]*"', '"payload":null', 'g') END`,
	}
}

// Layout implements sqljournal.Dialect.
func (d *dialect) Layout(v int, n sqljournal.Names) []string {
	switch v {
	case 1:
		table := `CREATE TABLE IF NOT EXISTS ` + n.Journal + ` (
	dat_txn uuid PRIMARY KEY,
	state text NOT NULL,
	dat_tx_time bigint,
	branches text NOT NULL,
	created_ms bigint NOT NULL,
	updated_ms bigint NOT NULL)`
		if n.Schema == "" {
			return []string{table}
		}
		return []string{createSchema(n.Schema), table}
	case 2:
		return []string{
			`ALTER TABLE ` + n.Journal + `
	ADD COLUMN IF NOT EXISTS lease text,
	ADD COLUMN IF NOT EXISTS fence bigint,
	ADD COLUMN IF NOT EXISTS note text,
	ALTER COLUMN branches SET STORAGE EXTERNAL`, // base64: compressing it costs more than it saves
			`CREATE INDEX IF NOT EXISTS dat_journal_open ON ` + n.Journal + ` (state, updated_ms)
	WHERE state IN ('ACTIVE', 'PREPARED', 'COMMITTED')`,
			`CREATE INDEX IF NOT EXISTS dat_journal_final ON ` + n.Journal + ` (updated_ms)
	WHERE state IN ('DONE', 'ABORTED')`,
			`CREATE INDEX IF NOT EXISTS dat_journal_tx_time ON ` + n.Journal + ` (dat_tx_time)`,
			`CREATE TABLE IF NOT EXISTS ` + n.Meta + ` (
	one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
	id text NOT NULL,
	place text NOT NULL,
	layout integer NOT NULL,
	horizon_ms bigint NOT NULL DEFAULT 0,
	hlc bigint NOT NULL DEFAULT 0)`,
			`CREATE TABLE IF NOT EXISTS ` + n.Store + ` (
	name text PRIMARY KEY,
	place text NOT NULL,
	store_id text NOT NULL,
	sweeps bigint NOT NULL DEFAULT 0)`,
			`CREATE SEQUENCE IF NOT EXISTS ` + n.Fence + ` AS bigint MINVALUE 0 START WITH 0`,
			`INSERT INTO ` + n.Meta + ` (id, place, layout) VALUES (` + n.ID + `, ` + n.Place + `, 2)
	ON CONFLICT (one_row) DO NOTHING`,
			`UPDATE ` + n.Meta + ` SET layout = 2 WHERE layout < 2`,
		}
	case 3:
		return []string{
			`CREATE TABLE IF NOT EXISTS ` + n.Lease + ` (
	name text PRIMARY KEY,
	holder text,
	token text NOT NULL,
	expires_at bigint NOT NULL,
	fence bigint NOT NULL,
	CONSTRAINT dat_lease_fence UNIQUE (name, fence))`,
			`CREATE TABLE IF NOT EXISTS ` + n.Step + ` (
	execution text,
	label text,
	input text,
	holder text NOT NULL,
	token text NOT NULL,
	expires_at bigint NOT NULL,
	value text,
	created_ms bigint NOT NULL,
	updated_ms bigint NOT NULL,
	PRIMARY KEY (execution, label, input))`,
			`ALTER TABLE ` + n.Step + ` ALTER COLUMN value SET STORAGE EXTERNAL`, // base64, as branches
			`CREATE INDEX IF NOT EXISTS dat_step_updated ON ` + n.Step + ` (updated_ms)`,
			`UPDATE ` + n.Meta + ` SET layout = 3 WHERE layout < 3`,
		}
	}
	return nil
}

// createSchema asks first: CREATE SCHEMA IF NOT EXISTS wants the right to create
// one even where it is there.
func createSchema(schema string) string {
	return `DO $$ BEGIN
	IF pg_catalog.to_regnamespace(` + literal(pgx.Identifier{schema}.Sanitize()) + `) IS NULL THEN
		CREATE SCHEMA ` + pgx.Identifier{schema}.Sanitize() + `;
	END IF;
END $$`
}

// Place implements sqljournal.Dialect: pg:<system identifier>/<database>/<schema>.
// Where the role may not read the system identifier it is "unknown"; a copy on
// another server is then not told from the first by its place.
func (d *dialect) Place(ctx context.Context, conn sqljournal.Conn, n sqljournal.Names) (branches.Place, error) {
	place, err := d.askPlace(ctx, conn, placeExpr(systemIdentifier, literal(n.Schema)))
	if sqlState(err) == "42501" {
		place, err = d.askPlace(ctx, conn, placeExpr(`'unknown'`, literal(n.Schema)))
	}
	return place, err
}

func (d *dialect) askPlace(ctx context.Context, conn sqljournal.Conn, expr string) (branches.Place, error) {
	results, err := conn.Run(ctx, sqljournal.Read, sqljournal.Ask(`SELECT CAST(`+expr+` AS text)`))
	if err != nil {
		return "", err
	}
	place, ok := results[0].Rows[0][0].(string)
	if !ok {
		return "", fmt.Errorf("the server answered no place")
	}
	return branches.Place(place), nil
}
