package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/rhizodat/rhizodat-go"
)

// Account is a row of accounts.
type Account struct {
	ID      int64  `gorm:"primaryKey"`
	Owner   string `gorm:"not null;unique"`
	Balance int64  `gorm:"not null;default:0"`
}

// gormSuite is GORM, opened in one of the ways that its postgres driver has.
type gormSuite struct {
	conn    bool // with a ready pool and no driver's name
	prepare bool
}

func TestGORM(t *testing.T) {
	b := &bench{t: t}
	for _, g := range []struct {
		name string
		gormSuite
	}{
		{"gorm", gormSuite{}},
		{"gorm PrepareStmt", gormSuite{prepare: true}},
		{"gorm Conn", gormSuite{conn: true}},
		{"gorm Conn PrepareStmt", gormSuite{conn: true, prepare: true}},
	} {
		t.Run(g.name, func(t *testing.T) {
			b.exercise(t, g.name,
				item{"create", both, g.create},
				item{"transaction", both, g.transaction},
				item{"rollback", both, g.rollback},
				item{"nested", both, g.nested},
				item{"savepoint by hand", both, g.savepoint},
				item{"two stores", onlyUnit, g.twoStores},
				item{"two stores, nested", onlyUnit, g.twoStoresNested},
				item{"routing", onlyUnit, g.routing},
				item{"errors", both, g.errors},
				item{"commit error", onlyUnit, g.commitError},
				item{"AutoMigrate", both, g.autoMigrate},
				item{"retry", both, g.retry},
			)
		})
	}
}

func (g gormSuite) open(t *testing.T, d *deployment, config gorm.Config) *gorm.DB {
	t.Helper()
	config.PrepareStmt, config.Logger = g.prepare, logger.Discard
	var db *gorm.DB
	var err error
	if g.conn {
		db, err = gormConn(d.open(t), &config)
	} else {
		db, err = gormOpen(d.dsn, &config)
	}
	must(t, err)
	pool, err := db.DB()
	must(t, err)
	t.Cleanup(func() { closed(t, pool) })
	return db
}

func gormOpen(dsn string, config *gorm.Config) (*gorm.DB, error) {
	// docs: gorm open
	db, err := gorm.Open(postgres.New(postgres.Config{DriverName: "rhizodat", DSN: dsn}), config)
	// :docs
	return db, err
}

func gormConn(pool *sql.DB, config *gorm.Config) (*gorm.DB, error) {
	// docs: gorm conn
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), config)
	// :docs
	return db, err
}

func (g gormSuite) create(t *testing.T, d *deployment) {
	db := g.open(t, d, gorm.Config{})
	one := Account{Owner: "one"}
	must(t, db.Create(&one).Error)
	more := []Account{{Owner: "two"}, {Owner: "three"}}
	must(t, db.Create(&more).Error)
	if one.ID != 1 || more[0].ID != 2 || more[1].ID != 3 {
		t.Errorf("ids %d, %d, %d were not filled in from RETURNING", one.ID, more[0].ID, more[1].ID)
	}
	var changed []Account
	must(t, db.Model(&changed).Clauses(clause.Returning{}).Where("id > ?", 1).Update("balance", 7).Error)
	if len(changed) != 2 || changed[0].Balance != 7 {
		t.Errorf("UPDATE RETURNING gave %v", changed)
	}
	var found Account
	must(t, db.First(&found, "owner = ?", "two").Error)
	if found.ID != 2 || found.Balance != 7 {
		t.Errorf("found %+v", found)
	}
	if err := db.First(&found, "owner = ?", "nobody").Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Errorf("no record: %v", err)
	}
	must(t, db.Delete(&one).Error)
	d.want(t, "three two", "")
}

func (g gormSuite) transaction(t *testing.T, d *deployment) {
	db := g.open(t, d, gorm.Config{})
	must(t, db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&Account{Owner: "one"}).Error; err != nil {
			return err
		}
		d.want(t, "", "")
		return tx.Create(&Account{Owner: "two"}).Error
	}))
	d.want(t, "one two", "")
}

func (g gormSuite) rollback(t *testing.T, d *deployment) {
	db := g.open(t, d, gorm.Config{})
	undone(t, db.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Create(&Account{Owner: "one"}).Error)
		return errUndo
	}))
	d.want(t, "", "")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come through")
			}
		}()
		_ = db.Transaction(func(tx *gorm.DB) error {
			must(t, tx.Create(&Account{Owner: "one"}).Error)
			panic("in the middle")
		})
	}()
	d.want(t, "", "")
}

