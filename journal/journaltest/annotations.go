package journaltest

import (
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

var annotations = []Item{
	{"annotate/outcomes and note, and nothing else", annotate},
	{"annotate/only the version that was read", annotateVersion},
	{"annotate/from a listing keeps the payload", annotateListed},
	{"annotate/a note alone leaves the branches as they are", annotateNote},
	{"annotate/an outcome can be taken back", annotateBack},
	{"annotate/one of two wins", annotateRace},
	{"annotate/a branch that the record has not", annotateUnknown},
	{"harden/is acknowledged and changes no record", harden},
}

func annotate(b *Bed) {
	s := b.session()
	for _, state := range journal.States {
		before := b.read(s, b.in(s, state))
		changed := before
		changed.Branches = append([]journal.Branch(nil), before.Branches...)
		changed.Branches[0].Outcome, changed.Branches[0].Reason = journal.OutcomeSkipped, "ann: gone"
		changed.Note = journal.Note{Remarks: []journal.Remark{{AtMS: 1, Who: "ann", Text: "t"}}}
		changed.TxTime, changed.CreatedMS = 1, 1 // not for the caller to change
		b.must("Annotate", b.Journal.Annotate(b.Context(), changed))
		after := b.read(s, before.Txn)
		if after.UpdatedMS <= before.UpdatedMS {
			b.Fatalf("the version did not rise: %d, then %d", before.UpdatedMS, after.UpdatedMS)
		}
		changed.TxTime, changed.CreatedMS, changed.UpdatedMS = before.TxTime, before.CreatedMS, after.UpdatedMS
		if diff := same(changed, after); diff != "" {
			b.Fatalf("in state %s (-want +got):\n%s", state, diff)
		}
	}
}

func annotateVersion(b *Bed) {
	s := b.session()
	rec := b.read(s, b.in(s, journal.StateCommitted))
	b.must("Annotate", b.Journal.Annotate(b.Context(), rec))
	stood := b.read(s, rec.Txn)
	rec.Note.Claim = &journal.Claim{Holder: "late"}
	b.expectConflict(b.Journal.Annotate(b.Context(), rec), rec.Txn, journal.StateCommitted)

	otherState := stood
	otherState.State = journal.StatePrepared
	b.expectConflict(b.Journal.Annotate(b.Context(), otherState), rec.Txn, journal.StateCommitted)
	if diff := same(stood, b.read(s, rec.Txn)); diff != "" {
		b.Fatalf("a refused Annotate changed the record (-before +after):\n%s", diff)
	}
	rec.Txn = b.txn()
	b.expectConflict(b.Journal.Annotate(b.Context(), rec), rec.Txn, absent)
	b.expectState(s, rec.Txn, absent)
}

func annotateListed(b *Bed) {
	s := b.session()
	txn := b.in(s, journal.StateCommitted)
	listed := b.scan(journal.Filter{States: []journal.State{journal.StateCommitted}})
	if len(listed) != 1 || listed[0].Branches[1].Payload != nil {
		b.Fatalf("Scan answered %+v", listed)
	}
	listed[0].Branches[1].Outcome = journal.OutcomeHeuristic
	b.must("Annotate", b.Journal.Annotate(b.Context(), listed[0]))
	got := b.read(s, txn).Branches[1]
	if string(got.Payload) != "rows" || got.Outcome != journal.OutcomeHeuristic {
		b.Fatalf("the branch is now %+v", got)
	}
}

// ended makes a record whose second branch was ended heuristically.
func (b *Bed) ended(s journal.Session) journal.Record {
	b.Helper()
	rec := b.read(s, b.in(s, journal.StateCommitted))
	rec.Branches[1].Outcome, rec.Branches[1].Reason = journal.OutcomeHeuristic, "seen"
	b.must("Annotate", b.Journal.Annotate(b.Context(), rec))
	return b.read(s, rec.Txn)
}

func annotateNote(b *Bed) {
	s := b.session()
	before := b.ended(s)
	listed := b.scan(journal.Filter{States: []journal.State{journal.StateCommitted}})[0]
	listed.Note.Claim = &journal.Claim{Holder: "h", Fence: 2, UntilMS: 3}
	b.must("Annotate", b.Journal.Annotate(b.Context(), listed))
	after := b.read(s, before.Txn)
	before.Note, before.UpdatedMS = listed.Note, after.UpdatedMS
	if diff := same(before, after); diff != "" {
		b.Fatalf("a claim changed more than the note (-want +got):\n%s", diff)
	}
}

func annotateBack(b *Bed) {
	s := b.session()
	rec := b.ended(s)
	rec.Branches[1].Outcome, rec.Branches[1].Reason = journal.OutcomeNormal, ""
	b.must("Annotate", b.Journal.Annotate(b.Context(), rec))
	if got := b.read(s, rec.Txn).Branches[1]; got.Outcome != journal.OutcomeNormal || got.Reason != "" || string(got.Payload) != "rows" {
		b.Fatalf("the branch is %+v", got)
	}
}

func annotateRace(b *Bed) {
	s := b.session()
	rec := b.read(s, b.in(s, journal.StateCommitted))
	errs := make(chan error, writers)
	for range writers {
		go func() { errs <- b.Journal.Annotate(b.Context(), rec) }()
	}
	won := 0
	for range writers {
		err := <-errs
		if err == nil {
			won++
		} else if _, refused := errors.AsType[*journal.Conflict](err); !refused {
			b.Errorf("a writer got %v", err)
		}
	}
	if won != 1 {
		b.Fatalf("%d writers of one version were acknowledged, want 1", won)
	}
}

func annotateUnknown(b *Bed) {
	s := b.session()
	rec := b.read(s, b.in(s, journal.StateCommitted))
	stranger := rec
	stranger.Branches = []journal.Branch{{Store: "zz", GID: branches.NewGID(rec.Txn, "zz"), Outcome: journal.OutcomeApplied}}
	if err := b.Journal.Annotate(b.Context(), stranger); err == nil {
		b.Fatalf("Annotate invented a branch")
	}
	if diff := same(rec, b.read(s, rec.Txn)); diff != "" {
		b.Fatalf("the record changed (-before +after):\n%s", diff)
	}
}

func harden(b *Bed) {
	s := b.session()
	rec := b.read(s, b.in(s, journal.StateCommitted))
	b.must("Harden", b.Journal.Harden(b.Context()))
	if diff := same(rec, b.read(s, rec.Txn)); diff != "" {
		b.Fatalf("Harden changed a record (-before +after):\n%s", diff)
	}
}
