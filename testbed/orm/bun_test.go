package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/rhizodat/rhizodat-go"
)

type bunAccount struct {
	bun.BaseModel `bun:"table:accounts"`

	ID      int64 `bun:",pk,autoincrement"`
	Owner   string
	Balance int64
}

func TestBun(t *testing.T) {
	exercise(t, "bun",
		item{"create", both, bunCreate},
		item{"inlined arguments", both, bunInlined},
		item{"transaction", both, bunTransaction},
		item{"nested", both, bunNested},
		item{"two stores", onlyUnit, bunTwoStores},
		item{"two stores, nested", onlyUnit, bunTwoStoresNested},
		item{"schema", both, bunSchema},
		item{"errors", both, bunErrors},
		item{"retry", both, bunRetry},
	)
}

func bunOpen(t *testing.T, d *deployment) *bun.DB {
	t.Helper()
	pool := d.open(t)
	// docs: bun open
	db := bun.NewDB(pool, pgdialect.New())
	// :docs
	return db
}

// bunInsert is bun's insert of one account.
func bunInsert(ctx context.Context, db bun.IDB, owner string) error {
	_, err := db.NewInsert().Model(&bunAccount{Owner: owner}).Exec(ctx)
	return err
}

func bunCreate(t *testing.T, d *deployment) {
	db, ctx := bunOpen(t, d), t.Context()
	one := bunAccount{Owner: "one"}
	_, err := db.NewInsert().Model(&one).Exec(ctx)
	must(t, err)
	more := []bunAccount{{Owner: "two"}, {Owner: "three"}}
	_, err = db.NewInsert().Model(&more).Exec(ctx)
	must(t, err)
	if one.ID != 1 || more[0].ID != 2 || more[1].ID != 3 {
		t.Errorf("ids %d, %d, %d were not filled in from RETURNING", one.ID, more[0].ID, more[1].ID)
	}
	var found []bunAccount
	must(t, db.NewSelect().Model(&found).Where("owner IN (?)", bun.List([]string{"two", "three"})).OrderExpr("id").Scan(ctx))
	if len(found) != 2 || found[0].Owner != "two" {
		t.Errorf("selected %+v", found)
	}
	if err := db.NewSelect().Model(&one).Where("owner = ?", "nobody").Scan(ctx); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("no row: %v", err)
	}
	d.want(t, "one three two", "")
}

// bun writes arguments into the text, where they must neither route nor end a
// transaction.
func bunInlined(t *testing.T, d *deployment) {
	db, ctx := bunOpen(t, d), t.Context()
	for _, owner := range []string{
		"store:b ", "/* store:b */", "-- store:b\n", "O'Neil; COMMIT", `back\slash'; ROLLBACK; --`, "$$ store:b $$", "$1 ? $x$",
	} {
		a := bunAccount{Owner: owner}
		_, err := db.NewInsert().Model(&a).Exec(ctx)
		must(t, err)
		var found bunAccount
		must(t, db.NewSelect().Model(&found).Where("owner = ?", owner).Scan(ctx))
		if found.ID != a.ID || found.Owner != owner {
			t.Errorf("wrote %q, read %q", owner, found.Owner)
		}
	}
	if n := d.cluster.Int(t, d.a, `SELECT count(*) FROM accounts`); n != 7 {
		t.Errorf("%d accounts in the default store, want 7", n)
	}
}

func bunTransaction(t *testing.T, d *deployment) {
	db, ctx := bunOpen(t, d), t.Context()
	for owner, result := range map[string]error{"kept": nil, "dropped": errUndo} {
		err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			must(t, bunInsert(ctx, tx, owner))
			return result
		})
		if !errors.Is(err, result) {
			t.Errorf("%s: %v", owner, err)
		}
	}
	d.want(t, "kept", "")
}

func bunNested(t *testing.T, d *deployment) {
	db := bunOpen(t, d)
	must(t, db.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		must(t, bunInsert(ctx, tx, "one"))
		isState(t, tx.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			return bunInsert(ctx, tx, "one")
		}), "23505")
		return tx.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			return bunInsert(ctx, tx, "two")
		})
	}))
	d.want(t, "one two", "")
}

