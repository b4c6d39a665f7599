package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

var _ branches.Examiner = (*Store)(nil)

// Examine looks at everything that a unit of several stores will need of this
// one. It changes nothing.
func (s *Store) Examine(ctx context.Context) ([]branches.Finding, error) {
	var version, user, engine string
	var readonly uint64
	found, err := s.row(ctx, "SELECT version(),currentUser(),toUInt64(getSetting('readonly')),"+
		"(SELECT any(engine) FROM system.databases WHERE name="+textList([]string{s.database})+")", &version, &user, &readonly, &engine)
	switch {
	case err != nil:
		return nil, s.fail("examine store", err)
	case !found || engine == "":
		return nil, s.refuse("examine store", "there is no database "+s.database, "create it, or name another in the DSN")
	}
	findings := []branches.Finding{examineVersion(version), examineUser(user, readonly)}
	ours, err := s.examineOurs(ctx)
	if err != nil {
		return findings, s.fail("examine store", err)
	}
	theirs, err := s.examineTables(ctx)
	if err != nil {
		return findings, s.fail("examine store", err)
	}
	return append(append(findings, ours...), theirs...), nil
}

func finding(severity branches.Severity, check, text, way string) branches.Finding {
	return branches.Finding{Severity: severity, Check: check, Text: text, Way: way}
}

func examineVersion(version string) branches.Finding {
	if !recent(version) {
		return finding(branches.SeverityError, "version", "ClickHouse "+version+" has no lightweight DELETE", "use ClickHouse "+oldest+" or newer")
	}
	return finding(branches.SeverityOK, "version", "ClickHouse "+version, "")
}

func examineUser(user string, readonly uint64) branches.Finding {
	if readonly == 1 {
		return finding(branches.SeverityError, "user", "user "+user+" is read-only", "use a user whose profile has readonly=0")
	}
	return finding(branches.SeverityOK, "user", user, "")
}

// examineOurs looks at the marker and meta tables.
func (s *Store) examineOurs(ctx context.Context) ([]branches.Finding, error) {
	var findings []branches.Finding
	for _, name := range []string{appliedTable, metaTable} {
		check := map[string]string{appliedTable: "marker table", metaTable: "meta table"}[name]
		full := tableName{s.database, name}
		found, err := s.describe(ctx, []tableName{full})
		switch {
		case err != nil && found == nil && !answered(err):
			if classify(err) == branches.Transient {
				return nil, err
			}
			findings = append(findings, finding(branches.SeverityError, check, full.String()+" does not exist", "run rhizorecover init"))
			continue
		case err != nil:
			return nil, err
		}
		t := found[full]
		switch {
		case !strings.HasSuffix(t.engine, "MergeTree"):
			findings = append(findings, finding(branches.SeverityError, check, full.String()+" has the engine "+t.engine+": it may forget", "run rhizorecover init in another database"))
		case s.opts.Fsync && !strings.Contains(t.create, "fsync_after_insert"):
			findings = append(findings, finding(branches.SeverityWarning, check, full.String()+" is not synced to the disk",
				"ALTER TABLE "+full.quoted()+" MODIFY SETTING fsync_after_insert=1,fsync_part_directory=1"))
		default:
			findings = append(findings, finding(branches.SeverityOK, check, full.String(), ""))
		}
	}
	layout, err := s.layout(ctx)
	if err != nil {
		findings = append(findings, finding(branches.SeverityError, "layout", err.Error(), ""))
	} else if layout > 0 {
		findings = append(findings, finding(branches.SeverityOK, "layout", fmt.Sprintf("layout version %d", layout), ""))
	}
	return findings, nil
}

// examineTables looks at every table of the database that units may write to:
// those that have a column of ours. The others are named once.
func (s *Store) examineTables(ctx context.Context) ([]branches.Finding, error) {
	var with []tableName
	var without []string
	err := s.each(ctx, "SELECT name,name IN (SELECT table FROM system.columns WHERE database="+textList([]string{s.database})+
		" AND name IN ("+textList([]string{columnTxn, columnTime})+")) FROM system.tables WHERE database="+textList([]string{s.database})+
		" AND name NOT IN ("+textList([]string{appliedTable, metaTable})+") AND endsWith(engine,'MergeTree') AND NOT startsWith(name,'.inner') ORDER BY name",
		func(scan func(...any) error) error {
			var name string
			var has uint8
			if err := scan(&name, &has); err != nil {
				return err
			}
			if has == 1 {
				with = append(with, tableName{s.database, name})
			} else {
				without = append(without, name)
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	var findings []branches.Finding
	if len(without) > 0 {
		findings = append(findings, finding(branches.SeverityNote, "tables", "without "+columnTxn+", so that no unit can write to them: "+strings.Join(without, ", "),
			"ALTER TABLE … ADD COLUMN "+columnTxn+" Nullable(UUID), ADD COLUMN "+columnTime+" Nullable(Int64) where one should"))
	}
	if len(with) == 0 {
		return append(findings, finding(branches.SeverityNote, "tables", "no table of "+s.database+" can be written to by a unit", "")), nil
	}
	described, err := s.describe(ctx, with)
	if err != nil {
		return nil, err
	}
	for _, name := range with {
		findings = append(findings, s.examineTable(described[name])...)
	}
	return findings, nil
}

func (s *Store) examineTable(t *table) []branches.Finding {
	check := "table " + t.name.table
	if cause, way := s.fit(t); cause != "" {
		return []branches.Finding{finding(branches.SeverityWarning, check, cause, way)}
	}
	var findings []branches.Finding
	if !strings.Contains(t.create, "INDEX") && !strings.Contains(t.create, "ORDER BY "+columnTxn) && !strings.Contains(t.create, "ORDER BY ("+columnTxn) {
		findings = append(findings, finding(branches.SeverityNote, check, "no index on "+columnTxn+": every commit reads the whole column",
			"ALTER TABLE "+t.name.quoted()+" ADD INDEX dat_txn dat_txn TYPE bloom_filter GRANULARITY 1"))
	}
	if s.opts.Fsync && !strings.Contains(t.create, "fsync_after_insert") {
		findings = append(findings, finding(branches.SeverityWarning, check, "not synced to the disk: a power loss may take rows whose marker stays",
			"ALTER TABLE "+t.name.quoted()+" MODIFY SETTING fsync_after_insert=1,fsync_part_directory=1"))
	}
	window := "no deduplication window"
	switch {
	case strings.HasPrefix(t.engine, "Replicated"):
		window = "replicated: point the DSN at one replica, query ids and markers are kept by each of its own"
	case strings.Contains(t.create, "non_replicated_deduplication_window"):
		window = "a deduplication window"
	}
	return append(findings, finding(branches.SeverityOK, check, t.engine+", "+window, ""))
}
