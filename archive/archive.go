// Package archive keeps the final records of a journal in a bucket, after they
// have left the journal.
//
// A push writes records as one immutable part, named by its content, with
// create-if-absent. Then the manifest, the one object that changes, is replaced
// on exactly the version that was read; that is what makes the part belong to the
// archive. A push that loses reads the newer manifest, merges, and commits again
// (Concurrent writers, "Two machines pushing one bucket"). Only when the manifest
// names the part may the records leave the journal.
//
//	PREFIX/manifest.json                  the parts, and the journal they come from
//	PREFIX/parts/<sha256>.jsonl.gz        one record a line, gzip
//	PREFIX/probe/…                        of opening, removed at once
//
// INVARIANT A1: what a manifest has named, every later manifest names, once.
// INVARIANT A2: a part never changes; its name is the SHA-256 of its bytes.
// INVARIANT A3: a push returns nil only after a manifest that names its part was
// acknowledged, or read.
//
// A crash between the manifest and the journal's delete archives those records
// once more, in another part; readers take the first. A crash before the
// manifest leaves a part that nobody names, and the next push of the same records
// finds it.
package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Archive is an opened archive. It is safe for concurrent use, also by several
// processes on several hosts.
type Archive struct {
	bucket Bucket
	opts   Options
}

// Options of an archive. The zero Options are the defaults.
type Options struct {
	// Journal is the id of the journal whose records are pushed. An archive
	// belongs to the journal that pushed first. Empty only reads.
	Journal string
	// Pusher is who pushes, for the manifest's readers: host and process.
	Pusher string
	// Stalled is how many rounds in a row a push may lose although the manifest
	// did not move between two of its reads; 0 is 5.
	Stalled int
	// Rounds bounds all rounds of a push; 0 is 100.
	Rounds int
	// Wall is the clock between two rounds; nil is hlc.System.
	Wall hlc.Wall
}

func (o Options) withDefaults() Options {
	if o.Stalled <= 0 {
		o.Stalled = 5
	}
	if o.Rounds <= 0 {
		o.Rounds = 100
	}
	if o.Wall == nil {
		o.Wall = hlc.System
	}
	return o
}

// Open probes bucket and returns its archive. *Unfit refuses a bucket whose
// conditional writes do not hold: an archive there would lose parts. Without a
// Journal nothing is written, and nothing is probed.
func Open(ctx context.Context, bucket Bucket, opts Options) (*Archive, error) {
	if opts.Journal != "" {
		if err := probe(ctx, bucket); err != nil {
			return nil, err
		}
	}
	return &Archive{bucket: bucket, opts: opts.withDefaults()}, nil
}

// ErrReadOnly means that an archive was opened without the journal it is pushed from.
var ErrReadOnly = errors.New("rhizodat: push to archive: it was opened for reading only")

// Push makes records part of the archive. It returns nil once a manifest names
// them (A3); after any error they may be there or not, and pushing them again is
// safe. *Contended when other pushers kept winning, *Foreign when the archive is
// another journal's.
func (a *Archive) Push(ctx context.Context, records []journal.Record) error {
	switch {
	case a.opts.Journal == "":
		return ErrReadOnly
	case len(records) == 0:
		return nil
	}
	data, part, err := encode(records)
	if err != nil {
		return err
	}
	part.Pusher, part.PushedMS = a.opts.Pusher, a.opts.Wall.Now().UnixMilli()
	if err := a.upload(ctx, part, data); err != nil {
		return err
	}
	return a.name(ctx, part)
}

// upload puts the part where its content says. What is there after a create that
// lost, or whose reply was lost, tells: a bucket also answers "lost" (409) to one
// of two writes at once, and then keeps neither.
func (a *Archive) upload(ctx context.Context, part Part, data []byte) error {
	var err error
	for round := range a.opts.Stalled {
		var won bool
		if won, err = a.bucket.Create(ctx, part.Name, data); won {
			return nil
		}
		stored, _, readErr := a.bucket.Get(ctx, part.Name)
		switch {
		case readErr == nil && bytes.Equal(stored, data):
			return nil
		case readErr == nil:
			return &Damaged{Key: part.Name, Err: errOtherBytes}
		case err == nil:
			err = readErr
		}
		if err := a.opts.Wall.Sleep(ctx, backoff(round)); err != nil {
			return err
		}
	}
	return fmt.Errorf("rhizodat: upload part to archive: %w", err)
}

// name adds the part to the manifest.
func (a *Archive) name(ctx context.Context, part Part) error {
	var last Version
	var cause error
	stalled := 0
	for round := range a.opts.Rounds {
		m, version, err := a.manifest(ctx)
		if err != nil {
			return err
		}
		switch {
		case m.Journal != "" && m.Journal != a.opts.Journal:
			return &Foreign{Archive: m.Journal, Journal: a.opts.Journal}
		case m.names(part.Name):
			return nil
		case round > 0 && version == last:
			stalled++
		default:
			stalled = 0
		}
		if stalled >= a.opts.Stalled {
			break
		}
		last = version
		won, err := a.replace(ctx, m.with(a.opts.Journal, part), version)
		if won {
			return nil
		}
		cause = err // nil for a condition that was lost
		if err := a.opts.Wall.Sleep(ctx, backoff(round)); err != nil {
			return err
		}
	}
	return &Contended{Unnamed: []string{part.Name}, Err: cause}
}

// replace writes the manifest on the version that was read. An error is a lost
// reply or a bucket that is down: the next round reads what stands.
func (a *Archive) replace(ctx context.Context, m Manifest, version Version) (won bool, err error) {
	data, err := m.encode()
	if err != nil {
		return false, err
	}
	if version == "" {
		return a.bucket.Create(ctx, manifestKey, data)
	}
	return a.bucket.Replace(ctx, manifestKey, data, version)
}
