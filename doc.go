// Package rhizodat is a database/sql driver that makes several stores behave
// like one transactional store.
//
//	db, err := sql.Open("rhizodat",
//		"a=postgres://app@db1/bank_a b=postgres://app@db2/bank_b journal=postgres://app@db3/coord default=a")
//
// One *sql.Tx is one meta-transaction: it has a branch in every store that a
// statement reached, and its Commit is atomic over all of them, by two-phase
// commit with a journal. What was left half-way by a crash is finished by
// recovery, from any process (package recovery, command rhizorecover). The
// protocol is told in package coordinator.
//
// # DSN
//
// A DSN is name=value words with blanks between them; a line break is a blank,
// and blanks around the whole are ignored. There are none around "=".
//
//	pg=postgres://app@db/erp?schema=orders  ch=clickhouse://ch:9000/orders
//	journal=postgres://app@db/coord  default=pg  min_free=1GiB
//
// A value is taken as it is written, up to the next blank: a store's own URL is
// pasted in and never escaped a second time. A value with blanks stands in
// single quotes; in there, and only in there, a backslash takes the next
// character as it is (\' and \\).
//
// # Stores
//
// A value that begins with a known scheme and ":" is a store, whatever its key
// (but journal), and the key is the store's name: [a-z][a-z0-9_]{0,31}. Every
// other word is an option, so an option of a later release never breaks a DSN:
// even a store called like one is told from it by its value. An unknown option
// or scheme is refused with the nearest known name, a name given twice is
// refused, and so is an empty value.
//
//	postgres, postgresql                everything is pgx's own; schema= becomes search_path
//	clickhouse, clickhouse+http(s)
//	iceberg+sqlite, iceberg+postgres, iceberg+rest+http(s), iceberg+dir
//	bolt, bolt+s, bolt+ssc              drevo; neo4j:// is refused: drevo has no routing table
//
// A program has the adapters that were linked into it. A DSN that names
// another, or one that a build tag left out (rhizodat_no_postgres, …), is
// refused at open with the adapter's name. [RegisterStore] adds a scheme.
//
// Several stores may use one adapter, but two whose markers would share a place
// are refused, naming both: the same PostgreSQL server, database and schema,
// the same ClickHouse server and database, the same Iceberg catalog and root,
// the same drevo server and graph. At open as far as the text shows it (default
// ports, the loopback's names, the order of hosts and parameters make no
// difference), later by what the servers say of themselves.
//
// # Journal
//
// The journal is a postgres, postgresql or bolt URL, or file:///path for a
// SQLite database: that one serves a single host only, and is used only when it
// is written so. A drevo journal must not be on the graph of a drevo store.
// Without a journal, opening works, and the first commit with two branches
// fails before anything is written.
//
// # Options
//
// Durations have Go's syntax (20s, 1m30s) and at least a millisecond. Sizes are
// bytes or have a binary unit: 65536, 512KiB, 64MiB, 1GiB.
//
//	option            default     value                  meaning
//	journal                       URL                    where commits of several branches are decided
//	default                       store                  store of a statement that names none
//	min_free          0           size                   free bytes a unit's stores must report at S3; 0 is off
//	commit_timeout    20s         duration               bounds S4 to S7 and Rollback; below stale_after
//	finish_timeout    5s          duration               bounds S8 and S9 before Commit returns
//	stale_after       30s         duration               age at which recovery takes an unchanged record
//	alert_after       10m         duration               age at which an unfinished unit is stuck
//	lock_timeout      10s         duration, 0 is off     bounds waits for locks with several stores
//	max_payload       64MiB       size                   most bytes a unit stages in the journal
//	retain            24h         duration               how long final records and markers are kept
//	max_clock_drift   60s         duration               how far two clocks may be apart
//	on_pending        error       error | ok             what Commit returns of a pending unit
//	markers           auto        auto | on              on: also with one store and no journal
//	ping              all         all | default          what a ping reaches
//	journal_conns     16          number                 size of the journal's own pool
//	journal_label     DatJournal  label                  label of a drevo journal's nodes
//	commit_wait       45s         duration               wait of a one-branch Iceberg commit for its table
//	application_name              text                   what the stores show of a session
//
// Where a unit can commit (several stores, or a journal) commit_timeout must
// stay below stale_after: recovery would abort commits that are still under
// way.
//
// # Without a DSN
//
// [Config] has the same in fields; a store or the journal may also be given as
// a ready [database/sql/driver.Connector] or by the adapter's own options.
// [ParseDSN] and [Config.FormatDSN] are inverse.
//
// # Secrets
//
// No error of this package repeats a value of a DSN, and a Config prints itself
// with its secrets masked: passwords in URLs, and parameters whose names say
// that they hold a password, a secret, a token, a credential or a key. Where
// the parts of a URL are not certain, the whole of it is masked.
package rhizodat
