package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// world is a journal, and what it must hold: 3 nodes that acquire one lease over
// and over, are paused with a commit or a record in their hands, and crash.
type world struct {
	*rapid.T
	test    *testing.T
	journal journal.Journal
	session journal.Session
	leases  journal.Leases
	steps   journal.Steps
	raw     *sql.DB
	name    string
	did     map[string]int

	fence   journal.Fence // the highest granted
	holder  string
	live    bool
	owners  map[journal.Fence]string // I1: token of each grant
	grants  []journal.Lease          // in the hands of nodes
	commits []journal.Decision       // sent, and not delivered yet

	claimed  bool
	claim    journal.Step
	lapsed   bool
	claims   []journal.StepRecord // in the hands of nodes
	recorded []byte               // nil: nothing is
}

const modelTTL = time.Hour

func (w *world) key() journal.StepKey {
	return journal.StepKey{Execution: w.name, Label: "step", Input: "0"}
}

func (w *world) token() string {
	txn, err := branches.NewTxnID()
	if err != nil {
		w.Fatal(err)
	}
	return txn.String()
}

func (w *world) expect(doing string, won bool, got journal.Answer, err error) {
	if err != nil || got != journal.AnswerOf(won, nil) {
		w.Fatalf("%s: %v, %v, want won %t", doing, got, err, won)
	}
	w.did[fmt.Sprintf("%s %v", doing, got)]++
}

func (w *world) acquire(t *rapid.T) {
	if len(w.owners) >= 12 { // 3 nodes, 4 generations
		return
	}
	node := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node")
	r := journal.LeaseRequest{Name: w.name, Holder: node, Token: w.token(), TTL: modelTTL}
	won := w.fence == 0 || w.holder == "" || !w.live || w.holder == node
	got, answer, err := w.leases.Acquire(w.test.Context(), r)
	w.expect("acquire", won, answer, err)
	if !won {
		return
	}
	if got.Fence != w.fence+1 || w.owners[got.Fence] != "" {
		w.Fatalf("I1, I2: fence %v was granted after %v", got.Fence, w.fence)
	}
	w.fence, w.holder, w.live = got.Fence, node, true
	w.owners[got.Fence] = got.Token
	w.grants = append(w.grants, got)
}

// grant draws one that some node has ever had in its hands.
func (w *world) grant(t *rapid.T) (journal.Lease, bool) {
	if len(w.grants) == 0 {
		return journal.Lease{}, false
	}
	return rapid.SampledFrom(w.grants).Draw(t, "grant"), true
}

func (w *world) renew(t *rapid.T) {
	g, ok := w.grant(t)
	if !ok {
		return
	}
	got, err := w.leases.Renew(w.test.Context(), []journal.LeaseRenewal{{Name: g.Name, Token: g.Token, Fence: g.Fence, TTL: modelTTL}})
	if err != nil {
		w.Fatal(err)
	}
	w.expect("renew", g.Fence == w.fence && w.holder != "" && w.live, got[0], nil)
}

func (w *world) release(t *rapid.T) {
	g, ok := w.grant(t)
	if !ok {
		return
	}
	won := g.Fence == w.fence && w.holder != ""
	got, err := w.leases.Release(w.test.Context(), g)
	w.expect("release", won, got, err)
	if won {
		w.holder = ""
	}
}

// expire: time passes. A lease that lapses and a claim that does are told apart.
func (w *world) expire(t *rapid.T) {
	if rapid.Bool().Draw(t, "the lease") {
		exec(w.test, w.raw, `UPDATE dat_lease SET expires_at = 0 WHERE name = ?`, w.name)
		w.live = false
	} else {
		exec(w.test, w.raw, `UPDATE dat_step SET expires_at = 0 WHERE execution = ?`, w.name)
		w.lapsed = true
	}
}

// crash: a node forgets what it held. What it has sent is still under way.
func (w *world) crash(t *rapid.T) {
	if len(w.grants) > 0 {
		i := rapid.IntRange(0, len(w.grants)-1).Draw(t, "grant")
		w.grants = append(w.grants[:i:i], w.grants[i+1:]...)
	}
}

// send: a commit is on its way, under the fence of that moment. It may also
// record the step.
func (w *world) send(t *rapid.T) {
	g, ok := w.grant(t)
	if !ok || len(w.commits) > 6 {
		return
	}
	rec := journal.Record{Txn: branches.TxnID{}, TxTime: 1, Lease: g.Name, Fence: g.Fence}
	var err error
	if rec.Txn, err = branches.NewTxnID(); err != nil {
		w.Fatal(err)
	}
	if err := w.session.Create(w.test.Context(), &rec); err != nil {
		w.Fatal(err)
	}
	d := journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime, WithPrepare: true, Lease: g.Name, Fence: g.Fence}
	if len(w.claims) > 0 && rapid.Bool().Draw(t, "with a step") {
		r := rapid.SampledFrom(w.claims).Draw(t, "claim")
		r.Value = []byte(rec.Txn.String())
		d.Step = &r
	}
	w.commits = append(w.commits, d)
}

