package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rhizodat/rhizodat-go/archive"
	"github.com/rhizodat/rhizodat-go/internal/cutproxy"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// archived is how many records are in the journal when it is archived.
const archived = 3

// archives kills "rhizorecover compact --archive" between the manifest and the
// journal's delete, and behind that.
func archives(ctx context.Context, h *house) error {
	t := &sceneTable{}
	err := t.on(ctx, h, kindOfLane{}, []scene{
		{name: "archiver killed between manifest and delete", play: killedArchiver(beforeRemove, archived, 0), ends: true},
		{name: "the same, and another unit commits", play: killedArchiver(beforeRemove, archived, 1), ends: true},
		{name: "archiver killed behind the delete", play: killedArchiver(behindRemove, 0, 1), ends: true},
	})()
	t.print()
	t.figures(h, "archive", 3)
	h.violations("archive", t.violations)
	return err
}

// removes is the compaction's change of the journal. Each of them is cut: an
// archiver that lives for a moment more tries again.
var removes = cutproxy.Prefix("DELETE FROM")

func beforeRemove(p *cutproxy.Proxy) *cutproxy.Rule { return p.CutBefore(removes) }

func behindRemove(p *cutproxy.Proxy) *cutproxy.Rule {
	return p.CutAfter(removes, cutproxy.HoldServer())
}

// killedArchiver kills an archiver at its delete, which leaves so many records in
// the journal; then more units commit, and another archiver finishes.
func killedArchiver(at func(*cutproxy.Proxy) *cutproxy.Rule, left, more int) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error {
		dir, err := os.MkdirTemp("", "rhizodat-archive-")
		if err != nil {
			return fmt.Errorf("make archive: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // of this run alone
		if err := l.commits(ctx, archived); err != nil {
			return err
		}
		if err := l.killArchiver(ctx, s, dir, at); err != nil {
			return err
		}
		want := archive.Verified{Parts: 1, Records: archived}
		if err := l.kept(ctx, s, dir, left, want); err != nil {
			return err
		}
		if err := l.commits(ctx, more); err != nil {
			return err
		}
		if _, _, err := l.recovery.Run(ctx, compact(dir)...); err != nil {
			return err
		}
		want.Records += more
		if more > 0 {
			want.Parts, want.Twice = 2, left // what was there and not deleted is in both parts
		}
		if err := l.kept(ctx, s, dir, 0, want); err != nil {
			return err
		}
		markers, err := l.markers(ctx)
		if markers > 0 {
			s.wrong("%d markers are left, and no record", markers)
		}
		return err
	}
}

func compact(dir string) []string {
	return []string{"compact", "--retain=1ns", "--archive=file://" + dir}
}

// commits commits units.
func (l *lane) commits(ctx context.Context, n int) error {
	for range n {
		s := &sight{}
		if err := l.act(ctx, cell{plan: plan.Plan{Work: shapeTwo.work()}}, s); err != nil {
			return err
		}
		if s.verdict() != "committed" {
			return fmt.Errorf("commit for archive: it was reported %s", s.verdict())
		}
	}
	return nil
}

// killArchiver runs one until it is at its delete.
func (l *lane) killArchiver(ctx context.Context, s *sight, dir string, at func(*cutproxy.Proxy) *cutproxy.Rule) error {
	net, err := cutproxy.Listen(ctx, l.Journal.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = net.Close() }() // its listener is all that could fail
	rule := at(net)
	dsn := l.DSNVia(map[string]string{rig.JournalName: net.DSN(l.Journal.DSN)}, optionsOfRecovery)
	child, err := rig.Start(ctx, l.recovery.Program, compact(dir), append([]string{"RHIZODAT_DSN=" + dsn}, l.env...)...)
	if err != nil {
		return err
	}
	go func() {
		for range child.Lines { // it is asked nothing
			continue
		}
	}()
	select {
	case <-rule.Hit():
		s.hit = true
	case <-child.Ended():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := child.Kill(); err != nil && s.hit {
		return err
	}
	_ = child.Wait() // killed
	return l.quiet(ctx)
}

// kept expects so many records in the journal, and this in the archive.
func (l *lane) kept(ctx context.Context, s *sight, dir string, left int, want archive.Verified) error {
	there, err := l.Journal.Int(ctx, `SELECT count(*) FROM dat_journal`)
	if err != nil {
		return err
	}
	if there != left {
		s.wrong("%d records are in the journal, want %d", there, left)
	}
	a, err := archive.Open(ctx, archive.Folder(filepath.Clean(dir)), archive.Options{})
	if err != nil {
		return err
	}
	got, err := a.Verify(ctx, nil)
	if err != nil {
		return err
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.wrong("the archive holds %+v, want %+v", got, want)
	}
	return nil
}

// markers counts those of all stores.
func (l *lane) markers(ctx context.Context) (int, error) {
	n := 0
	for _, db := range l.Stores {
		in, err := db.Int(ctx, `SELECT count(*) FROM dat_applied`)
		if err != nil {
			return n, err
		}
		n += in
	}
	return n, nil
}
