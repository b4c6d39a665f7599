// Package postgres keeps a journal in PostgreSQL, the ordinary place for one:
// shared by the hosts of a deployment, and durable.
//
// Each transaction of the journal is one round trip: BEGIN, its settings, its
// statements and COMMIT travel together (design/speed.md, section 2). It works
// through PgBouncer in transaction mode with default_query_exec_mode=exec or
// simple_protocol in the URL, as everything of pgx does.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/sqljournal"
)

// Options of a journal in PostgreSQL. The zero Options are the defaults.
type Options struct {
	journal.Options

	// ConnConfig replaces what the URL says, for what a URL cannot say. It
	// must come from pgx.ParseConfig. Open copies it.
	ConnConfig *pgx.ConnConfig
	// Schema holds the tables. Empty: schema= of the URL, else the first
	// schema of search_path that exists at the first connection.
	Schema string
	// BeforeConnect may change a connection's config: rotating credentials.
	BeforeConnect func(context.Context, *pgx.ConnConfig) error
	// AfterConnect is called on each new connection before its first use.
	AfterConnect func(context.Context, *pgx.Conn) error
}

// Scheme makes Options stand without a URL in a rhizodat.JournalConfig.
func (Options) Scheme() string { return "postgres" }

// Open makes the journal of a postgres:// URL. Everything in it is pgx's own,
// and schema= names the schema of the tables. It does not connect.
func Open(location string, opts Options) (journal.Journal, error) {
	config, schema := opts.ConnConfig, opts.Schema
	if config == nil {
		parsed, named, err := parse(location)
		if err != nil {
			return nil, err
		}
		config = parsed
		if schema == "" {
			schema = named
		}
	} else {
		config = config.Copy()
	}
	opts.Options = opts.WithDefaults()
	pool := newPool(config, opts)
	return sqljournal.New(pool, &dialect{schema: schema, wall: opts.Wall}, opts.Options), nil
}

// parse reads a URL. Its errors never hold what the URL holds: pgx masks a
// password as well as it can, and cannot where the URL does not parse.
func parse(location string) (*pgx.ConnConfig, string, error) {
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, "", errors.New("rhizodat: open journal: not a postgres:// URL " +
			"(in the user and password / ? # @ : and % are written %2F %3F %23 %40 %3A and %25)")
	}
	schema, err := takeSchema(u)
	if err != nil {
		return nil, "", err
	}
	config, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, "", fmt.Errorf("rhizodat: open journal: %s", scrub(err.Error(), u))
	}
	return config, schema, nil
}

// takeSchema removes schema= from a URL and leaves the rest to the letter: pgx
// reads a query as libpq does, where + is no blank.
func takeSchema(u *url.URL) (schema string, err error) {
	var rest []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		value, ok := strings.CutPrefix(part, "schema=")
		if !ok {
			rest = append(rest, part)
			continue
		}
		if schema, err = url.PathUnescape(value); err != nil || schema == "" {
			return "", errors.New("rhizodat: open journal: schema= holds no name")
		}
	}
	u.RawQuery = strings.Join(rest, "&")
	return schema, nil
}

// scrub takes the secrets of u out of a text.
func scrub(text string, u *url.URL) string {
	var secrets []string
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password, url.QueryEscape(password), url.PathEscape(password))
	}
	for key, values := range u.Query() {
		if strings.Contains(key, "password") {
			for _, v := range values {
				secrets = append(secrets, v, url.QueryEscape(v))
			}
		}
	}
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "xxxxx")
		}
	}
	return text
}
