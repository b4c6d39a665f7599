package iceberg

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	lib "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/catalogs"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Options are what a DSN cannot say. The zero Options are usable.
type Options struct {
	// Properties are added to those of the DSN and stand above them: a place for
	// secrets (s3.secret-access-key, token, credential) that no text should hold.
	Properties map[string]string

	// FlushRows and FlushBytes are how much a unit keeps in memory for a table
	// before it writes a data file. 0 is 100,000 rows and 32 MiB.
	FlushRows  int
	FlushBytes int64

	// Locker is where commits to one table take turns; nil: they do not.
	Locker Locker
	// CommitWait bounds the wait of a commit that is not decided yet for its turn; 0
	// is 45 s.
	CommitWait time.Duration

	// Logger takes what nobody waits for; nil is slog.Default.
	Logger *slog.Logger
	// Clock stamps statements outside of a transaction; nil is one of the store's own.
	Clock *hlc.Clock
	// Wall is the clock; nil is hlc.System.
	Wall hlc.Wall
}

const (
	defaultFlushRows  = 100_000
	defaultFlushBytes = 32 << 20
	defaultCommitWait = 45 * time.Second
	// defaultNamespace is what a DSN without namespace= means.
	defaultNamespace = "default"
	// defaultCatalog is the catalog_name of a SQL catalog.
	defaultCatalog = "default"
)

// The parameters of a DSN that are ours.
const (
	keyNamespace = "namespace"
	keyCatalog   = "catalog"
	keySchema    = "schema"
)

// target is what a DSN names.
type target struct {
	catalog   catalogs.Config
	namespace table.Identifier
	warehouse string // empty where the server decides
	secrets   []string
}

// The schemes of a DSN.
var kinds = map[string]catalogs.Kind{
	"iceberg+sqlite":     catalogs.SQLite,
	"iceberg+postgres":   catalogs.Postgres,
	"iceberg+rest+http":  catalogs.REST,
	"iceberg+rest+https": catalogs.REST,
	"iceberg+dir":        catalogs.Dir,
}

// parseDSN reads iceberg+KIND:REST?parameters. No error of it shows a value.
func parseDSN(dsn string, extra map[string]string) (target, error) {
	scheme, rest, _ := strings.Cut(dsn, ":")
	kind, ok := kinds[scheme]
	if !ok {
		return target{}, errors.New("its scheme is none of iceberg+sqlite, iceberg+postgres, iceberg+rest+http, iceberg+rest+https, iceberg+dir")
	}
	t := target{catalog: catalogs.Config{Kind: kind, Name: defaultCatalog, Props: lib.Properties{}}, namespace: table.Identifier{defaultNamespace}}
	base, query, _ := strings.Cut(rest, "?")
	kept, schema, err := t.parameters(query)
	if err != nil {
		return target{}, err
	}
	maps.Copy(t.catalog.Props, extra)
	for key, value := range t.catalog.Props {
		if secretProperty(key) {
			t.secrets = append(t.secrets, value)
		}
	}
	t.warehouse = t.catalog.Props[catalogs.Warehouse]
	switch kind {
	case catalogs.SQLite, catalogs.Dir:
		err = t.file(base, kept)
	case catalogs.Postgres:
		err = t.postgres(base, kept, schema)
	case catalogs.REST:
		err = t.rest(strings.TrimPrefix(scheme, "iceberg+rest+")+":"+base, kept)
	}
	if err != nil {
		return target{}, err
	}
	if schema != "" && kind != catalogs.Postgres {
		return target{}, errors.New(keySchema + "= is for iceberg+postgres")
	}
	return t, t.checkWarehouse()
}

// parameters takes ours out of the query and returns the others as they are. A
// plus sign is a plus sign: secret keys have them.
func (t *target) parameters(query string) (kept []string, schema string, err error) {
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		key, raw, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(raw)
		if err != nil {
			return nil, "", errors.New(key + "= is badly percent-encoded")
		}
		known := true
		switch {
		case key == keyNamespace:
			t.namespace, err = parseNamespace(value)
		case key == keyCatalog:
			t.catalog.Name = value
		case key == keySchema:
			schema = value
		case key == catalogs.Warehouse, strings.HasPrefix(key, "s3."), key == "client.region",
			t.catalog.Kind == catalogs.REST && slices.Contains(catalogs.RESTKeys, key):
			t.catalog.Props[key] = value
		default:
			known = false
			kept = append(kept, pair)
		}
		switch {
		case err != nil:
			return nil, "", err
		case known && seen[key]:
			return nil, "", errors.New(key + "= is given twice")
		case known && value == "":
			return nil, "", errors.New(key + "= is empty")
		}
		seen[key] = true
	}
	return kept, schema, nil
}

