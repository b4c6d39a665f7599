package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

type statusCmd struct{ jsonFlag }

// Run prints the state of the deployment and changes nothing.
func (c *statusCmd) Run(s *session) error {
	return s.open(nil, func(ctx context.Context, d *deployment) error {
		status, err := d.worker.Status(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, status)
		}
		return printStatus(s, status)
	})
}

func printStatus(s *session, st recovery.Status) error {
	say(s.out, "journal %s at %s\n", st.Journal, st.Place)
	if st.Moved {
		sayln(s.out, "the journal is not where it was made or adopted: nothing is recovered until a person says rhizorecover adopt")
	}
	say(s.out, "records: %s; oldest unfinished %s; stuck %d; waiting for a person %d\n",
		counts(st.States), ms(st.OldestLeftMS), st.Stuck, st.Heuristic)
	if st.Damaged > 0 {
		say(s.out, "records that cannot be read: %d\n", st.Damaged)
	}
	stores := newTable(s.out, "STORE", "STANDING", "PREPARED", "FOREIGN", "OLDEST", "SWEEPS", "PLACE", "PROBLEM")
	for _, one := range st.Stores {
		stores.row(one.Store, string(one.Standing), fmt.Sprint(one.Listed), fmt.Sprint(one.Foreign),
			ms(one.OldestMS), fmt.Sprint(one.Sweeps), orDash(string(one.Place)), problem(one.StoreReport))
	}
	if err := stores.flush(); err != nil {
		return err
	}
	prepared := 0
	for _, one := range st.Stores {
		prepared += len(one.Prepared)
	}
	if prepared == 0 {
		return nil
	}
	list := newTable(s.out, "GID", "STORE", "AGE", "OWNER", "STATE", "NOTE")
	for _, one := range st.Stores {
		for _, p := range one.Prepared {
			list.row(string(p.GID), one.Store, ms(p.AgeMS), p.Owner, p.State, note(p))
		}
	}
	return list.flush()
}

func note(p recovery.PreparedStatus) string {
	switch {
	case p.Foreign:
		return "another deployment's"
	case !p.MayFinish:
		return "no right to finish it"
	}
	return ""
}

type listCmd struct {
	State []string `enum:"ACTIVE,PREPARED,COMMITTED,DONE,ABORTED" placeholder:"STATE" help:"Records in this state; may be repeated. Default: those that are not final."`
	All   bool     `help:"Records in every state."`
	Limit int      `default:"1000" help:"At most so many, oldest first; 0 is no limit."`
	jsonFlag
}

// Run lists records.
func (c *listCmd) Run(s *session) error {
	filter := recovery.Filter{Limit: c.Limit}
	for _, text := range c.State {
		state, err := journal.ParseState(text)
		if err != nil {
			return &usageError{err}
		}
		filter.States = append(filter.States, state)
	}
	if c.All {
		filter.States = journal.States
	}
	return s.open(nil, func(ctx context.Context, d *deployment) error {
		entries, err := d.worker.List(ctx, filter)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, entries)
		}
		if len(entries) == 0 {
			_, err := fmt.Fprintln(s.out, "no records")
			return err
		}
		list := newTable(s.out, "DAT_TXN", "STATE", "AGE", "UNCHANGED", "STORES", "NOTES")
		for _, e := range entries {
			list.row(e.Txn.String(), string(e.State), ms(e.AgeMS), ms(e.UnchangedMS), strings.Join(e.Stores, ","), strings.Join(e.Notes, ", "))
		}
		return list.flush()
	})
}