func bunTwoStores(t *testing.T, d *deployment) {
	db, ctx := bunOpen(t, d), t.Context()
	one := &bunAccount{Owner: "one"}
	// docs: bun unit
	err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewInsert().Model(one).Exec(ctx); err != nil { // the default store
			return err
		}
		_, err := tx.NewInsert().Model(&bunAccount{Owner: "one"}).Comment("store:b").Exec(ctx)
		return err
	})
	// :docs
	must(t, err)
	d.want(t, "one", "one")
	undone(t, db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		must(t, bunInsert(ctx, tx, "two"))
		must(t, bunInsert(d.inB(ctx), tx, "two"))
		must(t, bunInsert(bun.WithComment(ctx, "store:b"), tx, "three"))
		_, err := tx.NewRaw("store:b INSERT INTO accounts (owner) VALUES (?)", "four").Exec(ctx)
		must(t, err)
		n, err := tx.NewSelect().Model((*bunAccount)(nil)).Count(d.inB(ctx))
		must(t, err)
		// bun leaves the comment out of Count and Exists: they read the default store.
		trap, err := tx.NewSelect().Model((*bunAccount)(nil)).Comment("store:b").Count(ctx)
		must(t, err)
		if n != 4 || trap != 2 {
			t.Errorf("%d accounts in store b inside the transaction, want 4; %d by comment, want the default store's 2", n, trap)
		}
		return errUndo
	}))
	d.want(t, "one", "one")
}

func bunTwoStoresNested(t *testing.T, d *deployment) {
	db := bunOpen(t, d)
	must(t, db.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		must(t, bunInsert(ctx, tx, "one"))
		undone(t, tx.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			must(t, bunInsert(ctx, tx, "dropped"))
			must(t, bunInsert(d.inB(ctx), tx, "dropped"))
			return errUndo
		}))
		return bunInsert(d.inB(ctx), tx, "two")
	}))
	d.want(t, "one", "two")
}

type bunItem struct {
	bun.BaseModel `bun:"table:items"`

	ID   int64    `bun:",pk,autoincrement"`
	Tags []string `bun:",array"`
}

func bunSchema(t *testing.T, d *deployment) {
	db, ctx := bunOpen(t, d), d.inB(t.Context())
	_, err := db.NewCreateTable().Model((*bunItem)(nil)).IfNotExists().Exec(ctx)
	must(t, err)
	i := bunItem{Tags: []string{"store:a ", "it's"}}
	_, err = db.NewInsert().Model(&i).Exec(ctx)
	must(t, err)
	var found bunItem
	must(t, db.NewSelect().Model(&found).Where("id = ?", i.ID).Scan(ctx))
	if len(found.Tags) != 2 || found.Tags[1] != "it's" {
		t.Errorf("tags %q", found.Tags)
	}
	if d.unit && (d.table(t, d.a, "items") || !d.table(t, d.b, "items")) {
		t.Error("the table is not in store b alone")
	}
}

func bunErrors(t *testing.T, d *deployment) {
	db, ctx := bunOpen(t, d), d.inB(t.Context())
	must(t, bunInsert(ctx, db, "one"))
	isState(t, bunInsert(ctx, db, "one"), "23505")
	if !d.unit {
		return
	}
	d.deferred(t, d.b)
	isAborted(t, db.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		must(t, bunInsert(ctx, tx, "two"))
		return bunInsert(d.inB(ctx), tx, "two")
	}), "b")
	d.want(t, "", "one")
}

func bunRetry(t *testing.T, d *deployment) {
	db, attempts := bunOpen(t, d), 0
	must(t, rhizodat.Retry(t.Context(), rhizodat.Policy{}, func(ctx context.Context) error {
		return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if attempts++; attempts < 3 {
				_, err := tx.ExecContext(ctx, conflict)
				return err
			}
			return bunInsert(ctx, tx, "one")
		})
	}))
	if attempts != 3 {
		t.Errorf("%d attempts, want 3", attempts)
	}
	d.want(t, "one", "")
}
