package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/archive"
	"github.com/rhizodat/rhizodat-go/archive/s3bucket"
	"github.com/rhizodat/rhizodat-go/journal"
)

type archiveCmd struct {
	List   archiveListCmd   `cmd:"" help:"List the parts of an archive."`
	Show   archiveShowCmd   `cmd:"" help:"Print the archived record of one transaction."`
	Verify archiveVerifyCmd `cmd:"" help:"Read every part and hold it against the manifest."`
}

// archiveFlag says where an archive is.
type archiveFlag struct {
	Archive string `name:"archive" required:"" placeholder:"URL" help:"s3://BUCKET/PREFIX?region=…&endpoint=…&path_style=true (credentials from the AWS environment) or file:///DIR."`
}

// openBucket reads the URL of an archive. It connects to nothing.
func openBucket(ctx context.Context, location string) (archive.Bucket, error) {
	switch scheme, _, _ := strings.Cut(location, "://"); scheme {
	case "s3":
		return s3bucket.Open(ctx, location)
	case "file":
		u, err := url.Parse(location)
		if err != nil || u.Host != "" || u.Path == "" || u.RawQuery != "" {
			return nil, errors.New("--archive: write file:///DIR")
		}
		return archive.Folder(u.Path), nil
	}
	return nil, errors.New("--archive: neither an s3:// nor a file:// URL")
}

// openArchive opens an archive that is only read.
func (a archiveFlag) openArchive(s *session) (*archive.Archive, error) {
	bucket, err := openBucket(s.ctx, a.Archive)
	if err != nil {
		return nil, &usageError{err}
	}
	return archive.Open(s.ctx, bucket, archive.Options{})
}

// pushTo makes what Compact calls before it removes records.
func pushTo(ctx context.Context, location string, d *deployment) (func(context.Context, []journal.Record) error, error) {
	bucket, err := openBucket(ctx, location)
	if err != nil {
		return nil, &usageError{err}
	}
	registry, ok := d.journal.(journal.Registry)
	if !ok {
		return nil, errors.New("--archive: this journal has no identity")
	}
	identity, err := registry.Identify(ctx)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // only for readers of the manifest
	to, err := archive.Open(ctx, bucket, archive.Options{Journal: identity.ID, Pusher: fmt.Sprintf("%s/%d", host, os.Getpid())})
	if err != nil {
		return nil, err
	}
	return to.Push, nil
}

type archiveListCmd struct {
	archiveFlag
	jsonFlag
}

// Run lists the parts.
func (c *archiveListCmd) Run(s *session) error {
	a, err := c.openArchive(s)
	if err != nil {
		return err
	}
	m, err := a.Manifest(s.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, m)
	}
	if m.Journal == "" {
		sayln(s.out, "nothing was ever pushed there")
		return nil
	}
	say(s.out, "records of journal %s\n", m.Journal)
	t := newTable(s.out, "PART", "RECORDS", "BYTES", "FROM", "TO", "PUSHED", "BY")
	for _, p := range m.Parts {
		t.row(p.Name, fmt.Sprint(p.Records), fmt.Sprint(p.Bytes), p.First, p.Last,
			time.UnixMilli(p.PushedMS).UTC().Format(time.RFC3339), p.Pusher)
	}
	return t.flush()
}

type archiveShowCmd struct {
	txnArg
	archiveFlag
}

// archived is what show prints: the columns of the journal's record.
type archived struct {
	DatTxn    string           `json:"dat_txn"`
	State     journal.State    `json:"state"`
	DatTxTime string           `json:"dat_tx_time"`
	Branches  []journal.Branch `json:"branches"`
	CreatedMS int64            `json:"created_ms"`
	UpdatedMS int64            `json:"updated_ms"`
	Lease     string           `json:"lease,omitempty"`
	Fence     journal.Fence    `json:"fence,omitempty"`
	Note      journal.Note     `json:"note"`
}

// Run prints one record, as JSON.
func (c *archiveShowCmd) Run(s *session) error {
	txn, err := c.id()
	if err != nil {
		return err
	}
	a, err := c.openArchive(s)
	if err != nil {
		return err
	}
	rec, err := a.Find(s.ctx, txn)
	if errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("the archive has no record of %s", txn)
	}
	if err != nil {
		return err
	}
	return printJSON(s.out, archived{
		DatTxn: rec.Txn.String(), State: rec.State, DatTxTime: rec.TxTime.String(), Branches: rec.Branches,
		CreatedMS: rec.CreatedMS, UpdatedMS: rec.UpdatedMS, Lease: rec.Lease, Fence: rec.Fence, Note: rec.Note,
	})
}

type archiveVerifyCmd struct {
	archiveFlag
	Quiet bool `short:"q" help:"Show no progress on standard error."`
	jsonFlag
}

// Run verifies. Damage needs a person.
func (c *archiveVerifyCmd) Run(s *session) error {
	a, err := c.openArchive(s)
	if err != nil {
		return err
	}
	last := now()
	v, err := a.Verify(s.ctx, func(v archive.Verified) {
		if c.Quiet || now().Sub(last) < time.Second {
			return
		}
		last = now()
		say(s.err, "verify: %d parts and %d records so far\n", v.Parts, v.Records)
	})
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(s.out, v)
	} else {
		say(s.out, "%d parts are whole, with %d records; %d records are in more than one part\n", v.Parts, v.Records, v.Twice)
		for _, key := range v.Unnamed {
			sayln(s.out, "  not named by the manifest:", key)
		}
		for _, text := range v.Damage {
			sayln(s.out, "  damaged:", text)
		}
	}
	if err == nil && len(v.Damage) > 0 {
		return exit(exitPerson)
	}
	return err
}
