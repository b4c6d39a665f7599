package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// schemaOf is where a store says that its tables are.
func schemaOf(t *testing.T, store *postgres.Store) string {
	t.Helper()
	place, err := store.Place(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(place[strings.LastIndexByte(string(place), '/')+1:])
}

func TestSchema(t *testing.T) {
	p := newPlace(t)
	p.cluster.Exec(t, p.dsn, `CREATE SCHEMA orders; CREATE SCHEMA "Odd, ""one"""`)
	for _, row := range []struct{ param, schema, path string }{
		{"", "public", `"$user", public`},
		{"&schema=orders", "orders", `"orders"`},
		{"&schema=new", "new", `"new"`},
		{"&schema=Odd%2C+%22one%22", `Odd, "one"`, `"Odd, ""one"""`},
		{"&search_path=orders,public", "orders", "orders,public"},
		{"&search_path=%22$user%22,public", "public", `"$user",public`},
		{"&search_path=ORDERS", "orders", "ORDERS"},
		{"&options=-c%20search_path%3Dorders", "orders", "orders"},
	} {
		store := openStore(t, p.dsn+row.param, postgres.Options{})
		if err := store.Install(t.Context()); err != nil {
			t.Errorf("%s: Install = %v", row.param, err)
			continue
		}
		if got := schemaOf(t, store); got != row.schema {
			t.Errorf("%s: schema %s, want %s", row.param, got, row.schema)
		}
		var got answer
		rows, err := connect(t, store).Query(t.Context(), "SHOW search_path", nil)
		got.read(t, rows, err)
		if path := got.Rows[0][0].(string); path != row.path {
			t.Errorf("%s: search_path %s, want %s", row.param, path, row.path)
		}
		if err := store.Probe(t.Context()); err != nil {
			t.Errorf("%s: Probe = %v", row.param, err)
		}
	}
	if _, err := openStore(t, p.dsn+"&search_path=nowhere", postgres.Options{Schema: "orders"}).Meta(t.Context()); err != nil {
		t.Errorf("Schema of the options: %v", err)
	}
	if _, err := openStore(t, p.dsn+"&options=-c%20search_path%3Dnowhere", postgres.Options{}).Place(t.Context()); err == nil {
		t.Error("a search_path without any schema was taken")
	}
}

// Opening does not connect, and says what is wrong without the password.
func TestOpenRefuses(t *testing.T) {
	const secret = "s3cr3t-of-mine"
	config, err := pgx.ParseConfig("postgres://u:" + secret + "@127.0.0.1:1/d")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		url  string
		opts postgres.Options
		says string
	}{
		{"", postgres.Options{}, "no URL"},
		{"postgres://u:" + secret + "@h/d", postgres.Options{ConnConfig: config}, "one of"},
		{"", postgres.Options{ConnConfig: config, Connector: stdlib.GetConnector(*config)}, "one of"},
		{"postgres://u:" + secret + "@h/d?sslmode=nonsense", postgres.Options{}, "sslmode"},
		{"postgres://u:" + secret + "@h:port/d", postgres.Options{}, ""},
		{"postgres://u:" + secret + "/x@h/d", postgres.Options{}, ""},
		{"postgres://u:" + secret + "#@h:x/d", postgres.Options{}, ""},
		{"postgres://u:%zz" + secret + "@h/d", postgres.Options{}, ""},
		{"postgres://u@h:x/d?password=" + secret, postgres.Options{}, ""},
		{"postgres://h/d?schema=", postgres.Options{}, "schema="},
		{"postgres://h/d?schema=a&schema=b", postgres.Options{}, "twice"},
		{"postgres://h/d?schema=a&search_path=b", postgres.Options{}, "exclude"},
	} {
		store, err := postgres.Open("pg", row.url, row.opts)
		if err == nil {
			t.Errorf("Open(%q) = %v, want an error", row.url, store)
			continue
		}
		text := fmt.Sprintf("%v %+v %#v", err, err, err)
		if !strings.Contains(text, row.says) || !strings.Contains(text, "store pg") {
			t.Errorf("Open(%q) = %v, want %q and the store in it", row.url, err, row.says)
		}
		if strings.Contains(text, secret) {
			t.Errorf("Open(%q): the error shows the password: %s", row.url, text)
		}
	}
	if store, err := postgres.Open("pg", "postgres://h1:1,h2:2/d?target_session_attrs=read-write", postgres.Options{}); err != nil || store.Name() != "pg" {
		t.Errorf("Open of several hosts = %v", err)
	}
}

