package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	client "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

// bare hides what a context carries for the client: settings of the
// application's queries, an external table, "insert asynchronously". Our
// statements have their own and nothing else. The context's end is kept.
type bare struct{ context.Context } //nolint:containedctx // it is one

func (bare) Value(any) any { return nil }

// common are the settings of every statement of ours. A cached answer would be
// old news; the others keep the client from taking a refusal for success over
// HTTP.
var common = client.Settings{"use_query_cache": 0}

var commonHTTP = client.Settings{"send_progress_in_http_headers": 0, "wait_end_of_query": 1}

// options of one statement of ours.
type options struct {
	id       string // query id
	settings client.Settings
	external []*ext.Table
}

func (s *Store) context(ctx context.Context, o options) context.Context {
	settings := maps.Clone(common)
	if s.http() {
		maps.Copy(settings, commonHTTP)
	}
	maps.Copy(settings, o.settings)
	all := []client.QueryOption{client.WithSettings(settings)}
	if o.id != "" {
		all = append(all, client.WithQueryID(o.id))
	}
	if len(o.external) > 0 {
		all = append(all, client.WithExternalTable(o.external...))
	}
	return client.Context(bare{ctx}, all...)
}

// exec runs a statement of ours.
func (s *Store) exec(ctx context.Context, query string, o options) error {
	err := s.control.Exec(s.context(ctx, o), query)
	return ended(ctx, err)
}

// row reads the one row that a query of ours returns. found is false where it
// returns none.
func (s *Store) row(ctx context.Context, query string, dest ...any) (found bool, err error) {
	err = s.each(ctx, query, func(scan func(...any) error) error {
		found = true
		return scan(dest...)
	})
	return found && err == nil, err
}

// each reads every row that a query of ours returns.
func (s *Store) each(ctx context.Context, query string, read func(scan func(...any) error) error) error {
	rows, err := s.control.Query(s.context(ctx, options{}), query)
	if err != nil {
		return ended(ctx, err)
	}
	for rows.Next() {
		if err := read(rows.Scan); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return ended(ctx, err)
	}
	// Rows that ended early because the context did look like all of them.
	return ctx.Err()
}

// ended says that the context is what ended a call: over the native protocol it
// shows as a network error.
func ended(ctx context.Context, err error) error {
	if cause := ctx.Err(); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// literalTxn writes a dat_txn as SQL. Its text is made of digits and dashes.
func literalTxn(txn branches.TxnID) string { return "toUUID('" + txn.String() + "')" }

func literalUUID(id uuid.UUID) string { return "toUUID('" + id.String() + "')" }

func literalInt(n int64) string { return fmt.Sprintf("toInt64(%d)", n) }

// tableName is a table's full name.
type tableName struct{ database, table string }

func (n tableName) quoted() string { return chsql.Name(n.database) + "." + chsql.Name(n.table) }

func (n tableName) String() string { return n.database + "." + n.table }

// pause waits between two tries of one thing.
func (s *Store) pause(ctx context.Context, d time.Duration) error { return s.opts.Wall.Sleep(ctx, d) }
