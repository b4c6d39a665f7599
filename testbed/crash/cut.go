package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/rhizodat/rhizodat-go/internal/cutproxy"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// cut is a request whose connection is lost with its reply.
type cut struct {
	request string
	store   string // whose connection it is
	match   cutproxy.Match
	work    []string
	split   bool
	spoil   string // a store whose PREPARE is answered with ROLLBACK
	busy    bool   // the connection is cut when the backend is at its 3 s
}

// busyTables are triggers that keep a backend busy for 3 s: at the end of S3's
// SET CONSTRAINTS, and (amount 3001) not before COMMIT itself.
const busyTables = `
	CREATE TABLE late (n int);
	CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_sleep(3); RETURN NULL; END $$;
	CREATE FUNCTION defer() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN SET CONSTRAINTS ALL DEFERRED; INSERT INTO late VALUES (1); RETURN NULL; END $$;
	CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON ledger DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.amount = 3000) EXECUTE FUNCTION dawdle();
	CREATE CONSTRAINT TRIGGER defer AFTER INSERT ON ledger DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.amount = 3001) EXECUTE FUNCTION defer();
	CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION dawdle();`

// insertBusy writes a row that a trigger makes last.
func insertBusy(amount string) string {
	return "store:a INSERT INTO public.ledger VALUES ('" + plan.Txn + "', 1, " + amount + ")"
}

// commits is the COMMIT of a unit with one writing branch: alone, or behind S3
// in one message.
func commits(sql string) bool {
	return strings.EqualFold(sql, "commit") || strings.HasPrefix(sql, "SET CONSTRAINTS") && strings.HasSuffix(sql, ";COMMIT")
}

// toState is the journal's change of a record's state.
func toState(state string) cutproxy.Match { return cutproxy.Contains("SET state = '" + state + "'") }

func allCuts() []cut {
	two := shapeTwo.work()
	return []cut{
		{request: "PREPARE TRANSACTION", store: "a", match: cutproxy.Prefix("PREPARE TRANSACTION"), work: two},
		{request: "COMMIT PREPARED", store: "a", match: cutproxy.Prefix("COMMIT PREPARED"), work: two},
		{request: "COMMIT", store: "a", match: commits, work: shapeOne.work()},
		{request: "COMMIT beside a reader", store: "a", match: commits, work: append(shapeOne.work(), readC)},
		{request: "COMMIT, busy before it", store: "a", match: commits, work: []string{insertBusy("3000")}, busy: true},
		{request: "COMMIT, busy in it", store: "a", match: commits, work: []string{insertBusy("3001")}, busy: true},
		{request: "S4 ACTIVE", store: rig.JournalName, match: cutproxy.Contains("'ACTIVE',"), work: two},
		{request: "S6+S7 COMMITTED", store: rig.JournalName, match: toState("COMMITTED"), work: two},
		{request: "S6 PREPARED", store: rig.JournalName, match: toState("PREPARED"), work: two, split: true},
		{request: "S7 COMMITTED", store: rig.JournalName, match: toState("COMMITTED"), work: two, split: true},
		{request: "S10 DONE", store: rig.JournalName, match: toState("DONE"), work: two},
		{request: "ABORTED", store: rig.JournalName, match: toState("ABORTED"), work: two, spoil: "b"},
	}
}

// manner is how a connection is cut.
type manner string

// The manners. The first is a cable that breaks behind the request; the second a
// network that keeps the server believing in its client; in the third the
// request is lost as well, which the client cannot tell from the others.
const (
	mannerAfter  manner = "reply lost"
	mannerHeld   manner = "reply lost, server unaware"
	mannerBefore manner = "request lost"
	mannerBusy   manner = "reply lost, backend busy"
)

