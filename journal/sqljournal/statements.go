package sqljournal

import (
	"strings"

	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/journal"
)

// statements are the texts that every SQL journal shares, made once for the
// tables' names. What a WHERE clause says about states comes from the
// transition table and from nowhere else.
type statements struct {
	Spelling
	words *strings.Replacer

	create, whyNot             string // S4
	prepare, decide, abort     string // S6, S7, presumed abort
	prepareAndDecide           string // S6 and S7 in one
	forbid                     string // ABORTED inserted when there is no record
	state, read                string
	finish, harden             string // S10
	writeNote, writeBranches   string
	identify, place            string
	stores, register, oneStore string
	rebind, sweep              string
	removable, final           string
	raiseHorizon, remove       string
	horizon, highWater, clock  string
	layout                     string

	lease leaseStatements
	step  stepStatements
}

// columns of a record as decode reads them; the branches are chosen by the caller.
const columns = `CAST(dat_txn AS text), state, dat_tx_time, created_ms, updated_ms, lease, fence, note, `

func newStatements(n Names, s Spelling) *statements {
	q := &statements{Spelling: s, words: strings.NewReplacer(
		"{journal}", n.Journal, "{meta}", n.Meta, "{store}", n.Store, "{lease}", n.Lease, "{step}", n.Step,
		"{uuid}", s.UUID, "{now}", s.Now, "{greatest}", s.Greatest, "{fence}", s.Fence, "{light}", s.Light,
		"{among}", s.Among, "{final}", inStates(finals()...), "{columns}", columns,
		"{share}", s.Rows.Share, "{hold}", s.Rows.Hold, "{seize}", s.Rows.Seize, "{touch}", s.Rows.Touch,
	)}
	q.commits()
	q.lists()
	q.registers()
	q.compacts()
	q.leases()
	q.steps()
	return q
}

func (q *statements) text(t string) string {
	t = q.words.Replace(t)
	if q.Param != nil {
		t = q.Param(t)
	}
	return t
}

// change is the one shape of a change of state: parameters $1 id, $2 now.
func (q *statements) change(to journal.State, set string, condition string) string {
	return q.text(`UPDATE {journal} SET state = ` + literal(to) + set +
		`, updated_ms = {greatest}(updated_ms + 1, CAST($2 AS bigint))
		WHERE ` + condition)
}

// expecting is the compare of every compare-and-set.
func expecting(to ...journal.State) string {
	var from []journal.State
	for _, s := range to {
		from = append(from, journal.Sources(s)...)
	}
	return ` AND ` + stateOfFound + inStates(from...)
}

// stateOfFound is the state of records that are found by their ids. It is written so
// that no index is known for it: on a young journal the planner took the one of open
// records, which in PostgreSQL keeps an entry of every record that was COMMITTED until
// the next vacuum, and each DONE read them all.
const stateOfFound = `state || '' `

func (q *statements) commits() {
	// S4. The fence is read here, in a later statement than the one that took
	// the shared lock: a reader who raised it in between is seen (reads.md).
	// The drift is judged inside the statement, by the journal's own clock.
	q.create = q.text(`INSERT INTO {journal}
		(dat_txn, state, dat_tx_time, branches, created_ms, updated_ms, lease, fence, note)
		SELECT CAST($1 AS {uuid}), ` + literal(journal.StateActive) + `,
			{greatest}(CAST($2 AS bigint), {fence} + 1), CAST($3 AS text),
			CAST($4 AS bigint), CAST($4 AS bigint), CAST($5 AS text), CAST($6 AS bigint), CAST($7 AS text)
		WHERE abs({now} - CAST($4 AS bigint)) <= CAST($8 AS bigint)
		ON CONFLICT (dat_txn) DO NOTHING
		RETURNING dat_tx_time`)
	q.whyNot = q.text(`SELECT {now}, (SELECT state FROM {journal} WHERE dat_txn = CAST($1 AS {uuid}))`)

	const one = `dat_txn = CAST($1 AS {uuid})`
	// A final time below the one S4 stamped would slip under the read fence.
	q.prepare = q.change(journal.StatePrepared,
		`, dat_tx_time = {greatest}(coalesce(dat_tx_time, 0), CAST($3 AS bigint))`, one+expecting(journal.StatePrepared))
	condition := one + expecting(journal.StateCommitted)
	if guard.Off(guard.Conditional) {
		condition = one
	}
	q.decide = q.change(journal.StateCommitted, ``, condition)
	// Both transitions in one statement: the record goes from where S6 finds it,
	// or has left it, to COMMITTED, and nobody can see it in between (docs/adr/0002).
	condition = one + expecting(journal.StatePrepared, journal.StateCommitted)
	if guard.Off(guard.Conditional) {
		condition = one
	}
	q.prepareAndDecide = q.change(journal.StateCommitted,
		`, dat_tx_time = {greatest}(coalesce(dat_tx_time, 0), CAST($3 AS bigint))`, condition)
	q.abort = q.change(journal.StateAborted, ``, one+expecting(journal.StateAborted))
	// It waits on the key for a lost S4 that is still committing.
	q.forbid = q.text(`INSERT INTO {journal} (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms)
		SELECT CAST($1 AS {uuid}), ` + literal(journal.StateAborted) + `, 0, '[]', CAST($2 AS bigint), CAST($2 AS bigint)
		WHERE true
		ON CONFLICT (dat_txn) DO NOTHING`)
	q.state = q.text(`SELECT state FROM {journal} WHERE ` + one)
	q.read = q.text(`SELECT {columns} branches FROM {journal} WHERE ` + one)
	q.finish = q.change(journal.StateDone, ``, `{among}`+expecting(journal.StateDone))
}