// deliver: a commit arrives, after a pause of any length. I3.
func (w *world) deliver(t *rapid.T) {
	if len(w.commits) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.commits)-1).Draw(t, "commit")
	d := w.commits[i]
	w.commits = append(w.commits[:i:i], w.commits[i+1:]...)
	mine := d.Step == nil || w.claimed && w.recorded == nil && w.claim.Token == d.Step.Token
	err := w.session.Decide(w.test.Context(), d)
	fenced, late := errors.AsType[*journal.Fenced](err)
	_, superseded := errors.AsType[*journal.Superseded](err)
	state := journal.StateActive
	switch {
	case d.Fence != w.fence:
		if !late || fenced.Current != w.fence {
			w.Fatalf("I3: a commit with fence %v arrived, %v is the highest: %v", d.Fence, w.fence, err)
		}
		w.did["commit fenced"]++
	case !mine:
		if !superseded {
			w.Fatalf("I5: a commit recorded a step that was another's: %v", err)
		}
		w.did["commit superseded"]++
	case err != nil:
		w.Fatalf("a commit with the highest fence: %v", err)
	default:
		state = journal.StateCommitted
		w.did["commit applied"]++
		if d.Step != nil {
			w.recorded = d.Step.Value
		}
	}
	rec, err := w.session.Read(w.test.Context(), d.Txn)
	if err != nil || rec.State != state {
		w.Fatalf("the record is %s, %v, want %s", rec.State, err, state)
	}
}

func (w *world) claimStep(t *rapid.T) {
	r := journal.StepRequest{Key: w.key(), Holder: "a", Token: w.token(), TTL: modelTTL}
	if len(w.claims) > 0 && rapid.Bool().Draw(t, "take over") {
		r.Replaces = rapid.SampledFrom(w.claims).Draw(t, "of").Token
	}
	won := !w.claimed || r.Replaces == w.claim.Token && w.lapsed && w.recorded == nil
	got, answer, err := w.steps.Claim(w.test.Context(), r)
	w.expect("claim", won, answer, err)
	if won {
		w.claimed, w.claim, w.lapsed = true, got, false
		w.claims = append(w.claims, journal.StepRecord{Key: got.Key, Token: got.Token})
	}
}

func (w *world) recordStep(t *rapid.T) {
	if len(w.claims) == 0 {
		return
	}
	r := rapid.SampledFrom(w.claims).Draw(t, "claim")
	r.Value = []byte(w.token())
	won := w.claimed && r.Token == w.claim.Token && w.recorded == nil
	got, err := w.steps.Record(w.test.Context(), r)
	w.expect("record", won, got, err)
	if won {
		w.recorded = r.Value
	}
}

func (w *world) releaseStep(t *rapid.T) {
	if len(w.claims) == 0 {
		return
	}
	r := rapid.SampledFrom(w.claims).Draw(t, "claim")
	won := w.claimed && r.Token == w.claim.Token && w.recorded == nil
	got, err := w.steps.Release(w.test.Context(), r.Key, r.Token)
	w.expect("give up", won, got, err)
	if won {
		w.claimed, w.lapsed = false, false
	}
}

// check compares the rows with the model: I2, I4, I5.
func (w *world) check(*rapid.T) {
	l, err := w.leases.Get(w.test.Context(), w.name)
	if none := errors.Is(err, journal.ErrNotFound); none != (w.fence == 0) || !none && err != nil {
		w.Fatalf("I4: Get: %v with fence %v granted", err, w.fence)
	}
	if l.Fence != w.fence || w.fence > 0 && (l.Holder != w.holder || l.Token != w.owners[w.fence] || l.Lapsed == (w.live && w.holder != "")) {
		w.Fatalf("the lease stands as %+v, want fence %v of %q, live %t", l, w.fence, w.holder, w.live)
	}
	s, err := w.steps.Get(w.test.Context(), w.key())
	if none := errors.Is(err, journal.ErrNotFound); none == w.claimed || !none && err != nil {
		w.Fatalf("Get of the step: %v, claimed %t", err, w.claimed)
	}
	if s.Recorded != (w.recorded != nil) || string(s.Value) != string(w.recorded) || w.claimed && s.Token != w.claim.Token {
		w.Fatalf("I5: the step stands as %+v, want %q of %s", s, w.recorded, w.claim.Token)
	}
}

// TestModel plays random histories against the real statements: whatever arrives
// late or twice, I1 to I5 hold, and every answer is the one the page gives.
func TestModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, "file://"+path, journal.Options{Logger: slog.New(slog.DiscardHandler)})
	install(t, j)
	leases, err := j.(journal.Conditional).Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	steps, err := j.(journal.Conditional).Steps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := j.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	db, did, n := raw(t, path), map[string]int{}, 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		w := &world{
			T: rt, test: t, journal: j, session: s, leases: leases, steps: steps, raw: db, name: fmt.Sprint("p", n),
			did: did, owners: map[journal.Fence]string{},
		}
		rt.Repeat(map[string]func(*rapid.T){
			"acquire": w.acquire, "renew": w.renew, "release": w.release, "expire": w.expire, "crash": w.crash,
			"send": w.send, "deliver": w.deliver, "claim": w.claimStep, "record": w.recordStep, "give up": w.releaseStep,
			"": w.check,
		})
	})
	t.Log(did)
	for _, what := range []string{
		"acquire won", "acquire lost", "renew won", "renew lost", "release won", "release lost",
		"commit applied", "commit fenced", "commit superseded",
		"claim won", "claim lost", "record won", "record lost", "give up won", "give up lost",
	} {
		if did[what] == 0 {
			t.Errorf("no history had: %s", what)
		}
	}
}
