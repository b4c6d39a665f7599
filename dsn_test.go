package rhizodat

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches"
)

// password is the fixture that no error, log or print may show. It has bytes
// that no name has, so that it cannot be shown as one.
const password = "hun!ter2$Fixture"

// accepted is a DSN and what it says.
type accepted struct {
	name, dsn string
	want      Config
}

func acceptedDSNs() []accepted {
	return []accepted{
		{
			"the manual's own",
			"pg=postgres://app@db/erp?schema=orders  ch=clickhouse://ch:9000/orders  graph=bolt://drevo:7687/orders " +
				"lake=iceberg+postgres://db/lake?warehouse=s3://bucket/wh  journal=postgres://app@db/coord  default=pg  min_free=1GiB",
			Config{
				Stores: map[string]StoreConfig{
					"pg":    {URL: "postgres://app@db/erp?schema=orders"},
					"ch":    {URL: "clickhouse://ch:9000/orders"},
					"graph": {URL: "bolt://drevo:7687/orders"},
					"lake":  {URL: "iceberg+postgres://db/lake?warehouse=s3://bucket/wh"},
				},
				Journal: JournalConfig{URL: "postgres://app@db/coord"},
				Default: "pg",
				MinFree: 1 << 30,
			},
		},
		{
			"every option",
			"pg=postgres:///erp journal=file:///var/lib/j.db default=pg min_free=512KiB commit_timeout=10s finish_timeout=2s " +
				"stale_after=1m alert_after=1h lock_timeout=3s max_payload=1024 retain=48h max_clock_drift=1500ms on_pending=ok " +
				"markers=on ping=default journal_conns=4 journal_label=Coord commit_wait=1m30s application_name='order desk'",
			Config{
				Stores:  map[string]StoreConfig{"pg": {URL: "postgres:///erp"}},
				Journal: JournalConfig{URL: "file:///var/lib/j.db"},
				Default: "pg", MinFree: 512 << 10, CommitTimeout: 10 * time.Second, FinishTimeout: 2 * time.Second,
				StaleAfter: time.Minute, AlertAfter: time.Hour, LockTimeout: 3 * time.Second, MaxPayload: 1024,
				Retain: 48 * time.Hour, MaxClockDrift: 1500 * time.Millisecond, OnPending: PendingOK, Markers: MarkersOn,
				Ping: PingDefault, JournalConns: 4, JournalLabel: "Coord", CommitWait: 90 * time.Second,
				ApplicationName: "order desk",
			},
		},
		{
			"line breaks and blanks around",
			"\n a=postgres://h/a\r\n\tb=postgres://h/b \n",
			Config{Stores: map[string]StoreConfig{"a": {URL: "postgres://h/a"}, "b": {URL: "postgres://h/b"}}},
		},
		{
			"a URL is taken as it is: quotes, backslashes, percent signs, question marks",
			`pg=postgres://u:p'a\b%20?#c@h/erp?application_name=a=b`,
			Config{Stores: map[string]StoreConfig{"pg": {URL: `postgres://u:p'a\b%20?#c@h/erp?application_name=a=b`}}},
		},
		{
			"quotes as in libpq",
			`pg='postgres://h/erp?application_name=it\'s a \\ \desk'`,
			Config{Stores: map[string]StoreConfig{"pg": {URL: `postgres://h/erp?application_name=it's a \ desk`}}},
		},
		{
			"a store called as an option, now or later",
			"default=postgres://h/a home=postgres://h/b reads=postgres://h/c default=home",
			Config{
				Stores:  map[string]StoreConfig{"default": {URL: "postgres://h/a"}, "home": {URL: "postgres://h/b"}, "reads": {URL: "postgres://h/c"}},
				Default: "home",
			},
		},
		{
			"no bound on waits for locks",
			"pg=postgres://h/a lock_timeout=0",
			Config{Stores: map[string]StoreConfig{"pg": {URL: "postgres://h/a"}}, LockTimeout: NoLockTimeout},
		},
		{
			"min_free off, default values stated",
			"pg=postgres://h/a min_free=0 on_pending=error markers=auto ping=all",
			Config{Stores: map[string]StoreConfig{"pg": {URL: "postgres://h/a"}}},
		},
		{
			"one store and no journal commits no unit of several",
			"pg=postgres://h/a commit_timeout=10m",
			Config{Stores: map[string]StoreConfig{"pg": {URL: "postgres://h/a"}}, CommitTimeout: 10 * time.Minute},
		},
		{
			"names of 32 bytes, a name for each of one adapter",
			"a23456789_123456789_123456789_12=postgresql://h/a b=postgres://h/b",
			Config{Stores: map[string]StoreConfig{"a23456789_123456789_123456789_12": {URL: "postgresql://h/a"}, "b": {URL: "postgres://h/b"}}},
		},
		{
			"drevo journal beside drevo stores",
			"g=bolt://h/orders journal=bolt+s://h:7687/coord",
			Config{Stores: map[string]StoreConfig{"g": {URL: "bolt://h/orders"}}, Journal: JournalConfig{URL: "bolt+s://h:7687/coord"}},
		},
	}
}

