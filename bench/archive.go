package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rhizodat/rhizodat-go/archive"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// archived measures a push of records to a folder, each to a new archive, against
// one forced file of the same records as JSON lines.
func archived(ctx context.Context, rounds int) error {
	const n = 5000
	list := make([]journal.Record, n)
	for i := range list {
		txn := must1(branches.NewTxnID())
		list[i] = journal.Record{Txn: txn, State: journal.StateDone, TxTime: hlc.Time(i + 1), CreatedMS: 1, UpdatedMS: 2}
		for _, store := range []string{"a", "b"} {
			list[i].Branches = append(list[i].Branches, journal.Branch{Store: store, GID: branches.NewGID(txn, store), TwoPhase: true})
		}
	}
	root, err := os.MkdirTemp("", "rhizodat-bench-")
	if err != nil {
		return err
	}
	times := 0
	next := func() string { times++; return filepath.Join(root, fmt.Sprint(times)) }
	run := func() time.Duration {
		to := must1(archive.Open(ctx, archive.Folder(next()), archive.Options{Journal: "bench"}))
		return clients(1, 1, func(int, int) error { return to.Push(ctx, list) })
	}
	opponent := func() time.Duration {
		name := next()
		return clients(1, 1, func(int, int) error { return writeLines(name, list) })
	}
	run()
	opponent()
	ratio, o, t := paired(rounds, run, opponent)
	control, _, _ := paired(rounds, opponent, opponent)
	fmt.Printf("push of %d records: one forced file : ours %s   control %s   (records per second %.0f : %.0f)\n",
		n, ratio, control, n/t.Seconds(), n/o.Seconds())
	figure("time_archive_push_ratio", fmt.Sprintf("%.3f", ratio.median), ">=0", true)
	return os.RemoveAll(root)
}

func writeLines(name string, list []journal.Record) error {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	for _, record := range list {
		if err := lines.Encode(record); err != nil {
			return err
		}
	}
	file, err := os.Create(name) //nolint:gosec // below a directory of our own
	if err != nil {
		return err
	}
	_, err = file.Write(text.Bytes())
	return errors.Join(err, file.Sync(), file.Close())
}
