package drevo

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Layout is the version of the nodes that this package writes.
const Layout = 1

// Install implements branches.Installer: it makes the journal's own node, and the
// graph's identity where nobody has yet, in one transaction.
func (j *Journal) Install(ctx context.Context) error {
	return journal.Wrap("install journal", j.install(ctx))
}

func (j *Journal) install(ctx context.Context) error {
	release, err := j.places.Take(ctx, true)
	if err != nil {
		return err
	}
	defer release()
	id, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	return j.noGraph(j.write(ctx, func(tx *bolt.Tx) error {
		place, err := j.graph.Identify(ctx, tx)
		if err != nil {
			return err
		}
		rows, err := tx.Run(ctx, j.words.meta, j.metaParams(nil))
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			meta, err := metaOf(rows, nil)
			switch {
			case err != nil:
				return err
			case meta.layout != Layout:
				return &journal.Layout{Found: meta.layout, Known: Layout}
			}
			return errUnchanged
		}
		_, err = tx.Run(ctx, j.words.createMeta, map[string]any{"props": map[string]any{
			"title": j.words.metaTitle(), "id": id.String(), "place": string(place), "layout": int64(Layout),
			"horizon_ms": int64(0), "hlc": int64(0), "fence": int64(0), "beat": int64(0),
		}})
		return err
	}))
}

// InstallSQL implements branches.Installer: the Cypher that a DBA runs instead,
// in one transaction. Each call gives the journal another id.
func (j *Journal) InstallSQL() string {
	graph, err := uuid.NewRandom()
	if err != nil {
		return ""
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "// in graph %s, as one transaction: BEGIN … COMMIT\n", j.graph.Name())
	fmt.Fprintf(&b, "MERGE (g:DatGraph {title: 'DatGraph'}) ON CREATE SET g.id = '%s';\n", graph)
	fmt.Fprintf(&b, "MATCH (g:DatGraph {title: 'DatGraph'}) CREATE (m:%[1]s {title: '%[1]s', id: '%[2]s', place: 'drevo:' + g.id + '/%[3]s', layout: %[4]d, horizon_ms: 0, hlc: 0, fence: 0, beat: 0});\n",
		j.words.metaLabel, id, j.graph.Name(), Layout)
	return b.String()
}

var _ branches.Installer = (*Journal)(nil)
