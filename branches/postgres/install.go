package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/rhizodat/rhizodat-go/branches"
)

// layouts are the versions of our tables, oldest first: what makes each of the
// one before it. They are format; a version that was released never changes.
var layouts = []func(*tables) string{
	func(t *tables) string {
		return `CREATE TABLE IF NOT EXISTS ` + t.applied + ` (
    dat_txn     uuid   PRIMARY KEY,
    dat_tx_time bigint NOT NULL
);
COMMENT ON TABLE ` + t.applied + ` IS 'rhizodat: which meta-transactions took effect here; dat_tx_time 0: it never will';
CREATE TABLE IF NOT EXISTS ` + t.meta + ` (
    one           boolean PRIMARY KEY DEFAULT true CHECK (one),
    layout        integer NOT NULL,
    store_id      uuid    NOT NULL,
    journal_id    text    NOT NULL DEFAULT '',
    journal_place text    NOT NULL DEFAULT '',
    sweeps        bigint  NOT NULL DEFAULT 0
);
COMMENT ON TABLE ` + t.meta + ` IS 'rhizodat: the journal that this store belongs to';
INSERT INTO ` + t.meta + ` (layout, store_id) VALUES (1, pg_catalog.gen_random_uuid()) ON CONFLICT DO NOTHING;
`
	},
}

// installLock keeps two installers apart: CREATE TABLE IF NOT EXISTS races
// with itself. Any constant will do.
const installLock = "SELECT pg_catalog.pg_advisory_xact_lock(7233741091)"

// InstallSQL is what Install runs. Where the schema is not yet known the tables
// are made in the first one of search_path.
func (s *Store) InstallSQL() string {
	names := s.tables.Load()
	if names == nil {
		names = &tables{applied: appliedTable, meta: metaTable}
	}
	text := ""
	if names.schema != "" && names.schema != "public" {
		text = "CREATE SCHEMA IF NOT EXISTS " + quote(names.schema) + ";\n"
	}
	for _, layout := range layouts {
		text += layout(names)
	}
	return text
}

// Install makes or upgrades the marker and meta tables, one version at a time.
// Where all is done already it needs no right to create anything.
func (s *Store) Install(ctx context.Context) error {
	err := s.run(ctx, func(session *Session) error {
		names, err := s.knownBy(ctx, session)
		if err != nil {
			return err
		}
		layout, err := s.layout(ctx, session, names)
		if err != nil || layout == len(layouts) {
			return err
		}
		return s.install(ctx, session, names)
	})
	return s.fail("install tables", err)
}

func (s *Store) install(ctx context.Context, session *Session, names *tables) error {
	got, err := ask(ctx, session.client(), "SELECT pg_catalog.to_regnamespace("+literalText(quote(names.schema))+") IS NULL")
	if err != nil {
		return err
	}
	if got.cell(0, 0) == "t" {
		if _, err := ask(ctx, session.client(), "CREATE SCHEMA IF NOT EXISTS "+quote(names.schema)); err != nil {
			return err
		}
	}
	for version, layout := range layouts {
		found, err := s.layout(ctx, session, names)
		if err != nil {
			return err
		}
		if found > version {
			continue
		}
		if _, err := ask(ctx, session.client(), "BEGIN READ WRITE;"+installLock+";"+layout(names)+"COMMIT"); err != nil {
			return err
		}
	}
	return nil
}

// layout is the version of the tables that are there; 0 for none. One that is
// newer than this program is refused.
func (s *Store) layout(ctx context.Context, session *Session, names *tables) (int, error) {
	got, err := ask(ctx, session.client(), "SELECT pg_catalog.to_regclass("+literalText(names.meta)+") IS NOT NULL"+
		" AND pg_catalog.to_regclass("+literalText(names.applied)+") IS NOT NULL")
	if err != nil || got.cell(0, 0) != "t" {
		return 0, err
	}
	got, err = ask(ctx, session.client(), "SELECT layout FROM "+names.meta)
	if err != nil || len(got.rows(0)) == 0 {
		return 0, err
	}
	found, err := strconv.Atoi(got.cell(0, 0))
	if err != nil {
		return 0, fmt.Errorf("layout is not a number: %w", err)
	}
	return found, s.checkLayout(found)
}

func (s *Store) checkLayout(found int) error {
	if found <= len(layouts) {
		return nil
	}
	return &branches.Error{
		Store: s.name, Doing: "open store",
		Cause: fmt.Sprintf("its tables have layout version %d, this program knows up to %d", found, len(layouts)),
		Way:   "use a newer rhizodat",
		Asks:  branches.Permanent,
	}
}
