package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// events is the ClickHouse store.
type events struct{ *rig.ClickHouseDatabase }

// Way leads to the database.
func (e events) Way() string { return e.DSN() }

// Book is what each unit has left.
func (e events) Book(ctx context.Context) (rig.Book, error) {
	return e.ClickHouseDatabase.Book(ctx, `SELECT toString(dat_txn), source, count(), sum(value) FROM {db}.readings GROUP BY 1, 2`)
}

// Unfinished lists none: nobody asks.
func (e events) Unfinished(context.Context, []string) ([]string, error) { return nil, nil }

// Busy is false: nobody asks either.
func (e events) Busy(context.Context) (bool, error) { return false, nil }

// watch lets the databases themselves take down what no commit may do. Of one
// row, one transaction changes after the other: progress of a file moves in the
// order of its commits. And S7 sees every grant that came before it.
func (t *trial) watch(ctx context.Context) error {
	_, err := t.Stores["main"].Exec(ctx, `
		CREATE TABLE fallen (source text, was bigint, fence bigint);
		CREATE FUNCTION fall() RETURNS trigger LANGUAGE plpgsql AS
			$$BEGIN INSERT INTO fallen VALUES (NEW.source, OLD.fence, NEW.fence); RETURN NULL; END$$;
		CREATE TRIGGER fall AFTER UPDATE ON progress FOR EACH ROW WHEN (NEW.fence < OLD.fence) EXECUTE FUNCTION fall()`)
	if err != nil {
		return err
	}
	_, err = t.Journal.Exec(ctx, `
		CREATE TABLE late (lease text, fence bigint, granted bigint);
		CREATE FUNCTION lag() RETURNS trigger LANGUAGE plpgsql AS
			$$BEGIN INSERT INTO late SELECT name, NEW.fence, fence FROM dat_lease WHERE name = NEW.lease AND fence > NEW.fence; RETURN NULL; END$$;
		CREATE TRIGGER lag AFTER UPDATE ON dat_journal FOR EACH ROW WHEN (NEW.state = 'COMMITTED' AND OLD.state <> 'COMMITTED') EXECUTE FUNCTION lag()`)
	return err
}

// harm is what was taken down.
type harm struct {
	late   int // decided when a higher fence had been granted
	fallen int // committed behind a unit with a higher fence
}

func (t *trial) harm(ctx context.Context) (h harm, err error) {
	if h.fallen, err = t.Stores["main"].Int(ctx, `SELECT count(*) FROM fallen`); err != nil {
		return h, err
	}
	h.late, err = t.Journal.Int(ctx, `SELECT count(*) FROM late`)
	return h, err
}

// result is the table.
type result struct {
	harm

	struck     map[string]int
	fenced     int
	committed  int
	lines      int
	rows       rig.Audit // of both stores, by file and line
	strange    []string  // rows that carry another fence than their decision
	violations []string  // all of it
}

// audit compares what is in the stores with the files and with the journal.
func (t *trial) audit(ctx context.Context) (r result, err error) {
	r.struck, r.fenced, r.lines = t.struck, t.fenced, len(t.source.book)
	for _, verdict := range t.reported {
		if verdict == "committed" {
			r.committed++
		}
	}
	if r.harm, err = t.harm(ctx); err != nil {
		return r, err
	}
	if err := t.auditRows(ctx, &r); err != nil {
		return r, err
	}
	judged, err := t.Judge(ctx, t.reported)
	r.violations = slices.Concat(t.crashes, judged, r.rows.All(), r.strange)
	if r.late > 0 {
		r.violations = append(r.violations, fmt.Sprintf("%d decisions when a higher fence had been granted", r.late))
	}
	if r.fallen > 0 {
		r.violations = append(r.violations, fmt.Sprintf("%d commits behind a higher fence's", r.fallen))
	}
	return r, err
}

func (t *trial) auditRows(ctx context.Context, r *result) error {
	decided, err := t.Journal.Texts(ctx, `SELECT dat_txn || ' ' || substr(lease, 10) || ' ' || fence FROM dat_journal WHERE state = 'DONE' AND lease IS NOT NULL`)
	if err != nil {
		return err
	}
	main := t.Stores["main"]
	inMain, err := main.Book(ctx, `SELECT source, at::text, count(*), sum(value)::bigint FROM readings GROUP BY 1, 2`)
	if err != nil {
		return err
	}
	ofMain, err := main.Texts(ctx, `SELECT DISTINCT dat_txn || ' ' || source || ' ' || fence FROM readings`)
	if err != nil {
		return err
	}
	inEvents, err := t.events.Book(ctx, `SELECT source, toString(at), count(), sum(value) FROM {db}.readings GROUP BY 1, 2`)
	if err != nil {
		return err
	}
	ofEvents, err := t.events.Ask(ctx, `SELECT DISTINCT concat(toString(dat_txn), ' ', source, ' ', toString(fence)) FROM {db}.readings`)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(decided))
	for _, d := range decided {
		known[d] = true
	}
	for _, row := range append(ofMain, slices.Concat(ofEvents...)...) {
		if !known[row] {
			r.strange = append(r.strange, "rows of "+row+": no decision under that fence")
		}
	}
	for store, book := range map[string]rig.Book{"main": inMain, "events": inEvents} {
		a := rig.Compare(t.source.book, book)
		for _, to := range []struct{ all, found *[]string }{
			{&r.rows.Missing, &a.Missing}, {&r.rows.Unexpected, &a.Unexpected}, {&r.rows.Different, &a.Different},
		} {
			for _, line := range *to.found {
				*to.all = append(*to.all, store+": "+line)
			}
		}
	}
	return nil
}

func (r result) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, row := range []struct {
		name  string
		value any
	}{
		{"holders stopped past expiry, killed, cut off", fmt.Sprintf("%d, %d, %d", r.struck[stopped.name], r.struck[killed.name], r.struck[cut.name])},
		{"late commits that were fenced", r.fenced},
		{"units reported committed", r.committed},
		{"lines of the files", r.lines},
		{"lines missing, unexpected, different in the stores", fmt.Sprintf("%d, %d, %d", len(r.rows.Missing), len(r.rows.Unexpected), len(r.rows.Different))},
		{"rows under another fence than their decision", len(r.strange)},
		{"decisions under a fence below the highest", r.late},
		{"commits whose fence is below the one before", r.fallen},
		{"violations", len(r.violations)},
	} {
		_, _ = fmt.Fprintf(w, "%s\t%v\n", row.name, row.value) // to memory
	}
	_ = w.Flush() // a broken pipe ends the program by itself
	rig.List(r.violations)
}

func (r result) figures(board *rig.Board, rounds int) {
	board.AtLeast("pipeline_holders_stopped", r.struck[stopped.name], rounds)
	board.AtLeast("pipeline_holders_killed", r.struck[killed.name], rounds)
	board.AtLeast("pipeline_holders_cut_off", r.struck[cut.name], rounds)
	board.AtLeast("pipeline_late_commits_fenced", r.fenced, 1)
	board.AtLeast("pipeline_lines", r.lines, files*chunk)
	board.Exactly("pipeline_lines_missing", len(r.rows.Missing), 0)
	board.Exactly("pipeline_lines_unexpected", len(r.rows.Unexpected), 0)
	board.Exactly("pipeline_lines_different", len(r.rows.Different), 0)
	board.Exactly("pipeline_rows_under_another_fence", len(r.strange), 0)
	board.Exactly("pipeline_late_decisions", r.late, 0)
	board.Exactly("pipeline_fences_fallen", r.fallen, 0)
	board.Exactly("pipeline_violations", len(r.violations), 0)
}