func (m manner) arm(p *cutproxy.Proxy, match cutproxy.Match) *cutproxy.Rule {
	switch m {
	case mannerAfter:
		return p.CutAfter(match, cutproxy.Times(1))
	case mannerHeld:
		return p.CutAfter(match, cutproxy.Times(1), cutproxy.HoldServer())
	case mannerBefore:
		return p.CutBefore(match, cutproxy.Times(1))
	case mannerBusy:
		return p.Swallow(match, cutproxy.Times(1)) // and cut later
	}
	panic("no such manner: " + string(m))
}

// cutRow is a line of the table.
type cutRow struct {
	cut     cut
	manner  manner
	hits    int
	verdict string
	fate    rig.Fate
}

// cuts loses the reply of every kind of request.
func cuts(ctx context.Context, h *house) error {
	manners := []manner{mannerAfter, mannerHeld, mannerBefore}
	var rows []*cutRow
	for _, c := range allCuts() {
		if c.busy {
			rows = append(rows, &cutRow{cut: c, manner: mannerBusy})
			continue
		}
		for _, m := range manners {
			rows = append(rows, &cutRow{cut: c, manner: m})
		}
	}
	queue := make(chan *cutRow, len(rows))
	for _, r := range rows {
		queue <- r
	}
	close(queue)
	var mu sync.Mutex
	var found []string
	const lanes = 3
	errs := make([]error, lanes)
	var wg sync.WaitGroup
	for i := range lanes {
		wg.Go(func() {
			l, err := h.lane(ctx, kindOfLane{})
			if err == nil {
				_, err = l.Stores["a"].Exec(ctx, busyTables)
			}
			for row := range queue {
				if err != nil {
					break
				}
				var s *sight
				if s, err = row.run(ctx, l); err == nil {
					mu.Lock()
					found = append(found, s.violations...)
					mu.Unlock()
				}
			}
			errs[i] = err
		})
	}
	wg.Wait()
	missed := printCuts(rows)
	h.board.AtLeast("cut_cells", len(rows), len(rows))
	h.board.Exactly("cut_cells_not_hit", missed, 0)
	h.violations("cut", found)
	return errors.Join(errs...)
}

func (r *cutRow) run(ctx context.Context, l *lane) (*sight, error) {
	db := l.Journal
	if r.cut.store != rig.JournalName {
		db = l.Stores[r.cut.store]
	}
	proxy, err := cutproxy.Listen(ctx, db.Addr())
	if err != nil {
		return nil, err
	}
	defer func() { _ = proxy.Close() }() // its listener is all that could fail
	rule := r.manner.arm(proxy, r.cut.match)
	cutLater := make(chan error, 1)
	go func() { cutLater <- r.cutWhenBusy(ctx, proxy, rule, db) }()
	s, err := l.run(ctx, cell{
		name: r.cut.request + ", " + string(r.manner),
		plan: plan.Plan{Work: r.cut.work, Split: r.cut.split, Spoil: r.cut.spoil},
		ways: map[string]string{r.cut.store: proxy.DSN(db.DSN)},
	})
	if err := errors.Join(err, <-cutLater); err != nil {
		return nil, err
	}
	r.hits, r.verdict, r.fate = rule.Hits(), s.verdict(), s.fate
	return s, nil
}

// cutWhenBusy cuts the connections when the backend has come to its trigger.
func (r *cutRow) cutWhenBusy(ctx context.Context, proxy *cutproxy.Proxy, rule *cutproxy.Rule, db *rig.Database) error {
	if !r.cut.busy {
		return nil
	}
	select {
	case <-rule.Hit():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := rig.Await(ctx, "busy backend", func() (bool, error) {
		n, err := db.Int(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`)
		return n > 0, err
	})
	proxy.Drop()
	return err
}

func printCuts(rows []*cutRow) (missed int) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "REQUEST\tCUT\tREPORTED\tTOOK EFFECT\tHITS") // to memory
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", r.cut.request, r.manner, r.verdict, r.fate, r.hits)
		if r.hits == 0 {
			missed++
		}
	}
	_ = w.Flush() // a broken pipe ends the program by itself
	return missed
}
