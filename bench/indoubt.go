package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// inDoubt measures (d): how long one pass of a worker takes over n transactions
// that a crash has left prepared, every second one decided.
func inDoubt(ctx context.Context, r *rig, n int) {
	cfg, err := rhizodat.ParseDSN(r.dsn())
	must(err)
	for name, store := range cfg.Stores { // as rhizorecover does
		store.Options = postgres.Options{ControlConns: recovery.DefaultParallel}
		cfg.Stores[name] = store
	}
	connector, err := rhizodat.NewConnector(cfg)
	must(err)
	defer func() { must(connector.Close()) }()
	config, err := connector.Recovery()
	must(err)
	for i := range n {
		must(abandon(ctx, config, i))
	}
	// Nobody has touched the records for an hour.
	must(r.exec(ctx, "coord", "coord", "UPDATE dat_journal SET created_ms = created_ms - 3600000, updated_ms = updated_ms - 3600000 WHERE state IN ('ACTIVE', 'PREPARED', 'COMMITTED')"))

	worker, err := recovery.New(config)
	must(err)
	start := time.Now()
	report, err := worker.Once(ctx)
	took := time.Since(start)
	must(err)
	fmt.Printf("recovery of %d in-doubt transactions, half decided: %v\n", n, took.Round(time.Millisecond))
	figure("time_recovery_in_doubt_seconds", fmt.Sprintf("%.3f", took.Seconds()), "<2", took < 2*time.Second)
	figure("recovery_exit_code", report.ExitCode(), "0", report.ExitCode() == 0)
}

// abandon leaves one transaction of two branches prepared; an even one decided.
func abandon(ctx context.Context, config recovery.Config, i int) error {
	txn, err := branches.NewTxnID()
	if err != nil {
		return err
	}
	record := journal.Record{Txn: txn, State: journal.StateActive, TxTime: config.Clock.Now()}
	for _, name := range []string{"a", "b"} {
		record.Branches = append(record.Branches, journal.Branch{Store: name, GID: branches.NewGID(txn, name), TwoPhase: true})
	}
	place, err := config.Journal.Session(ctx)
	if err != nil {
		return err
	}
	defer place.Release()
	if err := place.Create(ctx, &record); err != nil {
		return err
	}
	for _, b := range record.Branches {
		if err := prepare(ctx, config.Stores[b.Store], record, b, i); err != nil {
			return err
		}
	}
	if i%2 == 0 {
		return place.Decide(ctx, journal.Decision{Txn: txn, TxTime: record.TxTime, WithPrepare: true})
	}
	return nil
}

func prepare(ctx context.Context, store branches.Store, record journal.Record, b journal.Branch, i int) error {
	session, err := store.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	branch, err := session.Begin(ctx, branches.BeginOptions{Txn: record.Txn, Shared: true})
	if err != nil {
		return err
	}
	if _, err := session.Exec(ctx, fmt.Sprintf("INSERT INTO item VALUES (%d, 'left', 0, now())", 100_000+i), nil); err != nil {
		return err
	}
	if _, err := branch.Stage(ctx, branches.Unit{Txn: record.Txn, TxTime: record.TxTime, Marker: true}); err != nil {
		return err
	}
	return branch.Prepare(ctx, b.GID)
}
