package drevo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
)

// manyRecords is from when on compaction is worth a word: inside a transaction
// drevo finds a node by looking at all of them.
const manyRecords = 100_000

// Examine implements branches.Examiner: whether the journal has its graph for
// itself, and how much drevo has to look through for every change of a record.
func (j *Journal) Examine(ctx context.Context) ([]branches.Finding, error) {
	var list []branches.Finding
	err := j.with(ctx, func() error {
		for _, look := range []func(context.Context) (branches.Finding, error){j.examineFence, j.examineStrangers, j.examineSize} {
			finding, err := look(ctx)
			if err != nil {
				return err
			}
			list = append(list, finding)
		}
		return nil
	})
	return list, journal.Wrap("examine journal", err)
}

// examineFence: while a transaction is prepared in the graph, nothing can be decided.
func (j *Journal) examineFence(ctx context.Context) (branches.Finding, error) {
	rows, err := j.graph.Read(ctx, `CALL drevo.tx.listPrepared() YIELD gid RETURN gid`, nil)
	if err != nil {
		return branches.Finding{}, err
	}
	f := branches.Finding{Check: "journal fence", Text: "nothing is prepared in the journal's graph"}
	if len(rows) > 0 {
		gids := make([]string, len(rows))
		for i, row := range rows {
			gids[i] = asText(row[0])
		}
		f.Severity = branches.SeverityError
		f.Text = "prepared in the journal's graph, which can write nothing meanwhile: " + strings.Join(gids, ", ")
		f.Way = "resolve it, and keep whoever prepared it out of this graph"
	}
	return f, nil
}

// examineStrangers: every write beside the journal's makes one of its own fail and
// run again.
func (j *Journal) examineStrangers(ctx context.Context) (branches.Finding, error) {
	rows, err := j.graph.Read(ctx, `MATCH (n) RETURN labels(n), count(n)`, nil)
	if err != nil {
		return branches.Finding{}, err
	}
	others := 0
	for _, row := range rows {
		labels, _ := row[0].([]any)
		if len(labels) > 0 && slices.Contains(j.words.labels(), asText(labels[0])) { // the first is a node's kind
			continue
		}
		n, err := asInt[int](row[1])
		if err != nil {
			return branches.Finding{}, err
		}
		others += n
	}
	f := branches.Finding{Check: "journal graph", Text: "graph " + j.graph.Name() + " holds nothing but the journal"}
	if others > 0 {
		f.Severity = branches.SeverityWarning
		f.Text = fmt.Sprintf("graph %s holds %d nodes that are not the journal's", j.graph.Name(), others)
		f.Way = "give the journal a graph of its own: every write beside it makes its transactions fail and run again"
	}
	return f, nil
}

func (j *Journal) examineSize(ctx context.Context) (branches.Finding, error) {
	row, err := bolt.Only(j.graph.Read(ctx, j.words.size, nil))
	if err != nil {
		return branches.Finding{}, err
	}
	n, err := asInt[int](row[0])
	f := branches.Finding{Check: "journal size", Text: fmt.Sprintf("%d records", n)}
	if n > manyRecords {
		f.Severity = branches.SeverityWarning
		f.Text += ", and drevo looks at all of them for every change of one"
		f.Way = "a smaller retain, and compaction (rhizorecover run) that keeps up"
	}
	return f, err
}

var _ branches.Examiner = (*Journal)(nil)