func TestHooks(t *testing.T) {
	p := newPlace(t)
	var before, after, notices int
	config, err := pgx.ParseConfig(p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	password := config.Password
	config.Password = "expired"
	config.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { notices++ }
	store, err := postgres.Open("pg", "", postgres.Options{
		ConnConfig: config, ApplicationName: "billing",
		BeforeConnect: func(_ context.Context, c *pgx.ConnConfig) error { before++; c.Password = password; return nil },
		AfterConnect:  func(context.Context, *pgx.Conn) error { after++; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	var got answer
	session := connect(t, store)
	rows, err := session.Query(t.Context(), "SHOW application_name", nil)
	got.read(t, rows, err)
	if name := got.Rows[0][0]; name != "billing" {
		t.Errorf("application_name = %v", name)
	}
	if _, err := session.Exec(t.Context(), "DO $$BEGIN RAISE NOTICE 'hello'; END$$", nil); err != nil {
		t.Fatal(err)
	}
	fate(t.Context(), t, store, branches.TxnID{1}) // over a connection of its own
	if before != 2 || after != 2 || notices != 1 {
		t.Errorf("before %d, after %d, notices %d, want 2, 2, 1", before, after, notices)
	}
	if config.Password != "expired" || config.RuntimeParams["application_name"] != "" {
		t.Error("the caller's config was changed")
	}
}

// A pgx connector that somebody else has made serves as well.
func TestReadyConnector(t *testing.T) {
	p := newPlace(t)
	config, err := pgx.ParseConfig(p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	store, err := postgres.Open("pg", "", postgres.Options{Connector: stdlib.GetConnector(*config)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	u := begin(t, connect(t, store), branches.BeginOptions{Shared: true})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	u.prepared()
	if err := u.Finish(t.Context(), u.ref()); err != nil || p.rows() != 1 {
		t.Errorf("Finish = %v, %d rows", err, p.rows())
	}
}

// An administrator runs the SQL, and the program needs no right to create.
func TestInstallByHand(t *testing.T) {
	cluster := pgtest.Server(t)
	p := place{t, cluster, cluster.Database(t, "byhand")}
	login := cluster.Role(t, "login", "")
	admin := openStore(t, p.dsn+"&schema=orders", postgres.Options{})
	text := admin.InstallSQL()
	cluster.Exec(t, p.dsn, text)
	cluster.Exec(t, p.dsn, text) // twice does no harm
	cluster.Exec(t, p.dsn, "GRANT USAGE ON SCHEMA orders TO "+login.Name)
	store := openStore(t, cluster.DSNAs(login, p.dsn)+"&schema=orders", postgres.Options{})
	if err := store.Install(t.Context()); err == nil {
		t.Error("Install without the right to read = nil")
	}
	err := store.Probe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "GRANT") || branches.Classify(store, err) != branches.Permanent {
		t.Errorf("Probe without rights = %v, want the GRANT it needs", err)
	}
	if f := (place{t, cluster, p.dsn}).finding(store, "marker table"); f.Severity != branches.SeverityError || !strings.Contains(f.Way, login.Name) {
		t.Errorf("finding = %+v", f)
	}
	cluster.Exec(t, p.dsn, "GRANT SELECT, INSERT, DELETE ON orders.dat_applied TO "+login.Name+"; GRANT SELECT, UPDATE ON orders.dat_meta TO "+login.Name)
	if err := store.Install(t.Context()); err != nil {
		t.Errorf("Install where all is done = %v", err)
	}
	if err := store.Probe(t.Context()); err != nil {
		t.Errorf("Probe = %v", err)
	}
}

// Tables of a later version are refused with both numbers.
func TestNewerLayout(t *testing.T) {
	p := newPlace(t)
	p.cluster.Exec(t, p.dsn, "UPDATE dat_meta SET layout = 99")
	store := p.open(postgres.Options{})
	_, metaErr := store.Meta(t.Context())
	for name, err := range map[string]error{"Meta": metaErr, "Install": store.Install(t.Context()), "Probe": store.Probe(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "99") || branches.Classify(store, err) != branches.Permanent {
			t.Errorf("%s = %v, want a refusal with both versions", name, err)
		}
	}
	if f := p.finding(store, "meta table"); f.Severity != branches.SeverityError {
		t.Errorf("finding = %+v", f)
	}
}

func TestExaminationFinds(t *testing.T) {
	p := newPlace(t)
	store := p.open(postgres.Options{})
	for _, row := range []struct{ set, unset, check string }{
		{"ALTER TABLE dat_applied SET UNLOGGED", "ALTER TABLE dat_applied SET LOGGED", "marker table"},
		{"CREATE RULE r AS ON INSERT TO dat_applied DO ALSO NOTHING", "DROP RULE r ON dat_applied", "marker table"},
		{"ALTER TABLE dat_applied RENAME TO away", "ALTER TABLE away RENAME TO dat_applied", "marker table"},
		{"ALTER TABLE dat_meta RENAME TO away", "ALTER TABLE away RENAME TO dat_meta", "meta table"},
		{"DELETE FROM dat_meta", "INSERT INTO dat_meta (layout, store_id) VALUES (1, gen_random_uuid())", "meta table"},
	} {
		p.cluster.Exec(t, p.dsn, row.set)
		if f := p.finding(store, row.check); f.Severity != branches.SeverityError || f.Way == "" {
			t.Errorf("%s: finding = %+v, want an error with a way out", row.set, f)
		}
		p.cluster.Exec(t, p.dsn, row.unset)
		if f := p.finding(store, row.check); f.Severity != branches.SeverityOK {
			t.Errorf("%s: finding = %+v, want ok", row.unset, f)
		}
	}
}
