package postgres_test

import (
	"slices"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// schemas are two stores in one database, each with tables of its own.
func schemas(t *testing.T, cluster *pgtest.Cluster) (p place, a, b *postgres.Store) {
	t.Helper()
	p = place{t, cluster, cluster.Database(t, "schemas")}
	open := func(schema string) *postgres.Store {
		store := openStore(t, p.dsn+"&schema="+schema, postgres.Options{})
		if err := store.Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.Exec(t, p.dsn, "CREATE TABLE "+schema+".t (k text PRIMARY KEY, v bigint)")
		return store
	}
	return p, open("one"), open("two")
}

// orphan is a prepared transaction of a store, left alone.
func orphan(t *testing.T, store *postgres.Store, key string) unit {
	t.Helper()
	session := connect(t, store)
	u := begin(t, session, branches.BeginOptions{Shared: true})
	u.exec("INSERT INTO t VALUES ('" + key + "', 1)")
	u.prepared()
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	return u
}

func ours(t *testing.T, store *postgres.Store) map[branches.GID]bool {
	t.Helper()
	list, err := store.Prepared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[branches.GID]bool{}
	for _, p := range list {
		found[p.GID] = p.Ours
	}
	return found
}

// Two deployments in two schemas of one database see each other's transactions
// and know which are their own, also after the server has restarted, when
// pg_locks names a prepared transaction differently.
func TestOwnershipBySchema(t *testing.T) {
	cluster := pgtest.Own(t)
	_, one, two := schemas(t, cluster)
	a, b := orphan(t, one, "a"), orphan(t, two, "b")
	for _, when := range []string{"before a restart", "after a restart"} {
		if got := ours(t, one); len(got) != 2 || !got[a.gid] || got[b.gid] {
			t.Errorf("%s: schema one says %v", when, got)
		}
		if got := ours(t, two); len(got) != 2 || got[a.gid] || !got[b.gid] {
			t.Errorf("%s: schema two says %v", when, got)
		}
		cluster.Stop(t, true)
		cluster.Start(t)
	}
	if err := one.Finish(t.Context(), a.ref()); err != nil {
		t.Error(err)
	}
	if err := two.Abort(t.Context(), b.ref()); err != nil {
		t.Error(err)
	}
}

// Other databases of the cluster, other programs' gids and look-alikes are not
// in the list, however many there are.
func TestListingOfOneDatabase(t *testing.T) {
	cluster := pgtest.Own(t, "max_prepared_transactions=150", "fsync=off")
	p, other := placeOn(t, cluster), placeOn(t, cluster)
	store := p.open(postgres.Options{})
	mine := orphan(t, store, "a")
	for _, gid := range []string{"payment-17", "dat:", "dat:nonsense:pg", "dat:" + mine.txn.String() + ":Not A Name"} {
		cluster.Exec(t, p.dsn, "BEGIN; SELECT txid_current(); PREPARE TRANSACTION '"+gid+"'")
	}
	far := connect(t, other.open(postgres.Options{}))
	for range 100 {
		begin(t, far, branches.BeginOptions{Shared: true}).prepared(branches.Unit{Notice: true})
	}
	defer func() { // pgtest would end each over a session of its own
		for _, gid := range cluster.Prepared(t, other.dsn) {
			if _, err := far.Exec(t.Context(), "ROLLBACK PREPARED '"+gid+"'", nil); err != nil {
				t.Error(err)
			}
		}
	}()
	got := ours(t, store)
	if len(got) != 1 || !got[mine.gid] {
		t.Errorf("Prepared = %v, want only our own", got)
	}
	if got := cluster.Prepared(t, p.dsn); len(got) != 5 || !slices.Contains(got, "payment-17") {
		t.Errorf("prepared in the database: %v", got)
	}
	if err := store.Abort(t.Context(), mine.ref()); err != nil {
		t.Error(err)
	}
}

// A gid that another deployment prepared here without our marker table is ours
// only where no other marker table could be its own.
func TestOwnershipWithoutMarker(t *testing.T) {
	cluster := pgtest.Server(t)
	p := newPlace(t)
	store := p.open(postgres.Options{})
	txn, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	gid := branches.NewGID(txn, "pg")
	cluster.Exec(t, p.dsn, "BEGIN; SELECT txid_current(); PREPARE TRANSACTION '"+string(gid)+"'")
	if got := ours(t, store); !got[gid] {
		t.Errorf("the only marker table: %v", got)
	}
	// A temporary table of that name is nobody's marker table.
	session := connect(t, store)
	if _, err := session.Exec(t.Context(), "CREATE TEMPORARY TABLE dat_applied (x int)", nil); err != nil {
		t.Fatal(err)
	}
	if got := ours(t, store); !got[gid] {
		t.Errorf("beside a temporary table: %v", got)
	}
	cluster.Exec(t, p.dsn, "CREATE SCHEMA other; CREATE TABLE other.dat_applied (dat_txn uuid PRIMARY KEY, dat_tx_time bigint)")
	if got, found := ours(t, store)[gid]; !found || got {
		t.Errorf("beside another marker table: found %t, ours %t, want it foreign", found, got)
	}
}

// A listing that failed is an error, never a short list.
func TestListingFails(t *testing.T) {
	p := newPlace(t)
	near, proxy := p.through()
	store := near.open(postgres.Options{})
	proxy.Refuse(true)
	if list, err := store.Prepared(t.Context()); err == nil {
		t.Errorf("Prepared of a server that is down = %v", list)
	}
	proxy.Refuse(false)
	if _, err := store.Prepared(t.Context()); err != nil {
		t.Errorf("Prepared when it is back = %v", err)
	}
}
