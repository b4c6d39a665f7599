package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/testbed/crash/lake"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// historyScenes are about snapshots that expire before recovery looks.
func historyScenes() []scene {
	kind := kindOfLane{lake: lake.Layout{Kind: lake.SQLite, Expires: true}}
	return []scene{
		{name: "its snapshot expires before recovery looks", kind: kind, play: expired("S9.after")},
		{name: "the snapshot it was staged on expires before recovery looks", kind: kind, play: expired("S9.before")},
	}
}

// fullScenes are about a disk that is full.
func fullScenes() []scene {
	kind := kindOfLane{lake: lake.Layout{Kind: lake.SQLite, Small: true}}
	return []scene{
		{name: "disk full at the data file", kind: kind, play: fullAtData},
		{name: "disk full at the coordinator's commit", kind: kind, play: fullAtCommit},
		{name: "disk full at manifest, manifest list and metadata", kind: kind, play: fullAtEach},
	}
}

// canFill reports whether a small disk can be had here.
func canFill(ctx context.Context, h *house) (bool, error) {
	store, err := lake.New(ctx, lake.Layout{Kind: lake.SQLite, Small: true}, nil)
	if errors.Is(err, lake.ErrNoDisk) {
		h.leaveOut("a full disk below Iceberg: " + err.Error())
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, store.Close()
}

// expired leaves a decided unit at a point, lets another one commit, and then all
// snapshots but that one's expire.
func expired(point string) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error {
		if err := l.act(ctx, cell{plan: plan.Plan{Work: l.work()}}, &sight{}); err != nil { // so that there is one to stage on
			return err
		}
		if err := l.left(ctx, s, point); err != nil {
			return err
		}
		applied, err := l.lake.Committed(ctx, s.txn)
		if err != nil {
			return err
		}
		if err := l.act(ctx, cell{plan: plan.Plan{Work: l.work()}}, &sight{}); err != nil {
			return err
		}
		if err := l.lake.Expire(ctx); err != nil {
			return err
		}
		stands, err := l.lake.Committed(ctx, s.txn)
		s.hit = !stands && applied == (point == "S9.after")
		return err
	}
}

// fullAtData fills the disk before the unit's rows go to a file. Nothing is decided
// yet, and nothing happens.
func fullAtData(ctx context.Context, l *lane, s *sight) error {
	err := l.act(ctx, cell{
		plan: plan.Plan{Work: l.work(), Point: "S3.before"},
		deed: func(context.Context, *lane, *rig.Child, *sight) error { return l.lake.Fill(0) },
	}, s)
	if s.hit && s.verdict() != "aborted" {
		s.violations = append(s.violations, "it was reported "+s.verdict()+", and not aborted")
	}
	return errors.Join(err, l.lake.Free())
}

// fullAtCommit fills the disk after the decision, and makes room again.
func fullAtCommit(ctx context.Context, l *lane, s *sight) error {
	err := l.act(ctx, cell{
		plan: plan.Plan{Work: l.work(), Point: "S9.before"}, options: optionsOfOutage,
		deed: func(context.Context, *lane, *rig.Child, *sight) error { return l.lake.Fill(0) },
	}, s)
	if err == nil {
		err = l.pending(ctx, s)
	}
	return errors.Join(err, l.lake.Free())
}

// enough pages for every file of a commit.
const enough = 64

// fullAtEach lets recovery meet a disk with room for no page, for one, for two, and
// so on, until it gets through: it runs out of room at each kind of file.
func fullAtEach(ctx context.Context, l *lane, s *sight) error {
	if err := l.decided(ctx, s); err != nil {
		return err
	}
	met := map[string]bool{}
	for pages := range int64(enough) {
		if err := l.lake.Fill(pages); err != nil {
			return err
		}
		code, output, err := l.recovery.Run(ctx, "once")
		if err = errors.Join(err, l.lake.Free(), l.lapse(ctx)); err != nil {
			return err
		}
		if code == rig.ExitClean {
			s.hit = met["manifest"] && met["manifest list"] && met["metadata"]
			return nil
		}
		met[written(output)] = true
	}
	s.violations = append(s.violations, fmt.Sprintf("recovery does not get through with room for %d pages", enough))
	return nil
}

// written says which kind of file an error of a full disk is about.
func written(output string) string {
	for line := range strings.SplitSeq(output, "\n") {
		switch {
		case !strings.Contains(line, "no space left on device"):
		case strings.Contains(line, ".metadata.json"):
			return "metadata"
		case strings.Contains(line, "snap-"):
			return "manifest list"
		case strings.Contains(line, ".avro"):
			return "manifest"
		}
	}
	return ""
}
