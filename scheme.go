package rhizodat

import (
	"slices"
	"strings"
)

// scheme is what the text of a DSN needs to know of a URL's scheme. Whether
// this program has the adapter is the registry's to say (register.go).
type scheme struct {
	name           string
	adapter        *adapter
	store, journal bool
	port           string // the port that stands for none
	refused, way   string // why no URL may have this scheme
}

// adapter is what the schemes of one kind of store have in common.
type adapter struct {
	name   string // in "this program has no … adapter" and in rhizodat_no_…
	shared string // what two of its stores in one place have in common
	apart  string // how to give each its own
	place  func(scheme, storeURL) string
}

var (
	postgresAdapter = &adapter{
		name: "postgres", place: postgresPlace,
		shared: "both are one PostgreSQL database and schema, where the second would wait for the first one's marker for ever",
		apart:  "give each its own database, or its own schema with ?schema=",
	}
	clickhouseAdapter = &adapter{
		name: "clickhouse", place: databasePlace,
		shared: "both are one ClickHouse database, where the marker of one would make the other look applied",
		apart:  "give each its own database",
	}
	icebergAdapter = &adapter{
		name: "iceberg", place: wholePlace,
		shared: "both are one Iceberg catalog and namespace root",
		apart:  "give each its own catalog or namespace",
	}
	drevoAdapter = &adapter{
		name: "drevo", place: databasePlace,
		shared: "both are one drevo graph, whose fence would refuse the second at every prepare",
		apart:  "give each its own graph",
	}
	fileAdapter = &adapter{name: "sqlite"}
)

const (
	neo4jRefused = "neo4j:// asks the server for a routing table, which drevo does not have"
	neo4jWay     = "write bolt:// (or bolt+s://, bolt+ssc://)"
)

// schemes is the table of protocol.md §2.
var schemes = []scheme{
	{name: "postgres", adapter: postgresAdapter, store: true, journal: true, port: "5432"},
	{name: "postgresql", adapter: postgresAdapter, store: true, journal: true, port: "5432"},
	{name: "clickhouse", adapter: clickhouseAdapter, store: true, port: "9000"},
	{name: "clickhouse+http", adapter: clickhouseAdapter, store: true, port: "8123"},
	{name: "clickhouse+https", adapter: clickhouseAdapter, store: true, port: "8443"},
	{name: "iceberg+sqlite", adapter: icebergAdapter, store: true},
	{name: "iceberg+postgres", adapter: icebergAdapter, store: true, port: "5432"},
	{name: "iceberg+rest+http", adapter: icebergAdapter, store: true, port: "80"},
	{name: "iceberg+rest+https", adapter: icebergAdapter, store: true, port: "443"},
	{name: "iceberg+dir", adapter: icebergAdapter, store: true},
	{name: "bolt", adapter: drevoAdapter, store: true, journal: true, port: "7687"},
	{name: "bolt+s", adapter: drevoAdapter, store: true, journal: true, port: "7687"},
	{name: "bolt+ssc", adapter: drevoAdapter, store: true, journal: true, port: "7687"},
	{name: "file", adapter: fileAdapter, journal: true},
	{name: "neo4j", refused: neo4jRefused, way: neo4jWay},
	{name: "neo4j+s", refused: neo4jRefused, way: neo4jWay},
	{name: "neo4j+ssc", refused: neo4jRefused, way: neo4jWay},
}

// findScheme knows the table and what was registered beside it.
func findScheme(name string) (scheme, bool) {
	for _, s := range schemes {
		if s.name == name {
			return s, true
		}
	}
	return registeredScheme(name)
}

// knownScheme returns the scheme that a value begins with, if it is known: then
// the value is a store, whatever its key.
func knownScheme(value string) (scheme, bool) {
	name, _, found := strings.Cut(value, ":")
	if !found {
		return scheme{}, false
	}
	return findScheme(name)
}

// looksLikeURL tells a store with an unknown scheme from an option.
func looksLikeURL(value string) bool {
	name, _, found := strings.Cut(value, "://")
	return found && validScheme(strings.ToLower(name))
}

// validScheme: RFC 3986 §3.1, in lower case.
func validScheme(name string) bool {
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// nearestScheme names the scheme that comes closest to that of value.
func nearestScheme(value string, fits func(scheme) bool) string {
	var names []string
	for _, s := range slices.Concat(schemes, registeredSchemes()) {
		if s.refused == "" && fits(s) {
			names = append(names, s.name)
		}
	}
	name, _, _ := strings.Cut(value, ":")
	return nearest(name, names)
}

func storeScheme(s scheme) bool   { return s.store }
func journalScheme(s scheme) bool { return s.journal }
