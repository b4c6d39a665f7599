package sqljournal

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Install implements branches.Installer: it makes the tables or upgrades them,
// one layout version at a time, all in one transaction that keeps others out.
func (j *Journal) Install(ctx context.Context) error {
	conn, err := j.pool.Take(ctx, true)
	if err != nil {
		return journal.Wrap("install journal", err)
	}
	defer conn.Release()
	return journal.Wrap("install journal", j.install(ctx, conn))
}

func (j *Journal) install(ctx context.Context, conn Conn) error {
	if err := conn.Ready(ctx); err != nil {
		return err
	}
	names, err := j.dialect.Names(ctx, conn)
	if err != nil {
		return err
	}
	q := newStatements(names, j.dialect.Spelling(names))
	place, err := j.dialect.Place(ctx, conn, names)
	if err != nil {
		return err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	names.ID, names.Place = quote(id.String()), quote(string(place))
	return conn.Work(ctx, func(run func(Stmt) (Result, error)) error {
		if q.Lock != "" {
			if _, err := run(Ask(q.Lock)); err != nil {
				return err
			}
		}
		found, err := layoutOf(run, q)
		if err != nil {
			return err
		}
		if found > Layout {
			return &journal.Layout{Found: found, Known: Layout}
		}
		for v := found + 1; v <= Layout; v++ {
			for _, text := range j.dialect.Layout(v, names) {
				if _, err := run(Do(text)); err != nil {
					return fmt.Errorf("layout %d: %w", v, err)
				}
			}
		}
		return nil
	})
}

// InstallSQL implements branches.Installer: what a DBA runs instead.
func (j *Journal) InstallSQL() string {
	names, err := j.dialect.Names(nil, nil) //nolint:staticcheck // SA1012: without a connection there is nothing to wait for
	if err != nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("BEGIN;\n")
	for v := 1; v <= Layout; v++ {
		for _, text := range j.dialect.Layout(v, names) {
			b.WriteString(strings.TrimSpace(text) + ";\n")
		}
	}
	b.WriteString("COMMIT;\n")
	return b.String()
}

// quote writes a string literal.
func quote(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }

var _ branches.Installer = (*Journal)(nil)
