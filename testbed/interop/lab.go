package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// lab is what a run has: a directory, the peers, and servers.
type lab struct {
	plan    plan
	board   *rig.Board
	dir     string
	peers   []*peer // PyIceberg, Java
	leftOut string

	postgres *rig.Server // nil in the short form
	servlets []*servlet

	mu         sync.Mutex // of what follows, and of printing
	allowances []*allowance
}

func openLab(ctx context.Context, plan plan, board *rig.Board) (*lab, error) {
	dir, err := os.MkdirTemp("", "rhizodat-interop-")
	if err != nil {
		return nil, fmt.Errorf("make directory of tables: %w", err)
	}
	l := &lab{plan: plan, board: board, dir: dir, allowances: allowances()}
	if l.peers, err = startPeers(ctx, plan.folder); err != nil {
		return nil, errors.Join(err, l.close(ctx))
	}
	return l, nil
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
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
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
		return !l.plan.short || name == "sqlite"
	}
	var all []*place
	if wants("sqlite") {
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
	play  func(context.Context, *stage) error
}

// stage is one catalog with everybody on it.
type stage struct {
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
	s := &stage{lab: l, ours: o, prefix: "interop_" + p.name + "_"}
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
	}
}