func parseNamespace(text string) (table.Identifier, error) {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if part == "" || part == "." || strings.ContainsAny(part, "/\\\x00") {
			return nil, errors.New(keyNamespace + "= is not a name, or several joined by points")
		}
	}
	return parts, nil
}

// secretProperty reports whether a property of this name must not be shown.
func secretProperty(key string) bool {
	key = strings.ToLower(key)
	for _, word := range []string{"secret", "token", "credential", "password"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// unknown refuses parameters that nobody would read. What does not look like a name
// may be a piece of a secret with an ampersand in it, and is not shown.
func unknown(kept []string) error {
	if len(kept) == 0 {
		return nil
	}
	key, _, named := strings.Cut(kept[0], "=")
	if !named || !parameterName.MatchString(key) {
		return errors.New("a parameter has no name (inside of a value, & is written %26)")
	}
	return fmt.Errorf("unknown parameter %s=", key)
}

var parameterName = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,40}$`)

// file is a DSN whose place is a path: ///absolute/path.
func (t *target) file(base string, kept []string) error {
	if err := unknown(kept); err != nil {
		return err
	}
	raw, ok := strings.CutPrefix(base, "//")
	path, err := url.PathUnescape(raw)
	if !ok || err != nil || !filepath.IsAbs(path) || strings.ContainsRune(path, 0) || filepath.Clean(path) == "/" {
		return errors.New("it names no file: write ///absolute/path")
	}
	t.catalog.Path = filepath.Clean(path)
	if t.catalog.Kind == catalogs.SQLite {
		return nil
	}
	if t.warehouse != "" {
		return errors.New("the directory is the warehouse: leave " + catalogs.Warehouse + "= out")
	}
	t.warehouse = "file://" + t.catalog.Path
	return nil
}

func (t *target) postgres(base string, kept []string, schema string) error {
	text := "postgres:" + base
	if len(kept) > 0 {
		text += "?" + strings.Join(kept, "&")
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return errors.New("its PostgreSQL URL is malformed (in a password, / ? # @ and % are percent-encoded)")
	}
	if schema != "" {
		config.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	}
	t.secrets = append(t.secrets, config.Password)
	t.catalog.Postgres = config
	return nil
}

func (t *target) rest(text string, kept []string) error {
	if err := unknown(kept); err != nil {
		return err
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return errors.New("its URL is malformed")
	case u.User != nil:
		return errors.New("a REST catalog takes no user and password in its URL: write credential=ID:SECRET or token=")
	}
	t.catalog.URI = u
	return nil
}

// checkWarehouse refuses places that other engines would look for elsewhere.
func (t *target) checkWarehouse() error {
	if t.warehouse == "" {
		if t.catalog.Kind == catalogs.REST {
			return nil
		}
		return errors.New("where its files go is missing: add " + catalogs.Warehouse + "=file:///path or s3://bucket/path")
	}
	scheme, rest, ok := strings.Cut(t.warehouse, "://")
	switch {
	case !ok && t.catalog.Kind == catalogs.REST:
		return nil // a name that the server knows
	case !ok || !slices.Contains([]string{"file", "s3", "s3a", "s3n"}, scheme):
		return errors.New(catalogs.Warehouse + "= wants file:///path or s3://bucket/path")
	case scheme == "file" && (!strings.HasPrefix(rest, "/") || rest == "/"):
		return errors.New(catalogs.Warehouse + "= wants an absolute path behind file://")
	case strings.Contains(rest, "//"):
		return errors.New(catalogs.Warehouse + "= holds //, which an object store keeps and its client rewrites: no other engine would find the files")
	case (&url.URL{Path: "/" + rest}).EscapedPath() != "/"+rest:
		return errors.New(catalogs.Warehouse + "= holds a character that would be percent-encoded in the files' names")
	}
	t.warehouse = strings.TrimRight(t.warehouse, "/")
	if t.catalog.Kind != catalogs.Dir {
		t.catalog.Props[catalogs.Warehouse] = t.warehouse
	}
	return nil
}