func (g gormSuite) nested(t *testing.T, d *deployment) {
	db := g.open(t, d, gorm.Config{})
	must(t, db.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Create(&Account{Owner: "one"}).Error)
		// The statement's failure is taken back with its savepoint.
		err := tx.Transaction(func(tx *gorm.DB) error {
			return tx.Create(&Account{Owner: "one"}).Error
		})
		isState(t, err, "23505")
		return tx.Transaction(func(tx *gorm.DB) error {
			return tx.Create(&Account{Owner: "two"}).Error
		})
	}))
	d.want(t, "one two", "")
}

func (g gormSuite) savepoint(t *testing.T, d *deployment) {
	db := g.open(t, d, gorm.Config{})
	tx := db.Begin()
	must(t, tx.Create(&Account{Owner: "one"}).Error)
	must(t, tx.SavePoint("sp").Error)
	must(t, tx.Create(&Account{Owner: "two"}).Error)
	must(t, tx.RollbackTo("sp").Error)
	must(t, tx.Commit().Error)
	d.want(t, "one", "")
}

func (g gormSuite) twoStores(t *testing.T, d *deployment) {
	db, ctx := g.open(t, d, gorm.Config{}), t.Context()
	// docs: gorm unit
	err := db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		b := tx.WithContext(rhizodat.WithStore(ctx, "b"))
		if err := tx.Create(&Account{Owner: "one"}).Error; err != nil { // the default store
			return err
		}
		return b.Create(&Account{Owner: "one"}).Error
	})
	// :docs
	must(t, err)
	d.want(t, "one", "one")
	undone(t, db.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Create(&Account{Owner: "two"}).Error)
		must(t, tx.WithContext(d.inB(ctx)).Create(&Account{Owner: "two"}).Error)
		return errUndo
	}))
	d.want(t, "one", "one")
}

func (g gormSuite) twoStoresNested(t *testing.T, d *deployment) {
	db, ctx := g.open(t, d, gorm.Config{}), t.Context()
	must(t, db.Transaction(func(tx *gorm.DB) error {
		b := tx.WithContext(d.inB(ctx))
		must(t, tx.Create(&Account{Owner: "one"}).Error)
		// Store b is first reached inside: what is undone there goes back too.
		undone(t, tx.Transaction(func(tx *gorm.DB) error {
			must(t, tx.Create(&Account{Owner: "dropped"}).Error)
			must(t, tx.WithContext(d.inB(ctx)).Create(&Account{Owner: "dropped"}).Error)
			return errUndo
		}))
		// Begun in store b, the savepoint is the whole unit's.
		isState(t, b.Transaction(func(tx *gorm.DB) error {
			must(t, tx.WithContext(ctx).Create(&Account{Owner: "dropped"}).Error)
			must(t, tx.Create(&Account{Owner: "one"}).Error)
			return tx.Create(&Account{Owner: "one"}).Error
		}), "23505")
		return b.Transaction(func(tx *gorm.DB) error {
			return tx.Create(&Account{Owner: "two"}).Error
		})
	}))
	d.want(t, "one", "two")
}

func (g gormSuite) routing(t *testing.T, d *deployment) {
	db := g.open(t, d, gorm.Config{})
	// docs: gorm raw
	err := db.Exec("store:b INSERT INTO accounts (owner) VALUES (?)", "one").Error
	// :docs
	must(t, err)
	must(t, db.Exec("/* store:b */ INSERT INTO accounts (owner) VALUES (@owner)", sql.Named("owner", "two")).Error)
	var n int
	must(t, db.Raw("store:b SELECT count(*) FROM accounts").Scan(&n).Error)
	if n != 2 {
		t.Errorf("counted %d in store b", n)
	}
	// The same text in both stores, as PrepareStmt caches it.
	for range 2 {
		for ctx, want := range map[context.Context]int64{t.Context(): 0, d.inB(t.Context()): 2} {
			var n int64
			must(t, db.WithContext(ctx).Model(&Account{}).Count(&n).Error)
			if n != want {
				t.Errorf("counted %d, want %d", n, want)
			}
		}
	}
	var route *rhizodat.RouteError
	if err := db.Exec("store:c SELECT 1").Error; !errors.As(err, &route) {
		t.Errorf("unknown store: %v", err)
	}
	d.want(t, "", "one two")
}

