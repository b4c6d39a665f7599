package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

type compactCmd struct {
	Retain  time.Duration `placeholder:"DURATION" help:"Keep what has changed within this time. Default: retain of the DSN."`
	Archive string        `name:"archive" placeholder:"URL" help:"Push records there before they are removed: s3://BUCKET/PREFIX?region=…&endpoint=… or file:///DIR."`
	Steps   time.Duration `name:"steps-older-than" placeholder:"DURATION" help:"Also remove once-only steps that have not changed for so long. A step that is asked for again then runs again."`
	Quiet   bool          `short:"q" help:"Show no progress on standard error."`
	jsonFlag
}

// Run compacts, and says from time to time how far it is.
func (c *compactCmd) Run(s *session) error {
	if c.Retain < 0 {
		return &usageError{fmt.Errorf("--retain: %s is negative", c.Retain)}
	}
	if c.Steps < 0 {
		return &usageError{fmt.Errorf("--steps-older-than: %s is negative", c.Steps)}
	}
	return s.open(nil, func(ctx context.Context, d *deployment) error {
		var push func(context.Context, []journal.Record) error
		if c.Archive != "" {
			var err error
			if push, err = pushTo(ctx, c.Archive, d); err != nil {
				return err
			}
		}
		last := now()
		done, err := d.worker.Compact(ctx, recovery.CompactOptions{
			Retain: c.Retain, Archive: push,
			Progress: func(done recovery.Compacted) {
				if c.Quiet || now().Sub(last) < time.Second {
					return
				}
				last = now()
				say(s.err, "compact: %d records and %d markers removed so far\n", done.Records, done.Markers)
			},
		})
		if err != nil {
			return err
		}
		steps := 0
		if c.Steps > 0 {
			if steps, err = removeSteps(ctx, d, c.Steps); err != nil {
				return err
			}
		}
		if c.JSON {
			return printJSON(s.out, struct {
				recovery.Compacted
				Steps int `json:"steps"`
			}{done, steps})
		}
		say(s.out, "removed %d records and %d markers of one-phase commits; kept %d records past retain\n", done.Records, done.Markers, done.Kept)
		for _, line := range sortedReasons(done.Reasons) {
			sayln(s.out, "  kept", line)
		}
		if c.Steps > 0 {
			say(s.out, "removed %d once-only steps\n", steps)
		}
		return nil
	})
}
