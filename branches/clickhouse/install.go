package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

var _ branches.Installer = (*Store)(nil)

// The names of our tables are format.
const (
	appliedTable = "dat_applied"
	metaTable    = "dat_meta"
)

// layouts are the versions of our tables, oldest first: the statements that make
// each of the one before it. They are format; a version that was released never
// changes.
//
// dat_applied keeps the greater time of two rows, so a tombstone never covers a
// marker. dat_meta is a row that is changed by adding the next version of it;
// change names the writer of a version.
var layouts = []func(*Store) []string{
	func(s *Store) []string {
		return []string{
			"CREATE TABLE IF NOT EXISTS " + s.applied + ` (
    dat_txn     UUID,
    dat_tx_time Int64
) ENGINE = ReplacingMergeTree(dat_tx_time) ORDER BY dat_txn` + s.fsync() +
				" COMMENT 'rhizodat: which meta-transactions took effect here; dat_tx_time 0: it never will'",
			"CREATE TABLE IF NOT EXISTS " + s.meta + ` (
    one           UInt8 DEFAULT 1,
    version       UInt64,
    change        UUID,
    layout        UInt32,
    store_id      UUID,
    journal_id    String,
    journal_place String,
    sweeps        Int64
) ENGINE = ReplacingMergeTree(version) ORDER BY one` + s.fsync() +
				" COMMENT 'rhizodat: the journal that this store belongs to'",
			"INSERT INTO " + s.meta + " (version,change,layout,store_id,journal_id,journal_place,sweeps)" +
				" SELECT 1,generateUUIDv4(1),1,generateUUIDv4(2),'','',0 FROM system.one WHERE (SELECT count() FROM " + s.meta + ")=0",
		}
	},
}

func (s *Store) fsync() string {
	if !s.opts.Fsync {
		return ""
	}
	return " SETTINGS fsync_after_insert=1,fsync_part_directory=1"
}

// InstallSQL is what Install runs, a statement a line.
func (s *Store) InstallSQL() string {
	var b strings.Builder
	for _, layout := range layouts {
		for _, text := range layout(s) {
			b.WriteString(text + ";\n")
		}
	}
	return b.String()
}

// Install makes or upgrades the marker and meta tables, one version at a time.
// Where all is done already it needs no right to create anything.
func (s *Store) Install(ctx context.Context) error {
	for version, layout := range layouts {
		found, err := s.layout(ctx)
		if err != nil {
			return s.fail("install tables", err)
		}
		if found > version {
			continue
		}
		for _, text := range layout(s) {
			// Two that install at once would each write a first row.
			err := s.exclusive(ctx, s.metaID(), func(id string) error {
				return s.exec(ctx, text, options{id: id, settings: map[string]any{"async_insert": 0}})
			})
			if err != nil {
				return s.fail("install tables", err)
			}
		}
	}
	return nil
}

// layout is the version of the tables that are there; 0 for none. One that is
// newer than this program is refused.
func (s *Store) layout(ctx context.Context) (int, error) {
	var tables uint64
	_, err := s.row(ctx, "SELECT count() FROM system.tables WHERE database="+textList([]string{s.database})+
		" AND name IN ("+textList([]string{appliedTable, metaTable})+")", &tables)
	if err != nil || tables < 2 {
		return 0, err
	}
	var layout uint32
	if _, err := s.row(ctx, "SELECT layout FROM "+s.meta+" ORDER BY version DESC LIMIT 1", &layout); err != nil {
		return 0, err
	}
	return int(layout), s.checkLayout(int(layout))
}

func (s *Store) checkLayout(found int) error {
	if found <= len(layouts) {
		return nil
	}
	return s.refuse("open store", fmt.Sprintf("its tables have layout version %d, this program knows up to %d", found, len(layouts)), "use a newer rhizodat")
}
