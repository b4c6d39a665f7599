// Package icetest gives tests what an Iceberg store needs: catalogs, an object
// store, a REST catalog whose answers can be made to fail.
package icetest

import (
	"crypto/rand"
	"database/sql"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	sqlcat "github.com/apache/iceberg-go/catalog/sql"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/internal/restcatalog"
)

// Place is a catalog with a warehouse.
type Place struct {
	Name string
	DSN  string // without namespace=
	REST *REST  // nil but for a REST catalog
	Dir  string // of a file:// warehouse
}

// REST is a REST catalog of this process.
type REST = restcatalog.Server

// NewREST starts a REST catalog that ends with the test.
func NewREST(tb testing.TB, behind catalog.Catalog) *REST {
	tb.Helper()
	s, err := restcatalog.Start(tb.Context(), behind)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() }) // its listener is all that could fail
	return s
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
	bucket := S3(tb)
	return &Place{Name: "sqlite s3", DSN: "iceberg+sqlite://" + tb.TempDir() + "/catalog.db?" + params(bucket)}
}

// RESTS3 is a REST catalog over an object store: the one that EnvREST names, else
// one of this process.
func RESTS3(tb testing.TB) *Place {
	tb.Helper()
	bucket := S3(tb)
	place := &Place{Name: "rest s3"}
	server := os.Getenv(EnvREST)
	if server == "" {
		place.REST = NewREST(tb, sqliteCatalog(tb, tb.TempDir(), bucket))
		server = place.REST.URL
	} else {
		server = strings.TrimSuffix(server, "/") + "/" + strings.ToLower(rand.Text())
	}
	place.DSN = "iceberg+rest+" + server + "?" + params(bucket)
	return place
}

// The environment may name servers to test against instead of those of this process.
const (
	// EnvS3 is the URL of an object store: http://KEY:SECRET@host:port/bucket.
	EnvS3 = "RHIZODAT_TEST_S3"
	// EnvREST is the URL of REST catalogs that can reach that object store: each
	// first segment of a path below it is a catalog of its own.
	EnvREST = "RHIZODAT_TEST_ICEBERG_REST"
)

// S3Secret is the secret of the object store in this process, for tests that look for
// it where none may be.
const S3Secret = "sec+ret/of=tests" //nolint:gosec // of a store in memory

// Bucket is a warehouse in an object store, as the properties of its client.
type Bucket = iceberg.Properties

func newBucket(endpoint, key, secret, bucket string) Bucket {
	return Bucket{
		"warehouse": "s3://" + bucket + "/wh" + strings.ToLower(rand.Text()), "s3.endpoint": endpoint, "s3.region": "us-east-1",
		"s3.access-key-id": key, "s3.secret-access-key": secret,
	}
}

func params(bucket Bucket) string {
	list := make([]string, 0, len(bucket))
	for key, value := range bucket {
		list = append(list, key+"="+strings.ReplaceAll(url.PathEscape(value), "&", "%26"))
	}
	return strings.Join(list, "&")
}

// S3 gives a warehouse in the object store that EnvS3 names, else in one that lives
// in memory as long as the test.
func S3(tb testing.TB) Bucket {
	tb.Helper()
	if text := os.Getenv(EnvS3); text != "" {
		u, err := url.Parse(text)
		if err != nil {
			tb.Fatal(EnvS3 + " is not a URL")
		}
		secret, _ := u.User.Password()
		return newBucket(u.Scheme+"://"+u.Host, u.User.Username(), secret, strings.Trim(u.Path, "/"))
	}
	backend := s3mem.New()
	if err := backend.CreateBucket("lake"); err != nil {
		tb.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	tb.Cleanup(server.Close)
	return newBucket(server.URL, "tests", S3Secret, "lake")
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
