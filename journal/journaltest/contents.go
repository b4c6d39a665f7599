package journaltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/rhizodat/rhizodat-go/journal"
)

var contents = []Item{
	{"contents/a record comes back as it was written", roundTrip},
	{"contents/payloads of every byte and of megabytes", payloads},
	{"contents/keys that nobody knows are kept", unknownKeys},
	{"contents/too large a payload is refused by name", tooLarge},
	{"contents/an unknown id is ErrNotFound", notFound},
	{"contents/S6 never lowers dat_tx_time", finalTime},
	{"contents/a lease that does not stand never commits", noSuchLease},
	{"contents/a call whose context has ended proves nothing", endedContext},
}

func roundTrip(b *Bed) {
	s := b.session()
	rec := b.record()
	rec.Note = journal.Note{
		Claim:   &journal.Claim{Holder: "host \"a\"\x00\n", Fence: 3, UntilMS: 4},
		Remarks: []journal.Remark{{AtMS: 1, Who: "ж", Text: "nul \x00, quote ', backslash \\, \u2028"}},
	}
	rec.Branches[0].Outcome, rec.Branches[0].Reason = journal.OutcomeHeuristic, "why \x00 <&>"
	rec = b.write(s, rec)
	if diff := same(rec, b.read(s, rec.Txn)); diff != "" {
		b.Fatalf("Read differs from Create (-want +got):\n%s", diff)
	}
	if got := b.read(b.session(), rec.Txn); got.TxTime < someTime {
		b.Fatalf("dat_tx_time %v is below the one that was asked for, %v", got.TxTime, someTime)
	}
}

func payloads(b *Bed) {
	s := b.session()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, payload := range [][]byte{nil, {}, every, bytes.Repeat(every, 4096), []byte(`","payload":"AAAA"`)} {
		rec := b.record()
		rec.Branches[1].Payload = payload
		b.write(s, rec)
		got := b.read(s, rec.Txn).Branches[1].Payload
		if !bytes.Equal(got, payload) || (got == nil) != (payload == nil) {
			b.Fatalf("a payload of %d bytes (nil: %t) came back with %d (nil: %t)", len(payload), payload == nil, len(got), got == nil)
		}
	}
}

// unknownKeys: a worker that does not know a key loses nothing.
func unknownKeys(b *Bed) {
	s := b.session()
	rec := b.record()
	const text = `{"store":"home","gid":"","two_phase":false,"payload":null,"home":true,"Payload":{"deep":[1,"\u0000"]}}`
	var fromNewer journal.Branch
	b.must("Unmarshal", json.Unmarshal([]byte(text), &fromNewer))
	rec.Branches = append(rec.Branches, fromNewer)
	b.must("Unmarshal", json.Unmarshal([]byte(`{"later":{"x":1}}`), &rec.Note))
	b.write(s, rec)

	got := b.read(s, rec.Txn)
	got.Branches[0].Outcome = journal.OutcomeApplied
	got.Note.Claim = &journal.Claim{Holder: "h"}
	b.must("Annotate", b.Journal.Annotate(b.Context(), got))
	got = b.read(s, rec.Txn)
	all, err := json.Marshal(got.Branches[2])
	b.must("Marshal", err)
	var want, have any
	b.must("Unmarshal", errors.Join(json.Unmarshal([]byte(text), &want), json.Unmarshal(all, &have)))
	if diff := same(want, have); diff != "" {
		b.Fatalf("the branch lost keys (-want +got):\n%s", diff)
	}
	note, err := json.Marshal(got.Note)
	if err != nil || !strings.Contains(string(note), `"later":{"x":1}`) {
		b.Fatalf("the note lost its key: %s, %v", note, err)
	}
}

func tooLarge(b *Bed) {
	j := b.Open(journal.Options{MaxPayload: 100})
	s, err := j.Session(b.Context())
	b.must("Session", err)
	defer s.Release()
	rec := b.record()
	rec.Branches[1].Payload = make([]byte, 100)
	b.write(s, rec)
	rec = b.record()
	rec.Branches[1].Payload = make([]byte, 101)
	err = s.Create(b.Context(), &rec)
	if !errors.Is(err, journal.ErrFull) || !strings.Contains(err.Error(), "max_payload=100") {
		b.Fatalf("101 bytes where max_payload is 100: %v, want ErrFull that names it", err)
	}
	b.expectState(s, rec.Txn, absent)
}

func notFound(b *Bed) {
	s := b.session()
	b.write(s, b.record())
	b.expectState(s, b.txn(), absent)
}

func finalTime(b *Bed) {
	s := b.session()
	for _, withPrepare := range []bool{false, true} {
		rec := b.write(s, b.record())
		d := journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime - 1, WithPrepare: withPrepare}
		if withPrepare {
			b.must("Decide", s.Decide(b.Context(), d))
		} else {
			b.must("Prepare", s.Prepare(b.Context(), d))
		}
		if got := b.read(s, rec.Txn).TxTime; got != rec.TxTime {
			b.Fatalf("S6 with %v made %v of %v: a reader's fence may lie between", d.TxTime, got, rec.TxTime)
		}
		rec = b.write(s, b.record())
		d = journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime + 7}
		b.must("Prepare", s.Prepare(b.Context(), d))
		if got := b.read(s, rec.Txn).TxTime; got != d.TxTime {
			b.Fatalf("S6 wrote %v, want the final %v", got, d.TxTime)
		}
	}
}

func noSuchLease(b *Bed) {
	s := b.session()
	txn := b.in(s, journal.StatePrepared)
	err := s.Decide(b.Context(), journal.Decision{Txn: txn, TxTime: someTime, Lease: "nobody's", Fence: 1})
	if err == nil {
		b.Fatalf("Decide under a lease that does not exist was acknowledged")
	}
	b.expectState(s, txn, journal.StatePrepared)
}

func endedContext(b *Bed) {
	s := b.session()
	txn := b.in(s, journal.StatePrepared)
	ended := b.canceled()
	rec := b.record()
	for name, err := range map[string]error{
		"Create":  s.Create(ended, &rec),
		"Prepare": s.Prepare(ended, journal.Decision{Txn: txn}),
		"Decide":  s.Decide(ended, journal.Decision{Txn: txn}),
		"Harden":  b.Journal.Harden(ended),
	} {
		if _, refused := errors.AsType[*journal.Conflict](err); err == nil || refused {
			b.Fatalf("%s after its context had ended: %v, want an error that is no *Conflict", name, err)
		}
	}
	if state, err := s.Abort(ended, txn, journal.Forced); err == nil {
		b.Fatalf("Abort after its context had ended: %s, nil", state)
	}
	// The place is still there, over a new connection if it must be.
	b.abort(s, txn)
}