func TestParseDSNAccepts(t *testing.T) {
	for _, tt := range acceptedDSNs() {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseDSN(tt.dsn)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fields(tt.want), fields(*got)); diff != "" {
				t.Error(diff)
			}
			text, err := got.FormatDSN()
			if err != nil {
				t.Fatalf("format: %v", err)
			}
			again, err := ParseDSN(text)
			if err != nil {
				t.Fatalf("parse what FormatDSN wrote: %v", err)
			}
			if diff := cmp.Diff(fields(*got), fields(*again)); diff != "" {
				t.Errorf("FormatDSN and ParseDSN are not inverse:\n%s", diff)
			}
		})
	}
}

type configFields struct {
	Stores  map[string]string
	Journal string
	Options map[string]string
}

// fields is a Config whose differences cmp can show: a Config masks itself.
func fields(c Config) configFields {
	f := configFields{Stores: map[string]string{}, Journal: c.Journal.URL, Options: map[string]string{}}
	for name, s := range c.Stores {
		f.Stores[name] = s.URL
	}
	for _, o := range options {
		f.Options[o.key] = o.get(&c)
	}
	return f
}

// refused is a DSN and the words that refuse it.
type refused struct{ name, dsn, want string }

// onePG is a store that the refused word follows, at byte 42.
const onePG = "pg=postgres://app:" + password + "@db/erp "

