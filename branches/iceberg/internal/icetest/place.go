package icetest

import (
	"database/sql"
	"maps"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	sqlcat "github.com/apache/iceberg-go/catalog/sql"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// Place is a catalog with a warehouse.
type Place struct {
	Name string
	DSN  string // without namespace=
	REST *REST  // nil but for a REST catalog
	Dir  string // of a file:// warehouse
}

// Kind is a way to have a Place.
type Kind struct {
	Name string
	Make func(tb testing.TB) *Place
}

// Kinds lists them: each kind of catalog over files, and two over an object store.
var Kinds = []Kind{
	{"sqlite", SQLite},
	{"dir", Dir},
	{"postgres", Postgres},
	{"rest", RESTPlace},
	{"sqlite s3", SQLiteS3},
	{"rest s3", RESTS3},
}

// SQLite is a SQL catalog in a file.
func SQLite(tb testing.TB) *Place {
	tb.Helper()
	dir := tb.TempDir()
	return &Place{Name: "sqlite", Dir: dir + "/wh", DSN: "iceberg+sqlite://" + dir + "/catalog.db?warehouse=file://" + dir + "/wh"}
}

// Dir is a Hadoop catalog.
func Dir(tb testing.TB) *Place {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "wh")
	return &Place{Name: "dir", Dir: dir, DSN: "iceberg+dir://" + dir + "?"}
}

// Postgres is a SQL catalog in a database of its own.
func Postgres(tb testing.TB) *Place {
	tb.Helper()
	dir := tb.TempDir()
	dsn := pgtest.Server(tb).Database(tb, "iceberg")
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	return &Place{Name: "postgres", Dir: dir + "/wh", DSN: "iceberg+" + dsn + sep + "warehouse=file://" + dir + "/wh"}
}

// RESTPlace is a REST catalog over files.
func RESTPlace(tb testing.TB) *Place {
	tb.Helper()
	dir := tb.TempDir()
	server := NewREST(tb, sqliteCatalog(tb, dir, iceberg.Properties{"warehouse": "file://" + dir + "/wh"}))
	return &Place{Name: "rest", Dir: dir + "/wh", REST: server, DSN: "iceberg+rest+" + server.URL + "?warehouse=file://" + dir + "/wh"}
}

// SQLiteS3 is a SQL catalog over an object store.
func SQLiteS3(tb testing.TB) *Place {
	tb.Helper()
	endpoint := S3(tb)
	return &Place{Name: "sqlite s3", DSN: "iceberg+sqlite://" + tb.TempDir() + "/catalog.db?warehouse=s3://lake/wh&" + params(endpoint)}
}

// RESTS3 is a REST catalog over an object store.
func RESTS3(tb testing.TB) *Place {
	tb.Helper()
	endpoint := S3(tb)
	props := iceberg.Properties{"warehouse": "s3://lake/wh"}
	maps.Copy(props, S3Props(endpoint))
	server := NewREST(tb, sqliteCatalog(tb, tb.TempDir(), props))
	return &Place{Name: "rest s3", REST: server, DSN: "iceberg+rest+" + server.URL + "?warehouse=s3://lake/wh&" + params(endpoint)}
}

// S3Secret is the object store's secret, for tests that look for it where none may be.
const S3Secret = "sec+ret/of=tests" //nolint:gosec // of a store in memory

// S3Props are the properties of an object store's client.
func S3Props(endpoint string) iceberg.Properties {
	return iceberg.Properties{"s3.endpoint": endpoint, "s3.region": "us-east-1", "s3.access-key-id": "tests", "s3.secret-access-key": S3Secret}
}

func params(endpoint string) string {
	list := make([]string, 0, 4)
	for key, value := range S3Props(endpoint) {
		list = append(list, key+"="+url.PathEscape(value))
	}
	return strings.Join(list, "&")
}

// S3 starts an object store in memory, with the bucket lake.
func S3(tb testing.TB) (endpoint string) {
	tb.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("lake"); err != nil {
		tb.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	tb.Cleanup(server.Close)
	return server.URL
}

func sqliteCatalog(tb testing.TB, dir string, props iceberg.Properties) catalog.Catalog {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+dir+"/behind.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	made, err := sqlcat.NewCatalog("behind", db, sqlcat.SQLite, props)
	if err != nil {
		tb.Fatal(err)
	}
	return made
}
