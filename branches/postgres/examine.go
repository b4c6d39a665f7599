package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/rhizodat/rhizodat-go/branches"
)

var _ branches.Examiner = (*Store)(nil)

const (
	oldestVersion = 130000
	slotsAlert    = 80 // per cent
)

// Examine looks at everything that a unit of several stores will need of this
// one. It changes nothing, and says what it can where a right is lacking.
func (s *Store) Examine(ctx context.Context) ([]branches.Finding, error) {
	var seen setup
	err := s.run(ctx, func(session *Session) error {
		names, err := s.knownBy(ctx, session)
		if err != nil {
			return err
		}
		got, err := ask(ctx, session.client(), setupText(names))
		if err != nil {
			return err
		}
		seen = readSetup(names, got)
		if seen.metaMissing || !seen.metaRights {
			return nil
		}
		seen.layout, seen.layoutErr = s.layout(ctx, session, names)
		return nil
	})
	if err != nil {
		return nil, s.fail("examine store", err)
	}
	return []branches.Finding{
		seen.version(), seen.primary(), seen.slots(), seen.durability(), seen.standbys(),
		seen.markers(), seen.meta(), seen.role(),
	}, nil
}

// setup is what Examine asks.
type setup struct {
	names          *tables
	versionNum     int
	versionText    string
	standby        bool
	slotsMax       int
	slotsUsed      int
	fsync          bool
	syncNames      string
	walSenders     int
	login          string
	appliedMissing bool
	appliedRights  bool
	appliedHidden  bool // row level security applies to the login
	appliedHooks   int  // triggers and rules
	appliedUnsafe  bool // unlogged
	metaMissing    bool
	metaRights     bool
	foreign        bool
	layout         int
	layoutErr      error
}

func setupText(names *tables) string {
	class := func(table string) string { return "pg_catalog.to_regclass(" + literalText(table) + ")" }
	may := func(table, right string) string {
		return "coalesce(pg_catalog.has_table_privilege(session_user," + class(table) + ",'" + right + "'),false)"
	}
	applied, meta := class(names.applied), class(names.meta)
	return "SELECT pg_catalog.current_setting('server_version_num'),pg_catalog.current_setting('server_version')," +
		"pg_catalog.pg_is_in_recovery(),coalesce(pg_catalog.current_setting('max_prepared_transactions',true),'0')," +
		"(SELECT count(*) FROM pg_catalog.pg_prepared_xacts),pg_catalog.current_setting('fsync')='on'," +
		"pg_catalog.current_setting('synchronous_standby_names'),(SELECT count(*) FROM pg_catalog.pg_stat_replication),session_user," +
		applied + " IS NULL," + may(names.applied, "SELECT") + " AND " + may(names.applied, "INSERT") + " AND " + may(names.applied, "DELETE") + "," +
		"coalesce(pg_catalog.row_security_active(" + applied + "::pg_catalog.oid),false)," +
		"(SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid=" + applied + " AND NOT tgisinternal)+" +
		"(SELECT count(*) FROM pg_catalog.pg_rewrite WHERE ev_class=" + applied + ")," +
		"EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid=" + applied + " AND relpersistence<>'p')," +
		meta + " IS NULL," + may(names.meta, "SELECT") + " AND " + may(names.meta, "UPDATE") + "," +
		"EXISTS (SELECT FROM pg_catalog.pg_foreign_table)"
}

func readSetup(names *tables, got answers) setup {
	yes := func(i int) bool { return got.cell(0, i) == "t" }
	// Every number is one of the server's own, so it is one.
	number := func(i int) int { n, _ := strconv.Atoi(got.cell(0, i)); return n }
	return setup{
		names: names, versionNum: number(0), versionText: got.cell(0, 1), standby: yes(2),
		slotsMax: number(3), slotsUsed: number(4), fsync: yes(5), syncNames: got.cell(0, 6), walSenders: number(7),
		login: got.cell(0, 8), appliedMissing: yes(9), appliedRights: yes(10), appliedHidden: yes(11),
		appliedHooks: number(12), appliedUnsafe: yes(13), metaMissing: yes(14), metaRights: yes(15), foreign: yes(16),
	}
}

func found(severity branches.Severity, check, text, way string) branches.Finding {
	return branches.Finding{Severity: severity, Check: check, Text: text, Way: way}
}

