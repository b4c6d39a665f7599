package orm_test

import (
	"context"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"entgo.io/ent/schema/field"

	"github.com/rhizodat/rhizodat-go"
)

// The tests call what ent's generated code calls: sqlgraph with specs, the
// driver's Tx, and schema's migration.

func TestEnt(t *testing.T) {
	exercise(t, "ent",
		item{"dialect", both, entDialect},
		item{"schema", both, entSchema},
		item{"create", both, entCreate},
		item{"transaction", both, entTransaction},
		item{"two stores", onlyUnit, entTwoStores},
		item{"errors", both, entErrors},
	)
}

func entOpen(t *testing.T, d *deployment) *entsql.Driver {
	t.Helper()
	drv, err := entOpenDSN(d.dsn)
	must(t, err)
	t.Cleanup(func() { closed(t, drv) })
	return drv
}

func entOpenDSN(dsn string) (*entsql.Driver, error) {
	// docs: ent open
	drv, err := entsql.Open("postgres-rhizodat", dsn)
	// :docs
	return drv, err
}

func entDialect(t *testing.T, d *deployment) {
	pool := d.open(t)
	// docs: ent pool
	drv := entsql.OpenDB(dialect.Postgres, pool)
	// :docs
	for _, drv := range []*entsql.Driver{entOpen(t, d), drv} {
		if got := drv.Dialect(); got != dialect.Postgres {
			t.Errorf("dialect is %q", got)
		}
		must(t, drv.DB().PingContext(t.Context()))
	}
}

// entItems is a table as ent generates it.
func entItems(columns ...*schema.Column) *schema.Table {
	id := &schema.Column{Name: "id", Type: field.TypeInt, Increment: true}
	return &schema.Table{Name: "items", Columns: append([]*schema.Column{id}, columns...), PrimaryKey: []*schema.Column{id}}
}

func entSchema(t *testing.T, d *deployment) {
	drv, ctx := entOpen(t, d), d.inB(t.Context())
	name := &schema.Column{Name: "name", Type: field.TypeString, Unique: true}
	price := &schema.Column{Name: "price", Type: field.TypeInt64, Default: 0}
	migrate, err := schema.NewMigrate(drv)
	must(t, err)
	must(t, migrate.Create(ctx, entItems(name)))
	must(t, migrate.Create(ctx, entItems(name, price)))
	url, other := d.a, d.b
	if d.unit {
		url, other = d.b, d.a
	}
	got := d.cluster.Int(t, url, `SELECT count(*) FROM information_schema.columns WHERE table_name = 'items'`)
	if got != 3 {
		t.Errorf("%d columns, want 3", got)
	}
	if other != "" && d.table(t, other, "items") {
		t.Error("the table is in the other store too")
	}
}

// entInsert is the save of a generated builder.
func entInsert(ctx context.Context, drv dialect.Driver, owner string, balance int64) (int64, error) {
	id := sqlgraph.NewFieldSpec("id", field.TypeInt64)
	spec := sqlgraph.NewCreateSpec("accounts", id)
	spec.SetField("owner", field.TypeString, owner)
	spec.SetField("balance", field.TypeInt64, balance)
	if err := sqlgraph.CreateNode(ctx, drv, spec); err != nil {
		return 0, err
	}
	return spec.ID.Value.(int64), nil
}

// txDriver is the driver that a generated client works with inside of a
// transaction.
type txDriver struct {
	dialect.Driver
	tx dialect.Tx
}

func entBegin(ctx context.Context, t *testing.T, drv *entsql.Driver) txDriver {
	t.Helper()
	tx, err := drv.Tx(ctx)
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return txDriver{drv, tx}
}

func (d txDriver) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(d), nil }

func (d txDriver) Exec(ctx context.Context, query string, args, v any) error {
	return d.tx.Exec(ctx, query, args, v)
}

func (d txDriver) Query(ctx context.Context, query string, args, v any) error {
	return d.tx.Query(ctx, query, args, v)
}

func entCreate(t *testing.T, d *deployment) {
	drv := entOpen(t, d)
	for want, owner := range []string{"one", "two"} {
		id, err := entInsert(t.Context(), drv, owner, int64(5-5*want))
		must(t, err)
		if id != int64(want+1) {
			t.Errorf("id %d was not filled in from RETURNING", id)
		}
	}
	var owners []string
	spec := sqlgraph.NewQuerySpec("accounts", []string{"id", "owner"}, sqlgraph.NewFieldSpec("id", field.TypeInt64))
	spec.From = entsql.Dialect(dialect.Postgres).Select("id", "owner").From(entsql.Table("accounts"))
	spec.Predicate = func(s *entsql.Selector) { s.Where(entsql.GT(s.C("balance"), 3)) }
	spec.ScanValues = func([]string) ([]any, error) { return []any{new(entsql.NullInt64), new(entsql.NullString)}, nil }
	spec.Assign = func(_ []string, values []any) error {
		owners = append(owners, values[1].(*entsql.NullString).String)
		return nil
	}
	must(t, sqlgraph.QueryNodes(t.Context(), drv, spec))
	if len(owners) != 1 || owners[0] != "one" {
		t.Errorf("found %q", owners)
	}
}

func entTransaction(t *testing.T, d *deployment) {
	drv, ctx := entOpen(t, d), t.Context()
	for owner, end := range map[string]func(dialect.Tx) error{"kept": dialect.Tx.Commit, "dropped": dialect.Tx.Rollback} {
		tx := entBegin(ctx, t, drv)
		_, err := entInsert(ctx, tx, owner, 0)
		must(t, err)
		must(t, end(tx.tx))
	}
	d.want(t, "kept", "")
}

func entTwoStores(t *testing.T, d *deployment) {
	drv, ctx := entOpen(t, d), t.Context()
	for _, c := range []struct {
		owner string
		end   func(dialect.Tx) error
	}{{"kept", dialect.Tx.Commit}, {"dropped", dialect.Tx.Rollback}} {
		tx := entBegin(ctx, t, drv)
		_, err := entInsert(ctx, tx, c.owner, 0)
		must(t, err)
		// docs: ent unit
		inB := rhizodat.WithStore(ctx, "b") // client.Account.Create().SetOwner(owner).Save(inB)
		// :docs
		_, err = entInsert(inB, tx, c.owner, 0)
		must(t, err)
		must(t, c.end(tx.tx))
	}
	d.want(t, "kept", "kept")
}

// ent tells constraints by the text of the error.
func entErrors(t *testing.T, d *deployment) {
	drv, ctx := entOpen(t, d), d.inB(t.Context())
	_, err := entInsert(ctx, drv, "one", 0)
	must(t, err)
	if _, err := entInsert(ctx, drv, "one", 0); !sqlgraph.IsUniqueConstraintError(err) || !sqlgraph.IsConstraintError(err) {
		t.Errorf("duplicate: %v is not a unique constraint's to ent", err)
	}
	if _, err := entInsert(ctx, drv, "two", -1); !sqlgraph.IsCheckConstraintError(err) {
		t.Errorf("negative balance: %v is not a check constraint's to ent", err)
	}
	if !d.unit {
		return
	}
	d.deferred(t, d.b)
	tx := entBegin(t.Context(), t, drv)
	_, err = entInsert(t.Context(), tx, "two", 0)
	must(t, err)
	_, err = entInsert(ctx, tx, "two", 0)
	must(t, err)
	err = tx.tx.Commit()
	isAborted(t, err, "b")
	if !sqlgraph.IsConstraintError(err) {
		t.Errorf("commit: %v is not a constraint's to ent", err)
	}
	d.want(t, "", "one")
}