func (q *statements) lists() {
	annotate := func(set string) string {
		return q.text(`UPDATE {journal} SET note = CAST($2 AS text)` + set + `,
		updated_ms = {greatest}(updated_ms + 1, CAST($3 AS bigint))
		WHERE dat_txn = CAST($1 AS {uuid}) AND state = CAST($4 AS text) AND updated_ms = CAST($5 AS bigint)`)
	}
	q.writeNote = annotate(``)
	q.writeBranches = annotate(`, branches = CAST($6 AS text)`)
	q.harden = q.text(`UPDATE {meta} SET layout = layout`)
}

func (q *statements) registers() {
	q.identify = q.text(`SELECT CAST(id AS text), place, layout FROM {meta}`)
	q.place = q.text(`UPDATE {meta} SET place = CAST($1 AS text)`)
	q.stores = q.text(`SELECT name, place, store_id, sweeps FROM {store} ORDER BY name`)
	q.oneStore = q.text(`SELECT name, place, store_id, sweeps FROM {store} WHERE name = CAST($1 AS text)`)
	q.register = q.text(`INSERT INTO {store} (name, place, store_id, sweeps)
		SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS bigint) WHERE true
		ON CONFLICT (name) DO NOTHING`)
	q.rebind = q.text(`UPDATE {store} SET place = CAST($2 AS text), store_id = CAST($3 AS text),
		sweeps = {greatest}(sweeps, CAST($4 AS bigint))
		WHERE name = CAST($1 AS text) AND place = CAST($5 AS text) AND store_id = CAST($6 AS text)`)
	q.sweep = q.text(`UPDATE {store} SET sweeps = sweeps + 1
		WHERE name = CAST($1 AS text) AND sweeps = CAST($2 AS bigint) RETURNING sweeps`)
	q.layout = q.text(`SELECT layout FROM {meta}`)
}

func (q *statements) compacts() {
	q.removable = q.text(`SELECT {columns} {light} FROM {journal}
		WHERE state {final} AND updated_ms < CAST($1 AS bigint) ORDER BY updated_ms, dat_txn LIMIT CAST($2 AS bigint)`)
	q.final = q.text(`SELECT CAST(dat_txn AS text), coalesce(dat_tx_time, 0) FROM {journal}
		WHERE {among} AND ` + stateOfFound + `{final}`)
	q.raiseHorizon = q.text(`UPDATE {meta} SET horizon_ms = {greatest}(horizon_ms, CAST($1 AS bigint)),
		hlc = {greatest}(hlc, CAST($2 AS bigint))`)
	q.remove = q.text(`DELETE FROM {journal} WHERE {among} AND ` + stateOfFound + `{final}`)
	q.horizon = q.text(`SELECT horizon_ms FROM {meta}`)
	q.highWater = q.text(`SELECT {greatest}({greatest}(hlc, {fence}),
		coalesce((SELECT max(dat_tx_time) FROM {journal}), 0)) FROM {meta}`)
	q.clock = q.text(`SELECT {now}`)
}

func finals() []journal.State {
	var final []journal.State
	for _, s := range journal.States {
		if s.Final() {
			final = append(final, s)
		}
	}
	return final
}

// inStates writes literals, not parameters: the planner proves from them that
// a partial index may be used.
func inStates(states ...journal.State) string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = literal(s)
	}
	return `IN (` + strings.Join(words, ", ") + `)`
}

func literal(s journal.State) string { return `'` + string(s) + `'` }
