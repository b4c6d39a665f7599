package drevo

import (
	"net/url"
	"slices"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Suffixes of the labels beside the records' own. They are format.
const (
	payloadSuffix = "_payload"
	metaSuffix    = "_meta"
	storeSuffix   = "_store"
	leaseSuffix   = "_lease"
	stepSuffix    = "_step"
)

var suffixes = []string{payloadSuffix, metaSuffix, storeSuffix, leaseSuffix, stepSuffix}

// ownSuffix: a journal with such a label would take another's nodes for its records.
func ownSuffix(label string) bool {
	return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(label, s) })
}

// words are the labels of one journal, and the statements written with them. A
// title names its node among all nodes of the graph, whatever their labels.
type words struct {
	record, payload, metaLabel, store, lease, step string

	find, read, create, change   string
	swap, createPayload          string
	scan, scanned                string
	finishLate, finish           string
	removable, removing          string
	remove, removePayloads       string
	highest, size                string
	meta, createMeta, changeMeta string
	stores, findStore            string
	createStore, changeStore     string

	findLease, createLease, changeLease string
	findLeases, renewLeases, listLeases string
	findStep, createStep, changeStep    string
	findSteps, renewSteps, listSteps    string
	idleSteps, removeSteps              string
}

// columns of a record as decode reads them. Its payloads are elsewhere, so that
// neither a listing nor a change of state moves them.
const columns = `j.dat_txn, j.state, j.dat_tx_time, j.created_ms, j.updated_ms, j.lease, j.fence, j.note, j.branches, j.payloads`

// metaColumns are the journal's own node as decodeMeta reads it.
const metaColumns = `m.id, m.place, m.layout, m.horizon_ms, m.hlc, m.fence, m.beat`

// leaseColumns and stepColumns are a lease and a step as decodeLease and decodeStep
// read them: the server's clock comes with them.
const (
	leaseColumns = `l.name, l.holder, l.token, l.fence, l.expires_at, timestamp()`
	stepColumns  = `s.execution, s.label, s.input, s.holder, s.token, s.recorded, s.expires_at, s.created_ms, s.updated_ms, timestamp()`
)

func newWords(label string) words {
	w := words{
		record: label, payload: label + payloadSuffix, metaLabel: label + metaSuffix, store: label + storeSuffix,
		lease: label + leaseSuffix, step: label + stepSuffix,
	}
	w.keeps()
	text := strings.NewReplacer(
		"{j}", "(j:"+w.record+" {title: $title})", "{all}", "(j:"+w.record+")",
		"{p}", "(p:"+w.payload+" {title: $payload})", "{allPayloads}", "(p:"+w.payload+")",
		"{m}", "(m:"+w.metaLabel+" {title: $meta})",
		"{s}", "(s:"+w.store+" {title: $title})", "{allStores}", "(s:"+w.store+")",
		"{record}", w.record, "{payload}", w.payload, "{metaLabel}", w.metaLabel, "{store}", w.store,
		"{columns}", columns, "{metaColumns}", metaColumns,
	).Replace
	w.find = text(`MATCH {j} RETURN {columns}`)
	w.read = text(`MATCH {j} OPTIONAL MATCH {p} RETURN {columns}, p.payloads`)
	w.create = text(`CREATE (j:{record} $props)`)
	w.createPayload = text(`CREATE (p:{payload} {title: $payload, payloads: $payloads})`)
	w.change = text(`MATCH {j} SET j += $props RETURN count(j)`)
	w.swap = text(`MATCH {j} WHERE j.state IN $from AND j.updated_ms < $now AND j.dat_tx_time <= $time
		SET j += $props RETURN count(j)`)
	w.scan = text(`MATCH {all} WHERE j.state IN $states`)
	w.scanned = text(` RETURN {columns} ORDER BY j.dat_txn LIMIT $limit`)
	// Together they set updated_ms to the greater of now and one more than it was. A
	// state in the pattern spares drevo a look at the titles of the others.
	w.finish = text(`MATCH (j:{record} {state: $from}) WHERE j.updated_ms < $now AND j.title IN $titles
		SET j += $done, j.updated_ms = $now RETURN count(j)`)
	w.finishLate = text(`MATCH (j:{record} {state: $from}) WHERE j.updated_ms >= $now AND j.title IN $titles
		SET j += $done, j.updated_ms = j.updated_ms + 1 RETURN count(j)`)
	w.removable = text(`MATCH {all} WHERE j.state IN $states AND j.updated_ms < $before
		RETURN {columns} ORDER BY j.updated_ms, j.dat_txn LIMIT $limit`)
	w.removing = text(`MATCH {all} WHERE j.state IN $states AND j.title IN $titles RETURN j.title, j.dat_txn, j.dat_tx_time, j.payloads`)
	w.remove = text(`MATCH {all} WHERE j.title IN $titles DETACH DELETE j`)
	w.removePayloads = text(`MATCH {allPayloads} WHERE p.title IN $payloads DETACH DELETE p`)
	w.highest = text(`MATCH {all} RETURN max(j.dat_tx_time)`)
	w.size = text(`MATCH {all} RETURN count(j)`)
	w.meta = text(`MATCH {m} RETURN {metaColumns}, timestamp()`)
	w.createMeta = text(`CREATE (m:{metaLabel} $props)`)
	w.changeMeta = text(`MATCH {m} SET m += $props RETURN count(m)`)
	w.stores = text(`MATCH {allStores} RETURN s.name, s.place, s.store_id, s.sweeps ORDER BY s.name`)
	w.findStore = text(`MATCH {s} RETURN s.name, s.place, s.store_id, s.sweeps`)
	w.createStore = text(`CREATE (s:{store} $props)`)
	w.changeStore = text(`MATCH {s} SET s += $props RETURN count(s)`)
	return w
}

