package main

import (
	"context"
	"fmt"

	recovery "github.com/rhizodat/rhizodat-go/recover"
)

type initCmd struct {
	Print bool `help:"Print the SQL for a DBA to run instead, and connect to nothing. The first pass registers the stores."`
	jsonFlag
}

// Run makes the tables. It is idempotent.
func (c *initCmd) Run(s *session) error {
	return s.open(nil, func(ctx context.Context, d *deployment) error {
		if c.Print {
			_, err := fmt.Fprint(s.out, d.worker.InstallSQL())
			return err
		}
		steps, err := d.worker.Install(ctx)
		if printErr := printSteps(s, c.JSON, steps); err == nil {
			err = printErr
		}
		return err
	})
}

func printSteps(s *session, asJSON bool, steps []recovery.Step) error {
	if asJSON {
		return printJSON(s.out, steps)
	}
	for _, step := range steps {
		if _, err := fmt.Fprintf(s.out, "%s: %s\n", step.Where, step.Done); err != nil {
			return err
		}
	}
	return nil
}
