package rhizodat

import "testing"

// TestTextPlaceEqual: spellings of one place, which are refused at open.
func TestTextPlaceEqual(t *testing.T) {
	tests := []struct{ name, a, b string }{
		{"scheme's other name", "postgres://h/a", "postgresql://h/a"},
		{"default port", "postgres://h/a", "postgres://h:5432/a"},
		{"empty port", "postgres://h/a", "postgres://h:/a"},
		{"case and final dot of a host", "postgres://H.Example./a", "postgres://h.example/a"},
		{"loopback by name and number", "postgres://localhost/a", "postgres://127.0.0.1/a"},
		{"loopback of both families", "postgres://[::1]:5432/a", "postgres://127.0.0.1/a"},
		{"an IPv6 address in two spellings", "postgres://[2001:db8::1]/a", "postgres://[2001:0DB8:0:0:0:0:0:1]/a"},
		{"an IPv4 address in IPv6", "postgres://[::ffff:10.0.0.1]/a", "postgres://10.0.0.1/a"},
		{"another password", "postgres://u:x@h/a", "postgres://u:y@h/a"},
		{"another user, the schema given", "postgres://u@h/a?schema=s", "postgres://v@h/a?schema=s"},
		{"parameters that say nothing of the place", "postgres://h/a?sslmode=disable&application_name=x", "postgres://h/a?application_name=y"},
		{"order of parameters", "postgres://h/a?sslmode=disable&schema=s", "postgres://h/a?schema=s&sslmode=disable"},
		{"schema by search_path", "postgres://h/a?schema=s", "postgres://h/a?search_path=s"},
		{"first of search_path", "postgres://h/a?schema=s", "postgres://h/a?search_path=%22s%22,public"},
		{"search_path in options", "postgres://h/a?schema=s", "postgres://h/a?options=-c%20statement_timeout%3D0%20-csearch_path%3Ds"},
		{"host as a parameter", "postgres:///a?host=h&port=5433", "postgres://h:5433/a"},
		{"host as a parameter overrides", "postgres://x/a?host=h", "postgres://h/a"},
		{"database as a parameter", "postgres://h/?dbname=a", "postgres://h/a"},
		{"percent signs", "postgres://h/a%62c", "postgres://h/abc"},
		{"no database: the user's", "postgres://u@h", "postgres://h?user=u"},
		{"several hosts in any order", "postgres://h1:5433,h2/a", "postgres://h2:5432,h1:5433/a"},
		{"several hosts, one twice", "postgres://h1,h1,h2/a", "postgres://h2,h1/a"},
		{"several hosts, one port", "postgres:///a?host=h1,h2&port=5433", "postgres://h1:5433,h2:5433/a"},
		{"a socket's directory", "postgres:///a?host=/run/postgresql/", "postgres://%2Frun%2Fpostgresql/a"},
		{"one service", "postgres:///?service=erp", "postgres:///?service=erp&sslmode=disable"},
		{"ClickHouse's protocols", "clickhouse://h:9000/a", "clickhouse+https://u:p@h:8443/a"},
		{"ClickHouse's default database", "clickhouse://h", "clickhouse://h:9000/default"},
		{"ClickHouse's database as a parameter", "clickhouse://h/a", "clickhouse+http://h?database=a"},
		{"drevo's default graph", "bolt://h", "bolt+s://h:7687/drevo"},
		{"Iceberg: order of parameters, secrets", "iceberg+rest+https://h/c?warehouse=w&token=a", "iceberg+rest+https://h:443/c/?token=b&warehouse=w"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := placeOf(t, tt.a), placeOf(t, tt.b)
			if a != b {
				t.Errorf("want one place:\n%s\n%s", a, b)
			}
		})
	}
}

// TestTextPlaceDiffers: places that differ, or that may and only the servers know.
func TestTextPlaceDiffers(t *testing.T) {
	tests := []struct{ name, a, b string }{
		{"databases", "postgres://h/a", "postgres://h/b"},
		{"a database's case", "postgres://h/a", "postgres://h/A"},
		{"schemas", "postgres://h/a?schema=s", "postgres://h/a?schema=t"},
		{"schemas in options", "postgres://h/a?options=-csearch_path%3Ds", "postgres://h/a?options=--search_path%3Dt"},
		{"ports", "postgres://h:5433/a", "postgres://h:5434/a"},
		{"hosts", "postgres://h1/a", "postgres://h2/a"},
		{"hosts of one cluster, not all", "postgres://h1,h2/a", "postgres://h1/a"},
		{"addresses of the loopback's net", "postgres://127.0.0.1/a", "postgres://127.0.0.2/a"},
		{"a socket and a host", "postgres:///a?host=/run/postgresql", "postgres://localhost/a"},
		{"no schema and two users: a role may have its own", "postgres://u@h/a", "postgres://v@h/a"},
		{"no schema and the usual one", "postgres://u@h/a", "postgres://u@h/a?schema=public"},
		{"no database and the user's: PGDATABASE may say otherwise", "postgres://u@h", "postgres://u@h/u"},
		{"services", "postgres:///?service=a", "postgres:///?service=b"},
		{"ClickHouse servers on one host", "clickhouse://h:9000/a", "clickhouse://h:9001/a"},
		{"ClickHouse databases", "clickhouse://h/a", "clickhouse://h/b"},
		{"graphs", "bolt://h/a", "bolt://h/b"},
		{"adapters", "bolt://h/a", "clickhouse://h/a"},
		{"Iceberg warehouses", "iceberg+rest+https://h?warehouse=a", "iceberg+rest+https://h?warehouse=b"},
		{"Iceberg folders", "iceberg+dir:///w/a", "iceberg+dir:///w/b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if a, b := placeOf(t, tt.a), placeOf(t, tt.b); a == b {
				t.Errorf("want two places, both are %s", a)
			}
		})
	}
}

func TestTextPlaceUnknown(t *testing.T) {
	for _, raw := range []string{"", "mysql://h/a", "file:///a", "neo4j://h", "postgres:h", "postgres://a@b@c/d"} {
		if place, ok := textPlace(raw); ok {
			t.Errorf("textPlace(%q) = %s, want none", raw, place)
		}
	}
}

func placeOf(t *testing.T, raw string) string {
	t.Helper()
	place, ok := textPlace(raw)
	if !ok {
		t.Fatalf("textPlace(%q) shows none", raw)
	}
	return place
}
