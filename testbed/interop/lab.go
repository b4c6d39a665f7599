package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/chserver"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// lab is what a run has: a directory, the peers, and servers.
type lab struct {
	plan    plan
	board   *rig.Board
	dir     string
	peers   []*peer // PyIceberg, Java
	leftOut []string
	proved  bool // that the comparisons find damage

	postgres *rig.Server // nil in the short form
	servlets []*servlet
	// clickhouse is nil where this machine has no engine.
	clickhouse *chserver.Server

	mu         sync.Mutex // of what follows, and of printing
	allowances []*allowance
}

func openLab(ctx context.Context, plan plan, board *rig.Board) (*lab, error) {
	l := &lab{plan: plan, board: board, allowances: allowances()}
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(err, l.close(ctx))
	}
	return l, nil
}

func (l *lab) open(ctx context.Context) (err error) {
	// The engine reads files below the directory that it runs in, and no others.
	below := ""
	switch l.clickhouse, err = chserver.Launch(ctx, ""); {
	case err == nil:
		below = l.clickhouse.Dir()
	case errors.Is(err, chserver.ErrNoServer):
		l.leftOut = append(l.leftOut, "ClickHouse: no engine on this machine")
	default:
		return err
	}
	if l.dir, err = os.MkdirTemp(below, "rhizodat-interop-"); err != nil {
		return fmt.Errorf("make directory of tables: %w", err)
	}
	l.peers, err = startPeers(ctx, l.plan.folder)
	return err
}

func (l *lab) close(ctx context.Context) error {
	var errs []error
	for _, p := range l.peers {
		errs = append(errs, p.close())
	}
	for _, s := range l.servlets {
		errs = append(errs, s.close())
	}
	if l.postgres != nil {
		errs = append(errs, l.postgres.Close(ctx))
	}
	if l.dir != "" {
		errs = append(errs, os.RemoveAll(l.dir))
	}
	if l.clickhouse != nil {
		errs = append(errs, l.clickhouse.Close())
	}
	return errors.Join(errs...)
}

// python and java are the peers by name.
func (l *lab) python() *peer { return l.peers[0] }
func (l *lab) java() *peer   { return l.peers[1] }

// places are the catalogs of this run.
func (l *lab) places(ctx context.Context) ([]*place, error) {
	wants := func(name string) bool {
		if l.plan.only != "" {
			return l.plan.only == name
		}
		return !l.plan.short || name == full
	}
	var all []*place
	if wants(full) {
		all = append(all, sqlitePlace(l.dir))
	}
	if wants("postgres") {
		var err error
		if l.postgres, err = rig.Open(ctx, "fsync=off", "full_page_writes=off"); err != nil {
			return nil, err
		}
		db, err := l.postgres.Database(ctx, "interop")
		if err != nil {
			return nil, err
		}
		p, err := postgresPlace(l.dir, db)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if wants("rest") {
		p, server, err := restPlace(ctx, l.dir, l.plan.folder)
		if err != nil {
			return nil, err
		}
		l.servlets = append(l.servlets, server)
		all = append(all, p)
	}
	return all, nil
}

// scene is one thing that is shown on a catalog.
type scene struct {
	title string
	play  func(context.Context, *venue) error
}

// venue is one catalog with everybody on it.
type venue struct {
	*lab
	*ours
	prefix string // of its figures
	tables []*shown
}

// show plays everything on one catalog.
func (l *lab) show(ctx context.Context, p *place) (err error) {
	o, err := openOurs(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	for _, peer := range l.peers {
		if _, err := peer.ask(question{Do: "open", Properties: p.properties(peer.name)}); err != nil {
			return err
		}
	}
	s := &venue{lab: l, ours: o, prefix: "interop_" + p.name + "_"}
	for _, c := range scenes() {
		began := time.Now()
		fmt.Printf("== %s: %s\n", p.name, c.title)
		if err := c.play(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
		fmt.Printf("   %.1f s\n", time.Since(began).Seconds())
	}
	return nil
}

func scenes() []scene {
	return []scene{
		{"this library writes", writeAll},
		{"the peers read", peersRead},
		{"ClickHouse reads", clickhouseReads},
		{"the peers write", peersWrite},
		{"one after the other", mixed},
		{"all at once", race},
		{"two workers on one decided change", twins},
		{"bounds, statistics and partitions, by the peers", statistics},
		{"damages on purpose, each of which must be found", proof},
	}
}