func (g gormSuite) errors(t *testing.T, d *deployment) {
	db := g.open(t, d, gorm.Config{})
	ctx := d.inB(t.Context())
	must(t, db.WithContext(ctx).Create(&Account{Owner: "one"}).Error)
	// As GORM's own translation and much code outside do it.
	err := db.WithContext(ctx).Create(&Account{Owner: "one"}).Error
	if pg, ok := err.(*pgconn.PgError); !ok || pg.ConstraintName != "accounts_owner_key" { //nolint:errorlint // the point
		t.Errorf("duplicate: %T, want *pgconn.PgError itself", err)
	}

	translated := g.open(t, d, gorm.Config{TranslateError: true}).WithContext(ctx)
	if err := translated.Create(&Account{Owner: "one"}).Error; !errors.Is(err, gorm.ErrDuplicatedKey) {
		t.Errorf("duplicate: %v, want gorm.ErrDuplicatedKey", err)
	}
	if err := translated.Create(&Account{Owner: "two", Balance: -1}).Error; !errors.Is(err, gorm.ErrCheckConstraintViolated) {
		t.Errorf("negative balance: %v, want gorm.ErrCheckConstraintViolated", err)
	}
	err = translated.Exec("SELECT nothing FROM accounts").Error
	isState(t, err, "42703")
	// An error of Prepare comes wrapped out of pgx, and GORM does not look inside.
	if errors.Is(err, gorm.ErrInvalidField) == g.prepare {
		t.Errorf("no such column: %v, want it translated as with pgx", err)
	}
}

// What Commit returns comes through GORM, translated errors or not.
func (g gormSuite) commitError(t *testing.T, d *deployment) {
	d.deferred(t, d.b)
	for _, translate := range []bool{false, true} {
		db := g.open(t, d, gorm.Config{TranslateError: translate})
		err := db.Transaction(func(tx *gorm.DB) error {
			must(t, tx.Create(&Account{Owner: "one", Balance: 1}).Error)
			b := tx.WithContext(d.inB(t.Context()))
			must(t, b.Create(&Account{Owner: "one", Balance: 1}).Error)
			return b.Create(&Account{Owner: "two", Balance: 1}).Error
		})
		isAborted(t, err, "b")
	}
	d.want(t, "", "")
}

// Item is made by AutoMigrate, and its second form by the next one.
type Item struct {
	ID   int64
	Name string `gorm:"size:40;uniqueIndex"`
}

// TableName is what the next form has too.
func (Item) TableName() string { return "items" }

type itemOfTomorrow struct {
	ID    int64
	Name  string `gorm:"size:80;uniqueIndex"`
	Price int64  `gorm:"not null;default:0;index"`
}

func (itemOfTomorrow) TableName() string { return "items" }

func (g gormSuite) autoMigrate(t *testing.T, d *deployment) {
	db := g.open(t, d, gorm.Config{})
	for store, ctx := range map[string]context.Context{d.a: t.Context(), d.b: d.inB(t.Context())} {
		if store == "" {
			continue
		}
		// docs: gorm migrate
		err := db.WithContext(ctx).AutoMigrate(&Item{}) // ctx names the store
		// :docs
		must(t, err)
		must(t, db.WithContext(ctx).AutoMigrate(&itemOfTomorrow{}))
		columns, err := db.WithContext(ctx).Migrator().ColumnTypes(&itemOfTomorrow{})
		if !g.conn && !g.prepare {
			// Where GORM knows that this is pgx (Conn, no DriverName) the migrator
			// asks with pgx.QueryExecModeSimpleProtocol as its first argument.
			// Else its SELECT * is a cached plan, and fails once after DDL.
			isState(t, err, "0A000")
			columns, err = db.WithContext(ctx).Migrator().ColumnTypes(&itemOfTomorrow{})
		}
		must(t, err)
		if len(columns) != 3 {
			t.Errorf("%d columns, want 3", len(columns))
		}
		if size, ok := columns[1].Length(); !ok || size != 80 {
			t.Errorf("length of name is %d, %t, want 80", size, ok)
		}
		must(t, db.WithContext(ctx).Create(&itemOfTomorrow{Name: "x"}).Error)
		if n := d.cluster.Int(t, store, `SELECT count(*) FROM items`); n != 1 {
			t.Errorf("%d items in the store that was migrated", n)
		}
	}
}

func (g gormSuite) retry(t *testing.T, d *deployment) {
	db, ctx, attempts := g.open(t, d, gorm.Config{}), t.Context(), 0
	// docs: gorm retry
	err := rhizodat.Retry(ctx, rhizodat.Policy{}, func(ctx context.Context) error {
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			attempts++
			if attempts < 3 {
				return tx.Exec(conflict).Error
			}
			return tx.Create(&Account{Owner: "one"}).Error
		})
	})
	// :docs
	must(t, err)
	if attempts != 3 {
		t.Errorf("%d attempts, want 3", attempts)
	}
	d.want(t, "one", "")
}
