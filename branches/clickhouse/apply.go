package clickhouse

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// run is one branch on its way into its tables.
type run struct {
	gid     branches.GID
	txn     branches.TxnID
	time    hlc.Time
	batches []*batch
	// decided: the rows must go in, whatever a limit of the user's profile says
	// of their partitions.
	decided bool
}

// batch is what goes into one table.
type batch struct {
	n         int // of the table in the branch: part of its query id
	name      tableName
	lists     []payloadTable // more than one where INSERTs named different columns
	first     int            // of lists in the branch: part of their tokens
	replacing bool
	told      bool // the log knows that it was torn
}

func newRun(gid branches.GID, txn branches.TxnID, time hlc.Time, p *payload) *run {
	r := &run{gid: gid, txn: txn, time: time}
	at := map[tableName]*batch{}
	for _, t := range p.tables {
		b := at[t.name]
		if b == nil {
			b = &batch{n: len(r.batches), name: t.name}
			at[t.name] = b
			r.batches = append(r.batches, b)
		}
		b.lists = append(b.lists, t)
	}
	first := 0
	for _, b := range r.batches {
		b.first = first
		first += len(b.lists)
	}
	return r
}

// complete tells how many lists of b are in the table if that many rows are.
// torn: the number is none that whole lists could make.
func (b *batch) complete(rows int) (lists int, torn bool) {
	sum := 0
	for i := range b.lists {
		if rows == sum {
			return i, false
		}
		sum += b.lists[i].rows()
	}
	return len(b.lists), rows != sum
}

// before is the number of rows of the lists in front of list k.
func (b *batch) before(k int) int {
	sum := 0
	for i := range k {
		sum += b.lists[i].rows()
	}
	return sum
}

// Finish is S9 from any process. nil is the marker that stands.
func (s *Store) Finish(ctx context.Context, ref branches.Ref) error { return s.finish(ctx, ref, false) }

// finish. untried: nobody has tried before, as far as this process knows.
func (s *Store) finish(ctx context.Context, ref branches.Ref, untried bool) error {
	p, err := decodePayload(ref.Payload)
	switch {
	case err != nil:
		return s.fail("finish branch", err)
	case ref.TxTime <= 0:
		return s.fail("finish branch", errNoTime)
	}
	r := newRun(ref.GID, ref.Txn, ref.TxTime, p)
	r.decided = true
	fate, err := s.apply(ctx, r, untried)
	switch {
	case err != nil:
		return s.fail("finish branch", err)
	case fate == branches.FateNever:
		return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Evidence: "a tombstone stands where the marker belongs"}
	}
	return nil
}

// apply brings every table to its rows and writes the marker. The fate it
// returns is what stands then: applied, or never.
func (s *Store) apply(ctx context.Context, r *run, untried bool) (branches.Fate, error) {
	if untried {
		fate, err := s.first(ctx, r)
		if err == nil && fate != branches.FateAbsent || err != nil && !again(ctx, err) {
			return fate, err
		}
	} else if fate, err := s.lookUp(ctx, r.txn); err != nil || fate != branches.FateAbsent {
		return fate, err
	}
	for _, b := range r.batches {
		fate, err := s.fill(ctx, r, b)
		if err != nil || fate != branches.FateAbsent {
			return fate, err
		}
	}
	s.reach(momentInserted)
	return s.mark(ctx, r.gid, r.txn, r.time)
}

// first is the first attempt of all: it counts in the marker's own statement (C1).
// After inserts that were acknowledged, all rows are all rows.
func (s *Store) first(ctx context.Context, r *run) (branches.Fate, error) {
	if err := s.insertEvery(ctx, r); err != nil {
		return branches.FateUnknown, err
	}
	return s.markWhole(ctx, r)
}

// insertEvery inserts every list of every table.
func (s *Store) insertEvery(ctx context.Context, r *run) error {
	for _, b := range r.batches {
		b.replacing = s.mergesRows(ctx, b)
		if err := s.insertAll(ctx, r, b); err != nil {
			return err
		}
	}
	return nil
}

// markWhole writes the marker where every table holds its rows. FateAbsent: one
// does not.
func (s *Store) markWhole(ctx context.Context, r *run) (branches.Fate, error) {
	s.reach(momentInserted)
	var whole []string
	for _, b := range r.batches {
		if !b.replacing && !guard.Off(guard.Whole) {
			whole = append(whole, b.holds(r.txn, b.before(len(b.lists))))
		}
	}
	return s.mark(ctx, r.gid, r.txn, r.time, whole...)
}

// holds is the condition that the table has that many rows of the unit.
func (b *batch) holds(txn branches.TxnID, rows int) string {
	return fmt.Sprintf("(SELECT count() FROM %s WHERE dat_txn=%s)=%d", b.name.quoted(), literalTxn(txn), rows)
}

// rounds bounds the tries of one call. What is not done by then is tried again by
// the caller, with its own patience.
const rounds = 20

