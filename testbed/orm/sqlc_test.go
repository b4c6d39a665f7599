package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/testbed/orm/sqlc"
)

// sqlcSuite is generated code, with its statements prepared or not.
type sqlcSuite struct{ prepare bool }

func TestSQLC(t *testing.T) {
	b := &bench{t: t}
	for name, s := range map[string]sqlcSuite{"sqlc": {}, "sqlc prepared": {prepare: true}} {
		t.Run(name, func(t *testing.T) {
			b.exercise(t, name,
				item{"create", both, s.create},
				item{"transaction", both, s.transaction},
				item{"two stores", onlyUnit, s.twoStores},
				item{"errors", both, s.errors},
			)
		})
	}
}

func (s sqlcSuite) open(t *testing.T, d *deployment) (*sql.DB, *sqlc.Queries) {
	t.Helper()
	db := d.open(t)
	if !s.prepare {
		return db, sqlc.New(db)
	}
	queries, err := sqlc.Prepare(t.Context(), db)
	must(t, err)
	t.Cleanup(func() { closed(t, queries) })
	return db, queries
}

func (s sqlcSuite) create(t *testing.T, d *deployment) {
	_, queries := s.open(t, d)
	ctx := d.inB(t.Context())
	account, err := queries.CreateAccount(ctx, sqlc.CreateAccountParams{Owner: "one", Balance: 5})
	must(t, err)
	if account != (sqlc.Account{ID: 1, Owner: "one", Balance: 5}) {
		t.Errorf("created %+v", account)
	}
	n, err := queries.AddToBalance(ctx, sqlc.AddToBalanceParams{Balance: 2, Column2: []string{"one", "nobody"}})
	must(t, err)
	accounts, err := queries.ListAccounts(ctx)
	must(t, err)
	if n != 1 || len(accounts) != 1 || accounts[0].Balance != 7 {
		t.Errorf("changed %d, then found %+v", n, accounts)
	}
	must(t, queries.DeleteAccount(ctx, "one"))
	d.want(t, "", "")
}

func (s sqlcSuite) transaction(t *testing.T, d *deployment) {
	db, queries := s.open(t, d)
	ctx := t.Context()
	for owner, end := range map[string]func(*sql.Tx) error{"kept": (*sql.Tx).Commit, "dropped": (*sql.Tx).Rollback} {
		tx, err := db.BeginTx(ctx, nil)
		must(t, err)
		_, err = queries.WithTx(tx).CreateAccount(ctx, sqlc.CreateAccountParams{Owner: owner})
		must(t, err)
		must(t, end(tx))
	}
	d.want(t, "kept", "")
}

func (s sqlcSuite) twoStores(t *testing.T, d *deployment) {
	db, queries := s.open(t, d)
	ctx, one := t.Context(), sqlc.CreateAccountParams{Owner: "one"}
	// docs: sqlc unit
	_, err := rhizodat.Run(ctx, db, rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
		q := queries.WithTx(tx)
		if _, err := q.CreateAccount(ctx, one); err != nil { // the default store
			return err
		}
		_, err := q.CreateAccount(rhizodat.WithStore(ctx, "b"), one)
		return err
	})
	// :docs
	must(t, err)
	d.want(t, "one", "one")
	_, err = rhizodat.Run(ctx, db, rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
		q := queries.WithTx(tx)
		must(t, q.DeleteAccount(ctx, "one"))
		must(t, q.DeleteAccount(d.inB(ctx), "one"))
		return errUndo
	})
	undone(t, err)
	d.want(t, "one", "one")
}

func (s sqlcSuite) errors(t *testing.T, d *deployment) {
	_, queries := s.open(t, d)
	ctx := d.inB(t.Context())
	for range 2 {
		_, err := queries.CreateAccount(ctx, sqlc.CreateAccountParams{Owner: "one"})
		if err == nil {
			continue
		}
		if pg, ok := err.(*pgconn.PgError); !ok || pg.Code != "23505" { //nolint:errorlint // as much code does
			t.Errorf("duplicate: %T, want *pgconn.PgError itself", err)
		}
		return
	}
	t.Error("a duplicate went through")
	if err := queries.DeleteAccount(ctx, "nobody"); errors.Is(err, sql.ErrNoRows) {
		t.Errorf("delete: %v", err)
	}
}