// malformedDSNs are no list of words.
func malformedDSNs() []refused {
	return []refused{
		{"empty", "", `byte 0: no store; write one as name=URL, as in pg=postgres://app@db/erp`},
		{"no store", "default=pg", `byte 0: no store; write one as name=URL, as in pg=postgres://app@db/erp`},
		{"word without =", onePG + "default", `byte 42: a word without "="; a DSN is name=value words; a value with blanks is quoted as in name='a b'`},
		{"blank before =", onePG + "default =pg", `byte 42: a word without "="; a DSN is name=value words; a value with blanks is quoted as in name='a b'`},
		{"no name", onePG + "=x", `byte 42: no name before the "="; no blank may stand before it`},
		{"blank after =", "pg= postgres://app:" + password + "@db/erp", `byte 0: pg: the value is empty; leave the word out for the default; no blank may stand after the "="`},
		{"empty value", onePG + "default=", `byte 42: default: the value is empty; leave the word out for the default; no blank may stand after the "="`},
		{"empty quoted value", onePG + "default=''", `byte 50: default: the value is empty`},
		{"blank at the start of a value", "pg=' postgres://app:" + password + "@db/erp'", `byte 3: pg: the value begins or ends with a blank`},
		{"blank at the end of a value", onePG + "application_name='desk '", `byte 59: application_name: the value begins or ends with a blank`},
		{"quote not closed", "pg='postgres://app:" + password + "@db/erp", `byte 3: pg: the quote is not closed`},
		{"quote not closed after a backslash", `pg='postgres://db/erp\`, `byte 3: pg: the quote is not closed`},
		{"text behind a quote", "pg='postgres://app:" + password + "@db/erp'default=pg", `byte 43: pg: no blank after the closing quote; inside quotes a quote is written \' and a backslash \\`},
		{"NUL", "pg=postgres://app:" + password + "@db/erp\x00", `byte 41: a NUL byte`},
		{"not UTF-8", "pg=postgres://app:" + password + "\xff@db/erp", `byte 34: the text is not valid UTF-8`},
		{"a bare URL", "postgres://app:" + password + "@db/erp", `byte 0: a word without "="; a DSN is name=value words; a value with blanks is quoted as in name='a b'`},
		{"a bare URL with parameters", "postgres://app:" + password + "@db/erp?sslmode=disable", `byte 0: a URL without a name before it; write the store's name and "=" before it, as in pg=postgres://…`},
		{"a keyword/value string of libpq", "host=db user=app password=" + password, `byte 0: option host: unknown option; the nearest is "ping"`},
	}
}

// misnamedDSNs have a word that is not known, or is there twice.
func misnamedDSNs() []refused {
	return []refused{
		{"unknown option", onePG + "comit_timeout=5s", `byte 42: option comit_timeout: unknown option; the nearest is "commit_timeout"`},
		{"option of a later release", onePG + "home=off", `byte 42: option home: unknown option; the nearest is "ping"`},
		{"option in capitals", onePG + "Stale_After=5s", `byte 42: option Stale_After: unknown option; the nearest is "stale_after"`},
		{"half a password", "pg=postgres://app:" + password + " " + password + "=x@db/erp", `byte 35: neither a store's name nor an option's before the "="`},
		{"option twice", onePG + "default=pg default=pg", `byte 53: option default: it is given twice`},
		{"journal twice", onePG + "journal=file:///a journal=file:///b", `byte 60: option journal: it is given twice`},
		{"store twice", onePG + "pg=postgres://db/x", `byte 42: store pg: it is given twice`},
		{"store's name in capitals", "PG=postgres://app:" + password + "@db/erp", `byte 0: store PG: a store's name is [a-z][a-z0-9_]{0,31}`},
		{"store's name of 33 bytes", onePG + "a23456789_123456789_123456789_123=postgres://h/a", `byte 42: a store's name is [a-z][a-z0-9_]{0,31}`},
		{"store's name begins with a digit", onePG + "1a=postgres://h/a", `byte 42: a store's name is [a-z][a-z0-9_]{0,31}`},
		{"store's name with a dash", onePG + "my-pg=postgres://h/a", `byte 42: a store's name is [a-z][a-z0-9_]{0,31}`},
	}
}

// misplacedDSNs have a URL that no adapter takes.
func misplacedDSNs() []refused {
	return []refused{
		{"unknown scheme", "pg=postgre://app:" + password + "@db/erp", `byte 0: store pg: unknown scheme; the nearest is "postgres"`},
		{"scheme in capitals", "pg=Postgres://app:" + password + "@db/erp", `byte 0: store pg: unknown scheme; the nearest is "postgres"`},
		{"clickhouse's other name", "ch=clickhouses://h/a", `byte 0: store ch: unknown scheme; the nearest is "clickhouse"`},
		{"neo4j", "g=neo4j://app:" + password + "@h:7687", `byte 0: store g: neo4j:// asks the server for a routing table, which drevo does not have; write bolt:// (or bolt+s://, bolt+ssc://)`},
		{"neo4j+s as the journal", onePG + "journal=neo4j+s://h:7687", `byte 42: option journal: neo4j:// asks the server for a routing table, which drevo does not have; write bolt:// (or bolt+s://, bolt+ssc://)`},
		{"file as a store", "pg=file:///var/lib/a.db", `byte 0: store pg: file is for a journal, not for a store; write journal=file:…`},
		{"clickhouse as the journal", onePG + "journal=clickhouse://h/a", `byte 42: option journal: a journal cannot be in clickhouse; ` + journalWay},
		{"unknown scheme of the journal", onePG + "journal=sqlite:///a.db", `byte 42: option journal: unknown scheme; the nearest is "bolt"; ` + journalWay},
		{"no URL as the journal", onePG + "journal=" + password, `byte 42: option journal: its URL has no scheme; ` + journalWay},
		{"a relative file", onePG + "journal=file:a.db", `byte 42: option journal: the scheme is not followed by "//"; ` + journalWay},
		{"a file on a host", onePG + "journal=file://host/a.db", `byte 42: option journal: a local journal is a file's full path; write file:///var/lib/app/journal.db`},
		{"a folder", onePG + "journal=file:///var/lib/", `byte 42: option journal: a local journal is a file's full path; write file:///var/lib/app/journal.db`},
		{"scheme without //", "pg=postgres:host=db", `byte 0: store pg: the scheme is not followed by "//"`},
		{"password with a raw /", "pg=postgres://app:hun/" + password + "@db/erp", `byte 0: store pg: ` + rawAt},
		{"password with a raw / after digits", "pg=postgres://app:12/" + password + "@db/erp", `byte 0: store pg: ` + rawAt},
		{"port that is none", "pg=postgres://db:erp", `byte 0: store pg: ` + rawPort},
		{"password with a raw @", "pg=postgres://app:x@" + password + "@db/erp", `byte 0: store pg: ` + rawAt},
		{"password with a raw @ and ?", "pg=postgres://app:x@?" + password + "@db=/erp", `byte 0: store pg: ` + rawAt},
		{"IPv6 without brackets", "pg=postgres://::1/erp", `byte 0: store pg: a second colon in a host (an IPv6 address stands in brackets)`},
		{"IPv6 without its bracket", "pg=postgres://[::1/erp", `byte 0: store pg: an IPv6 address without its closing bracket`},
		{"control character", "pg='postgres://db/erp?a=\x01'", `byte 0: store pg: the URL has a control character`},
		{"blank in a host", "pg='postgres://db 1/erp'", `byte 0: store pg: a blank in a host`},
	}
}

// misvaluedDSNs have an option whose value is none.
func misvaluedDSNs() []refused {
	return []refused{
		{"no duration", onePG + "retain=1d", `byte 42: option retain: not a duration, as 20s or 1m30s`},
		{"number as a duration", onePG + "commit_timeout=20", `byte 42: option commit_timeout: not a duration, as 20s or 1m30s`},
		{"duration 0", onePG + "finish_timeout=0s", `byte 42: option finish_timeout: a duration of less than 1ms`},
		{"negative duration", onePG + "lock_timeout=-1s", `byte 42: option lock_timeout: a duration of less than 1ms`},
		{"lock_timeout that a server would round to off", onePG + "lock_timeout=500us", `byte 42: option lock_timeout: a duration of less than 1ms`},
		{"lock_timeout that a server refuses", onePG + "lock_timeout=597h", `byte 42: option lock_timeout: a duration of more than 596h, which PostgreSQL does not take`},
		{"decimal unit", onePG + "min_free=1GB", `byte 42: option min_free: not a size, as 65536, 512KiB, 64MiB or 1GiB`},
		{"negative size", onePG + "min_free=-1", `byte 42: option min_free: not a size, as 65536, 512KiB, 64MiB or 1GiB`},
		{"size too large", onePG + "min_free=8388608TiB", `byte 42: option min_free: not a size, as 65536, 512KiB, 64MiB or 1GiB`},
		{"payload 0", onePG + "max_payload=0", `byte 42: option max_payload: a size of 0`},
		{"connections 0", onePG + "journal_conns=0", `byte 42: option journal_conns: not a number of 1 or more`},
		{"connections too many", onePG + "journal_conns=2147483648", `byte 42: option journal_conns: not a number of 1 or more`},
		{"on_pending", onePG + "on_pending=nil", `byte 42: option on_pending: neither error nor ok`},
		{"markers", onePG + "markers=off", `byte 42: option markers: neither auto nor on`},
		{"ping", onePG + "ping=none", `byte 42: option ping: neither all nor default`},
		{"label", onePG + "journal_label=a`b", `byte 42: option journal_label: not a label: a letter, then letters, digits and _, 32 at most`},
		{"default is no store", onePG + "default=pq", `byte 42: option default: no store has that name; the stores are pg`},
		{"default is a password", "a=postgres://h/a b=postgres://h/b default=" + password, `byte 34: option default: no store has that name; the stores are a, b`},
	}
}

// unfitDSNs are words that do not go together.
func unfitDSNs() []refused {
	return []refused{
		{"commit_timeout above stale_after", onePG + "b=postgres://h/b commit_timeout=30s", `byte 59: option commit_timeout: commit_timeout (30s) is not below stale_after (30s); ` + timeoutWay},
		{"stale_after below commit_timeout's default", onePG + "journal=file:///j.db stale_after=20s", `byte 63: option stale_after: commit_timeout (20s) is not below stale_after (20s); ` + timeoutWay},
		{"two stores in one place", onePG + "x=bolt://h/y b=postgresql://app:" + password + "@DB:5432/erp?sslmode=disable", `byte 55: stores b and pg: ` + postgresAdapter.shared + `; ` + postgresAdapter.apart},
		{"two ClickHouse stores", "a=clickhouse://ch/x b=clickhouse+http://ch:8123/x", `byte 20: stores a and b: ` + clickhouseAdapter.shared + `; ` + clickhouseAdapter.apart},
		{"two drevo stores", "a=bolt://h b=bolt+s://h:7687/drevo", `byte 11: stores a and b: ` + drevoAdapter.shared + `; ` + drevoAdapter.apart},
		{"two Iceberg stores", "a=iceberg+dir:///w/x b=iceberg+dir:///w//x/", `byte 21: stores a and b: ` + icebergAdapter.shared + `; ` + icebergAdapter.apart},
		{"a drevo journal on a store's graph", "g=bolt://h/orders journal=bolt://h:7687/orders", `byte 0: store g: the journal is on the graph of this store, whose fence would block the decision; give the journal its own graph`},
	}
}

// TestParseDSNRefuses holds every refusal to its exact words: they are read by
// people whose program does not start.
func TestParseDSNRefuses(t *testing.T) {
	all := slices.Concat(malformedDSNs(), misnamedDSNs(), misplacedDSNs(), misvaluedDSNs(), unfitDSNs())
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseDSN(tt.dsn)
			var fault *DSNError
			if !errors.As(err, &fault) {
				t.Fatalf("ParseDSN(%q) = %v, want a *DSNError", tt.dsn, err)
			}
			if diff := cmp.Diff("rhizodat: parse DSN: "+tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(err.Error(), password) {
				t.Error("the error shows the password")
			}
			if fault.Kind() != branches.Permanent {
				t.Errorf("kind %v", fault.Kind())
			}
		})
	}
}

const (
	journalWay = "a journal is postgres://, bolt:// or, for one host, file:///"
	timeoutWay = "recovery would abort commits that are still under way"
)

func TestDSNErrorFields(t *testing.T) {
	_, err := ParseDSN("pg=postgres://h/a ch=clickhouse://h/a stale_aftr=1m")
	want := &DSNError{Key: "stale_aftr", Offset: 38, Reason: "unknown option", Nearest: "stale_after", noun: nounOption}
	if diff := cmp.Diff(want, err, cmp.AllowUnexported(DSNError{})); diff != "" {
		t.Error(diff)
	}
}
