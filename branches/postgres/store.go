package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Store is one database, and one schema in it for our tables. It is safe for
// concurrent use.
type Store struct {
	name    string
	config  *pgx.ConnConfig // nil with a ready connector
	opts    Options
	control *pool
	tables  atomic.Pointer[tables] // nil until the schema is known
	probed  atomic.Bool            // Probe has found all well
}

var (
	_ branches.Store      = (*Store)(nil)
	_ branches.Classifier = (*Store)(nil)
)

// Open makes the store that a DSN knows as name. It does not connect. url is a
// postgres:// URL as pgx reads it, with schema= beside; it is empty where opts
// bring a ConnConfig or a Connector.
func Open(name, url string, opts Options) (*Store, error) {
	s := &Store{name: name, opts: opts}
	schema := opts.Schema
	switch {
	case opts.Connector != nil && (url != "" || opts.ConnConfig != nil),
		opts.ConnConfig != nil && url != "":
		return nil, fmt.Errorf("rhizodat: open store %s: one of URL, ConnConfig and Connector is wanted", name)
	case opts.Connector != nil:
	case opts.ConnConfig != nil:
		s.config = opts.ConnConfig.Copy()
	case url == "":
		return nil, fmt.Errorf("rhizodat: open store %s: no URL", name)
	default:
		config, fixed, err := parseURL(url)
		if err != nil {
			return nil, fmt.Errorf("rhizodat: open store %s: %w", name, err)
		}
		s.config = config
		if schema == "" {
			schema = fixed
		}
	}
	if s.config != nil {
		if schema == "" {
			schema = pathSchema(s.config.RuntimeParams["search_path"])
		}
		if _, named := s.config.RuntimeParams["application_name"]; !named && opts.ApplicationName != "" {
			s.config.RuntimeParams["application_name"] = opts.ApplicationName
		}
	}
	if schema != "" {
		s.tables.Store(newTables(schema))
	}
	if s.opts.Wall == nil {
		s.opts.Wall = hlc.System
	}
	if s.opts.ControlConns <= 0 {
		s.opts.ControlConns = defaultControlConns
	}
	s.control = newPool(s.opts.ControlConns, s.opts.Wall, s.connectControl)
	return s, nil
}

// Name is the store's name in the DSN.
func (s *Store) Name() string { return s.name }

// Connect opens a session. Its errors are pgx's own.
func (s *Store) Connect(ctx context.Context) (branches.Session, error) {
	session, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return session, nil
}

func (s *Store) connect(ctx context.Context) (*Session, error) {
	session := &Session{store: s}
	conn, err := s.connector(session).Connect(ctx)
	if err != nil {
		return nil, err
	}
	pgxConn, ok := conn.(*stdlib.Conn)
	if !ok {
		return nil, errors.Join(
			fmt.Errorf("rhizodat: open store %s: its Connector is not of pgx's stdlib package", s.name), conn.Close())
	}
	session.conn = pgxConn
	mode := pgxConn.Conn().Config().DefaultQueryExecMode
	session.prepares = mode == pgx.QueryExecModeCacheStatement
	session.caches = mode == pgx.QueryExecModeCacheStatement || mode == pgx.QueryExecModeCacheDescribe
	return session, nil
}

// connectControl opens a connection of the store's own. It acts as the login,
// whatever a connect hook or a default of the role has set: the login is whom
// prepared transactions belong to.
func (s *Store) connectControl(ctx context.Context) (*Session, error) {
	session, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := ask(ctx, session.client(), "SET ROLE NONE"); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return session, nil
}

// connector makes pgx's own connector, with an ear for the session's notices.
func (s *Store) connector(session *Session) driver.Connector {
	if s.opts.Connector != nil {
		return s.opts.Connector
	}
	hooks := []stdlib.OptionOpenDB{stdlib.OptionBeforeConnect(
		func(ctx context.Context, config *pgx.ConnConfig) error {
			if s.opts.BeforeConnect != nil {
				if err := s.opts.BeforeConnect(ctx, config); err != nil {
					return err
				}
			}
			next := config.OnNotice
			config.OnNotice = func(conn *pgconn.PgConn, notice *pgconn.Notice) {
				session.heard(notice)
				if next != nil {
					next(conn, notice)
				}
			}
			return nil
		})}
	if s.opts.AfterConnect != nil {
		hooks = append(hooks, stdlib.OptionAfterConnect(s.opts.AfterConnect))
	}
	return stdlib.GetConnector(*s.config, hooks...)
}

// Close ends the store's own connections. Sessions are ended by those who
// opened them; prepared branches stay.
func (s *Store) Close() error { return s.control.close() }

// fail wraps what went wrong with the store's name.
func (s *Store) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &branches.Error{Store: s.name, Doing: doing, Err: err, Asks: classify(err)}
}