// keeps makes the statements of leases and steps.
func (w *words) keeps() {
	text := strings.NewReplacer(
		"{l}", "(l:"+w.lease+" {title: $title})", "{allLeases}", "(l:"+w.lease+")", "{lease}", w.lease,
		"{s}", "(s:"+w.step+" {title: $title})", "{allSteps}", "(s:"+w.step+")", "{step}", w.step,
		"{leaseColumns}", leaseColumns, "{stepColumns}", stepColumns,
	).Replace
	w.findLease = text(`MATCH {l} RETURN {leaseColumns}`)
	w.createLease = text(`CREATE (l:{lease} $props)`)
	w.changeLease = text(`MATCH {l} SET l += $props RETURN count(l)`)
	w.findLeases = text(`MATCH {allLeases} WHERE l.title IN $titles RETURN {leaseColumns}`)
	w.renewLeases = text(`MATCH {allLeases} WHERE l.title IN $titles SET l.expires_at = $until RETURN count(l)`)
	w.listLeases = text(`MATCH {allLeases} RETURN {leaseColumns} ORDER BY l.name`)
	w.findStep = text(`MATCH {s} RETURN {stepColumns}, s.value`)
	w.createStep = text(`CREATE (s:{step} $props)`)
	w.changeStep = text(`MATCH {s} SET s += $props RETURN count(s)`)
	w.findSteps = text(`MATCH {allSteps} WHERE s.title IN $titles RETURN {stepColumns}`)
	w.renewSteps = text(`MATCH {allSteps} WHERE s.title IN $titles SET s.expires_at = $until RETURN count(s)`)
	w.listSteps = text(`MATCH {allSteps} WHERE s.execution > $execution OR s.execution = $execution
		AND (s.label > $label OR s.label = $label AND s.input > $input)
		RETURN {stepColumns} ORDER BY s.execution, s.label, s.input LIMIT $limit`)
	w.idleSteps = text(`MATCH {allSteps} WHERE s.updated_ms < $before AND (s.recorded OR s.expires_at <= $now)
		RETURN s.title ORDER BY s.updated_ms LIMIT $limit`)
	w.removeSteps = text(`MATCH {allSteps} WHERE s.title IN $titles DETACH DELETE s`)
}

// labels are those of the nodes that may be in the journal's graph.
func (w *words) labels() []string {
	return []string{w.record, w.payload, w.metaLabel, w.store, w.lease, w.step, bolt.IdentityLabel}
}

func (w *words) title(txn branches.TxnID) string        { return w.record + ":" + txn.String() }
func (w *words) payloadTitle(txn branches.TxnID) string { return w.payload + ":" + txn.String() }
func (w *words) metaTitle() string                      { return w.metaLabel }
func (w *words) storeTitle(name string) string          { return w.store + ":" + name }
func (w *words) leaseTitle(name string) string          { return w.lease + ":" + name }

// stepTitle joins what may hold any letter, the one that joins it too.
func (w *words) stepTitle(k journal.StepKey) string {
	return w.step + ":" + url.PathEscape(k.Execution) + "/" + url.PathEscape(k.Label) + "/" + url.PathEscape(k.Input)
}

// texts are states as parameters.
func texts(states ...journal.State) []any {
	list := make([]any, len(states))
	for i, s := range states {
		list[i] = string(s)
	}
	return list
}

func finals() []journal.State {
	return slices.DeleteFunc(slices.Clone(journal.States), func(s journal.State) bool { return !s.Final() })
}