func (e *setup) version() branches.Finding {
	const check = "version"
	if e.versionNum < oldestVersion {
		return found(branches.SeverityError, check, "PostgreSQL "+e.versionText, "use PostgreSQL 13 or newer")
	}
	return found(branches.SeverityOK, check, "PostgreSQL "+e.versionText, "")
}

func (e *setup) primary() branches.Finding {
	const check = "primary"
	if e.standby {
		return found(branches.SeverityError, check, "the server is a standby", "point the DSN at the primary (target_session_attrs=read-write)")
	}
	return found(branches.SeverityOK, check, "the server is a primary", "")
}

func (e *setup) slots() branches.Finding {
	const check = "max_prepared_transactions"
	text := fmt.Sprintf("%d of %d slots for prepared transactions in use", e.slotsUsed, e.slotsMax)
	switch {
	case e.slotsMax == 0:
		return found(branches.SeverityError, check, "prepared transactions are disabled (max_prepared_transactions=0)",
			"set it above the number of units that commit at a time and restart the server")
	case e.slotsUsed*100 > e.slotsMax*slotsAlert:
		return found(branches.SeverityWarning, check, text, "run rhizorecover; raise max_prepared_transactions and restart the server")
	}
	return found(branches.SeverityOK, check, text, "")
}

func (e *setup) durability() branches.Finding {
	const check = "fsync"
	if !e.fsync {
		return found(branches.SeverityWarning, check, "fsync=off: a crash of the machine loses what was prepared and committed", "set fsync=on")
	}
	return found(branches.SeverityOK, check, "fsync=on", "")
}

func (e *setup) standbys() branches.Finding {
	const check = "standbys"
	switch {
	case e.syncNames != "":
		return found(branches.SeverityOK, check, "synchronous_standby_names="+e.syncNames, "")
	case e.walSenders > 0:
		return found(branches.SeverityWarning, check,
			fmt.Sprintf("%d asynchronous standbys: a fail-over may lose what was prepared or committed", e.walSenders),
			"set synchronous_standby_names")
	}
	return found(branches.SeverityOK, check, "no standbys", "")
}

func (e *setup) markers() branches.Finding {
	const check = "marker table"
	switch {
	case e.appliedMissing:
		return found(branches.SeverityError, check, e.names.applied+" does not exist", "run rhizorecover init")
	case !e.appliedRights:
		return found(branches.SeverityError, check, "role "+e.login+" lacks a right on "+e.names.applied,
			"GRANT SELECT, INSERT, DELETE ON "+e.names.applied+" TO "+quote(e.login))
	case e.appliedUnsafe:
		return found(branches.SeverityError, check, e.names.applied+" is not logged: a crash empties it, and then it proves nothing",
			"ALTER TABLE "+e.names.applied+" SET LOGGED")
	case e.appliedHooks > 0:
		return found(branches.SeverityError, check, e.names.applied+" has triggers or rules", "drop them: a marker must be what was written")
	case e.appliedHidden:
		return found(branches.SeverityError, check, "row level security hides rows of "+e.names.applied+" from role "+e.login,
			"ALTER TABLE "+e.names.applied+" DISABLE ROW LEVEL SECURITY")
	}
	return found(branches.SeverityOK, check, e.names.applied, "")
}

func (e *setup) meta() branches.Finding {
	const check = "meta table"
	switch {
	case e.metaMissing:
		return found(branches.SeverityError, check, e.names.meta+" does not exist", "run rhizorecover init")
	case !e.metaRights:
		return found(branches.SeverityError, check, "role "+e.login+" lacks a right on "+e.names.meta,
			"GRANT SELECT, UPDATE ON "+e.names.meta+" TO "+quote(e.login))
	case e.layoutErr != nil:
		return found(branches.SeverityError, check, e.layoutErr.Error(), "")
	case e.layout == 0:
		return found(branches.SeverityError, check, e.names.meta+" has no row", "run rhizorecover init")
	}
	return found(branches.SeverityOK, check, fmt.Sprintf("%s, layout version %d", e.names.meta, e.layout), "")
}

// role says as whom branches are prepared, and what the database makes of
// branches that only read.
func (e *setup) role() branches.Finding {
	const check = "branches"
	if e.foreign {
		return found(branches.SeverityNote, check, "there are foreign tables: every branch here is prepared, also one that only read; prepared by role "+e.login, "")
	}
	return found(branches.SeverityOK, check, "prepared by role "+e.login, "")
}
