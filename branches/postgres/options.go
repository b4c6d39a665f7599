package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/hlc"
)

// Options are what a URL cannot say. The zero Options are usable.
type Options struct {
	// ConnConfig, made by pgx.ParseConfig, stands in for the URL.
	ConnConfig *pgx.ConnConfig
	// Connector, of pgx's stdlib package, stands in for the URL and ConnConfig.
	// Notices of its connections are not heard here, so that "canceling wait
	// for synchronous replication" at PREPARE goes unseen: with a synchronous
	// standby use ConnConfig.
	Connector driver.Connector
	// Schema holds dat_applied and dat_meta. Empty: schema= of the URL, the
	// first entry of search_path, or current_schema() at the first connect.
	Schema string

	// BeforeConnect and AfterConnect are called for every connection, as with
	// pgx's stdlib: rotating credentials, type registration. The connections on
	// which branches are finished are of the same making.
	BeforeConnect func(context.Context, *pgx.ConnConfig) error
	AfterConnect  func(context.Context, *pgx.Conn) error

	// LockTimeout bounds the waits for locks of a branch whose unit may reach
	// several stores; a smaller lock_timeout of the session stays. 0 is off.
	LockTimeout time.Duration
	// ApplicationName is set where the URL names none.
	ApplicationName string
	// ControlConns bounds the store's own connections (finish, look-up,
	// listing); 0 is 4. They are opened when first needed.
	ControlConns int
	// Wall is the clock; nil is hlc.System.
	Wall hlc.Wall
}

const defaultControlConns = 4

// schemaKey is the URL parameter that names the schema of the store: of its
// tables and, as search_path, of ours.
const schemaKey = "schema"

// cutSchema takes schema= out of a URL's query. It works on the text, because
// a PostgreSQL URL may name several hosts and net/url need not understand it.
func cutSchema(text string) (rest, schema string, err error) {
	base, query, ok := strings.Cut(text, "?")
	if !ok {
		return text, "", nil
	}
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key != schemaKey {
			kept = append(kept, pair)
			continue
		}
		if schema != "" {
			return "", "", errors.New("schema= given twice")
		}
		if schema, err = url.QueryUnescape(value); err != nil || schema == "" {
			return "", "", errors.New("schema= names no schema")
		}
	}
	if len(kept) == 0 {
		return base, schema, nil
	}
	return base + "?" + strings.Join(kept, "&"), schema, nil
}

// parseURL makes pgx's configuration and the schema that the URL fixes.
func parseURL(text string) (*pgx.ConnConfig, string, error) {
	rest, schema, err := cutSchema(text)
	if err != nil {
		return nil, "", err
	}
	config, err := pgx.ParseConfig(rest)
	if err != nil {
		return nil, "", errors.New(reason(rest, err))
	}
	if schema != "" {
		if _, both := config.RuntimeParams["search_path"]; both {
			return nil, "", errors.New("schema= and search_path= exclude each other")
		}
		config.RuntimeParams["search_path"] = quote(schema)
	}
	return config, schema, nil
}

// reason is why pgx could not parse a URL. pgx masks the password as well as a
// malformed URL allows, which is not well enough: its text is used without the
// URL, and only where the password was found and is not in it.
func reason(text string, err error) string {
	const plain = "its URL is malformed (in a password, / ? # @ and % are percent-encoded)"
	if _, ok := errors.AsType[*pgconn.ParseConfigError](err); !ok {
		return plain
	}
	_, said, ok := strings.Cut(err.Error(), "`: ")
	parsed, parseErr := url.Parse(text)
	if !ok || parseErr != nil {
		return plain
	}
	for _, secret := range secrets(parsed) {
		if secret != "" && strings.Contains(said, secret) {
			return plain
		}
	}
	return said
}

func secrets(u *url.URL) []string {
	password, _ := u.User.Password()
	raw := u.User.String()
	_, raw, _ = strings.Cut(raw, ":")
	q := u.Query()
	return []string{password, raw, q.Get("password"), q.Get("sslpassword")}
}

// pathSchema is the first entry of a search_path, where that is a schema by
// name and not "$user".
func pathSchema(path string) string {
	path = strings.TrimSpace(path)
	if quoted, ok := strings.CutPrefix(path, `"`); ok {
		name, _, ok := strings.Cut(strings.ReplaceAll(quoted, `""`, "\x00"), `"`)
		if !ok || name == "$user" {
			return ""
		}
		return strings.ReplaceAll(name, "\x00", `"`)
	}
	name, _, _ := strings.Cut(path, ",")
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "$user" {
		return ""
	}
	return name
}

// Scheme makes Options stand without a URL in a rhizodat.StoreConfig.
func (Options) Scheme() string { return "postgres" }
