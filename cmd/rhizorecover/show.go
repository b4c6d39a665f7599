package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// txnArg is the DAT_TXN of a command line.
type txnArg struct {
	Txn string `arg:"" name:"dat_txn" help:"The transaction's dat_txn, or one of its gids (dat:<dat_txn>:<store>)."`
}

func (a txnArg) id() (branches.TxnID, error) {
	if gid, err := branches.ParseGID(a.Txn); err == nil {
		return gid.Txn(), nil
	}
	txn, err := branches.ParseTxnID(a.Txn)
	if err != nil {
		return txn, &usageError{err}
	}
	return txn, nil
}

type showCmd struct {
	txnArg
	jsonFlag
}

// Run tells the story of one transaction.
func (c *showCmd) Run(s *session) error {
	txn, err := c.id()
	if err != nil {
		return err
	}
	return s.open(nil, func(ctx context.Context, d *deployment) error {
		story, err := d.worker.Show(ctx, txn)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, story)
		}
		return printStory(s, story)
	})
}

func printStory(s *session, st recovery.Story) error {
	state := "no record"
	if st.State != "" {
		state = fmt.Sprintf("%s, %s old, unchanged for %s", st.State, ms(st.AgeMS), ms(st.UnchangedMS))
	}
	say(s.out, "%s: %s\n", st.Txn, state)
	if st.TxTime != "" {
		say(s.out, "dat_tx_time %s\n", st.TxTime)
	}
	if st.Lease != "" {
		say(s.out, "under lease %s, fence %s\n", st.Lease, st.Fence)
	}
	for _, part := range []struct{ title, text string }{
		{"What happened", st.Happened}, {"What will happen", st.Next}, {"Why", st.Why},
	} {
		say(s.out, "\n%s:\n%s\n", part.title, wrap(part.text, s.width, "  "))
	}
	if len(st.Branches) > 0 {
		sayln(s.out)
		list := newTable(s.out, "STORE", "PREPARED", "OWNER", "MARKER", "OUTCOME", "PROBLEM")
		for _, b := range st.Branches {
			prepared := "no"
			if b.Prepared {
				prepared = "for " + ms(b.ForMS)
			}
			list.row(b.Store, prepared, orDash(b.Owner), b.Marker, orDash(string(b.Outcome)), b.Problem)
		}
		if err := list.flush(); err != nil {
			return err
		}
	}
	for _, b := range st.Branches {
		if len(b.Work) == 0 {
			continue
		}
		say(s.out, "\nPayload of %s:\n", b.Store)
		for _, line := range b.Work {
			say(s.out, "%s\n", wrap(line, s.width, "  "))
		}
	}
	for _, r := range st.Remarks {
		say(s.out, "\n%s, %s:\n%s\n", time.UnixMilli(r.AtMS).UTC().Format(time.RFC3339), r.Who, wrap(r.Text, s.width, "  "))
	}
	return nil
}