// fill brings one table to its rows. It returns FateAbsent when they are there,
// and otherwise the fate that another has written meanwhile.
func (s *Store) fill(ctx context.Context, r *run, b *batch) (branches.Fate, error) {
	if b.replacing = s.mergesRows(ctx, b); b.replacing {
		return branches.FateAbsent, s.insertAll(ctx, r, b)
	}
	var last error
	fresh := false
	var suspect *sighting // a torn insert, seen once
	for range rounds {
		if err := s.quiet(ctx, r.gid, s.opts.Patience); err != nil {
			return branches.FateUnknown, err
		}
		s.reach(momentQuiet)
		seen, err := s.count(ctx, b.name, r.txn)
		if err != nil || seen.fate != branches.FateAbsent {
			return seen.fate, err
		}
		done, torn := b.complete(seen.rows)
		switch {
		case !torn && done == len(b.lists):
			return branches.FateAbsent, nil
		case !torn:
			suspect = nil
			s.reach(momentCounted)
			last = s.insert(ctx, r, b, done, fresh)
			// An insert that left nothing and no error was taken for a repetition.
			fresh = true
		case !guard.Off(guard.Twice) && (suspect == nil || !suspect.same(seen)):
			// It may be an insert that began after the server was quiet (C5).
			suspect = &seen
			continue
		default:
			suspect, fresh = nil, true
			s.reach(momentCounted)
			last = s.repair(ctx, r, b, seen)
		}
		if !again(ctx, last) {
			return branches.FateUnknown, last
		}
	}
	return branches.FateUnknown, s.busy("insert rows", "table "+b.name.String()+" does not come to its rows", last)
}

// again reports whether another round may end better than with err.
func again(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return err == nil
	}
	if own, ok := errors.AsType[*branches.Error](err); ok {
		return own.Kind() == branches.Transient && !own.ByHand
	}
	return classify(err) == branches.Transient
}

// mergesRows reports whether a table's rows cannot be counted, and need not be.
func (s *Store) mergesRows(ctx context.Context, b *batch) bool {
	if !s.opts.Replacing {
		return false
	}
	t, err := s.table(ctx, b.name)
	return err == nil && s.replaces(t)
}

// insertAll inserts every list, each under its condition.
func (s *Store) insertAll(ctx context.Context, r *run, b *batch) error {
	for k := range b.lists {
		if err := s.insert(ctx, r, b, k, false); err != nil {
			return err
		}
	}
	return nil
}

// insert inserts list k where the lists before it are in the table and nothing
// else of the unit is, and no marker stands (C1).
func (s *Store) insert(ctx context.Context, r *run, b *batch, k int, fresh bool) error {
	list := &b.lists[k]
	o := options{settings: writes(r.gid)}
	text, tables, err := s.load(s.insertText(r, b, k), list)
	if err != nil {
		return err
	}
	o.external = tables
	o.settings["insert_deduplication_token"] = r.token(b, k, fresh)
	o.settings["max_insert_threads"] = 1
	if r.decided {
		o.settings["max_partitions_per_insert_block"] = 0
	}
	if b.replacing {
		o.settings["optimize_on_insert"] = 0
	}
	err = s.exclusive(ctx, string(r.gid)+":"+strconv.Itoa(b.n), func(id string) error {
		o.id = id
		if r.decided {
			return s.errands.run(ctx, s.opts.Patience, func(ctx context.Context) error { return s.exec(ctx, text, o) })
		}
		return s.exec(ctx, text, o)
	})
	return s.vanished(b.name, r.txn, err)
}

// token of an insert. Once rows were deleted, or an insert was swallowed, the
// server's memory of the old one would swallow the rows (C4). It is random and
// not counted: a worker does not know how many there were before it.
func (r *run) token(b *batch, k int, fresh bool) string {
	token := string(r.gid) + ":" + strconv.Itoa(b.first+k)
	if fresh && !guard.Off(guard.Token) {
		token += ":" + rand.Text()
	}
	return token
}

func (s *Store) insertText(r *run, b *batch, k int) string {
	list := &b.lists[k]
	into := make([]string, 0, len(list.columns)+2)
	from := make([]string, 0, len(list.columns)+2)
	for i, c := range list.columns {
		into, from = append(into, quoteName(c.name)), append(from, externalColumn(i))
	}
	into = append(into, columnTxn, columnTime)
	from = append(from, literalTxn(r.txn), literalInt(int64(r.time)))
	text := fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s",
		b.name.quoted(), strings.Join(into, ","), strings.Join(from, ","), s.source(list))
	var conditions []string
	if !b.replacing {
		conditions = append(conditions, b.holds(r.txn, b.before(k)))
	}
	if !guard.Off(guard.MarkerInside) {
		conditions = append(conditions, s.noMarker(r.txn))
	}
	if len(conditions) > 0 && !guard.Off(guard.Inside) {
		text += " WHERE " + strings.Join(conditions, " AND ")
	}
	return text
}
