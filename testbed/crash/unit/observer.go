package main

import (
	"context"
	"database/sql"
	"sync"

	"github.com/jackc/pgx/v5"

	rhizodat "github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
)

// observer stops the unit at its point.
type observer struct {
	plan     plan.Plan
	parent   *parent
	conn     *sql.Conn
	spoiled  *pgx.Conn
	once     sync.Once
	conflict bool
}

var (
	_ rhizodat.Observer    = (*observer)(nil)
	_ coordinator.Splitter = (*observer)(nil)
)

// SplitDecision implements coordinator.Splitter.
func (o *observer) SplitDecision() bool { return o.plan.Split }

// Step is called before and after every step, and holds it up.
func (o *observer) Step(ctx context.Context, e rhizodat.StepEvent) {
	if o.spoiled != nil && e.Point() == "S5.before:"+o.plan.Spoil {
		_, _ = o.spoiled.Exec(ctx, "SELECT 1/0") // its failure is the purpose
	}
	o.reach(e.Point())
}

// Outcome notes a refusal of the journal.
func (o *observer) Outcome(_ context.Context, e rhizodat.OutcomeEvent) { o.conflict = e.Conflict }

// reach is called at every point.
func (o *observer) reach(point string) {
	if point == o.plan.Point {
		o.once.Do(func() { o.parent.tell(plan.WordAt + " " + point) })
	}
}

// session is the unit's own connection to a store, past the driver.
func session(conn *sql.Conn, store string) (found *pgx.Conn, err error) {
	err = conn.Raw(func(driverConn any) error {
		found, err = postgres.Conn(driverConn, store)
		return err
	})
	return found, err
}
