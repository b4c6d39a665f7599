package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

type resolveCmd struct {
	txnArg
	Store  string `required:"" placeholder:"STORE" help:"Store of the branch."`
	As     string `required:"" enum:"applied,skipped" placeholder:"applied|skipped" help:"applied: what the branch should have written is there; skipped: it is given up, and rolled back should it ever be found prepared."`
	Reason string `required:"" placeholder:"TEXT" help:"Why, for whoever reads the record later."`
	Who    string `placeholder:"NAME" help:"Who decides. Default: the user of this process and its host."`
	Yes    bool   `help:"Do not ask."`
	jsonFlag
}

// Run keeps a person's decision in the record, after asking twice.
func (c *resolveCmd) Run(s *session) error {
	txn, err := c.id()
	if err != nil {
		return err
	}
	return s.open(nil, func(ctx context.Context, d *deployment) error {
		if !c.Yes {
			story, err := d.worker.Show(ctx, txn)
			if err != nil {
				return err
			}
			if err := printStory(&session{console: console{out: &sink{w: s.err}}}, story); err != nil {
				return err
			}
			answers := bufio.NewScanner(s.in)
			say(s.err, "\nThe branch in store %s will count as %s for good. No program undoes that.\n", c.Store, c.As)
			if !ask(s, answers, "Is that meant? Type yes", "yes") || !ask(s, answers, "Type the dat_txn again", txn.String()) {
				return errNotConfirmed
			}
		}
		resolved, err := d.worker.Resolve(ctx, recovery.Resolution{
			Txn: txn, Store: c.Store, As: journal.Outcome(c.As), Reason: c.Reason, Who: or(c.Who, whoami()),
		})
		if err != nil {
			return err
		}
		return c.answer(s, resolved)
	})
}

func (c *resolveCmd) answer(s *session, r recovery.Resolved) error {
	if c.JSON {
		if err := printJSON(s.out, r); err != nil {
			return err
		}
	} else {
		sayln(s.out, resolvedText(c, r))
	}
	if len(r.Waiting) > 0 {
		return exit(exitLeft)
	}
	return nil
}

func resolvedText(c *resolveCmd, r recovery.Resolved) string {
	switch {
	case r.Absent && r.State == journal.StateAborted:
		return "The journal had no record. What came back is ABORTED: nobody can commit it any more, and the next pass of recovery rolls back what is prepared of it."
	case r.Absent:
		return fmt.Sprintf("The journal had no record, and while it was forbidden somebody wrote one. What came back is %s: look again with show.", r.State)
	case len(r.Waiting) > 0:
		return fmt.Sprintf("Kept. The record is %s: it still waits for %s.", r.State, strings.Join(r.Waiting, ", "))
	}
	return fmt.Sprintf("Kept: store %s %s. The record is %s.", c.Store, c.As, r.State)
}

var errNotConfirmed = errors.New("not confirmed: nothing was changed")

// ask asks a question and reports whether the answer was the wanted one.
func ask(s *session, answers *bufio.Scanner, question, want string) bool {
	say(s.err, "%s: ", question)
	return answers.Scan() && strings.TrimSpace(answers.Text()) == want
}

// whoami names the person behind this process as well as it can.
func whoami() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

type adoptCmd struct {
	Store []string `placeholder:"STORE" help:"Store to adopt; may be repeated."`
	All   bool     `help:"Every store of the DSN that is left alone now."`
	Yes   bool     `help:"Do not ask."`
	jsonFlag
}

// Run shows what adopting would change, asks, and does it.
func (c *adoptCmd) Run(s *session) error {
	if c.All == (len(c.Store) > 0) {
		return &usageError{errors.New("adopt: say --store STORE, or --all")}
	}
	return s.open(nil, func(ctx context.Context, d *deployment) error {
		names := c.Store
		if c.All {
			status, err := d.worker.Status(ctx)
			if err != nil {
				return err
			}
			for _, st := range status.Stores {
				names = append(names, st.Store)
			}
		}
		answers := bufio.NewScanner(s.in)
		done := []recovery.Adoption{}
		for _, name := range slices.Compact(names) {
			plan, err := d.worker.PlanAdopt(ctx, name)
			if errors.Is(err, recovery.ErrNothingToAdopt) && c.All {
				continue
			}
			if err != nil {
				return err
			}
			if !c.Yes {
				say(s.err, "%s is left alone (%s): %s.\n", name, plan.Refused.Reason, plan.Refused.Detail)
				for _, step := range plan.Steps {
					say(s.err, "  %s: %s\n", step.Where, step.Done)
				}
				sayln(s.err, "The deployment that used them so far must not go on: its recovery would be left out from now on.")
				if !ask(s, answers, "Is that meant? Type the store's name", name) {
					return errNotConfirmed
				}
			}
			if plan, err = d.worker.Adopt(ctx, name); err != nil {
				return err
			}
			done = append(done, plan)
		}
		return c.answer(s, done)
	})
}

func (c *adoptCmd) answer(s *session, done []recovery.Adoption) error {
	if c.JSON {
		return printJSON(s.out, done)
	}
	if len(done) == 0 {
		_, err := fmt.Fprintln(s.out, "nothing to adopt: journal and stores agree")
		return err
	}
	for _, plan := range done {
		if err := printSteps(s, false, plan.Steps); err != nil {
			return err
		}
	}
	return nil
}
