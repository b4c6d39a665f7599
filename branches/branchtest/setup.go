package branchtest

import (
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

func installs(r *Run) {
	store := r.Store()
	installer := ability[branches.Installer](r, store)
	u := r.Begin(r.Session(store)).Wrote().Committed()
	r.Must("install", both(
		func() error { return installer.Install(r.Ctx) },
		func() error { return installer.Install(r.Ctx) },
	))
	r.Fate(store, u.Txn, branches.FateApplied, "after a second Install")
	if installer.InstallSQL() == "" {
		r.Errorf("nothing for a DBA to run")
	}
}

func probes(r *Run) {
	store := r.Store()
	prober := ability[branches.Prober](r, store)
	r.Must("probe", prober.Probe(r.Ctx))
	if closeErr := store.Close(); closeErr == nil {
		r.Must("second probe, which is not asked again", prober.Probe(r.Ctx))
	}
	fresh := r.Store()
	r.Must("close", fresh.Close())
	if ability[branches.Prober](r, fresh).Probe(r.Ctx) == nil {
		r.Errorf("probe of a store that was never reached = nil")
	}
}

func placed(r *Run) {
	one, err := ability[branches.Placer](r, r.Store()).Place(r.Ctx)
	r.Must("place", err)
	other, err := ability[branches.Placer](r, r.Store()).Place(r.Ctx)
	r.Must("place", err)
	if one == "" || one != other {
		r.Errorf("places %q and %q, want one that is not empty", one, other)
	}
}

func bound(r *Run) {
	keeper := ability[branches.Keeper](r, r.Store())
	before, err := keeper.Meta(r.Ctx)
	r.Must("meta", err)
	if before.StoreID == "" {
		r.Errorf("the store has no id")
	}
	to := before
	to.JournalID, to.JournalPlace = "journal-'1\\", "test:place"
	changed, err := keeper.Bind(r.Ctx, before, to)
	r.Must("bind", err)
	if !changed {
		r.Errorf("bind from what stands = false")
	}
	other := to
	other.JournalID = "journal-2"
	if changed, err = keeper.Bind(r.Ctx, before, other); err != nil || changed {
		r.Errorf("bind from what no longer stands = %t, %v", changed, err)
	}
	after, err := ability[branches.Keeper](r, r.Store()).Meta(r.Ctx)
	r.Must("meta", err)
	if after != to {
		r.Errorf("meta row is %+v, want %+v", after, to)
	}
	changed, err = keeper.Bind(r.Ctx, after, before)
	r.Must("bind back", err)
	if !changed {
		r.Errorf("bind back = false")
	}
}

func sweeps(r *Run) {
	keeper := ability[branches.Keeper](r, r.Store())
	before, err := keeper.Meta(r.Ctx)
	r.Must("meta", err)
	high := before.Sweeps + 10
	for _, to := range []int64{high, high - 5} {
		r.Must("raise sweeps", keeper.RaiseSweeps(r.Ctx, to))
	}
	after, err := keeper.Meta(r.Ctx)
	r.Must("meta", err)
	if after.Sweeps != high {
		r.Errorf("sweeps = %d, want %d", after.Sweeps, high)
	}
}

func cleans(r *Run) {
	store := r.Store()
	cleaner := ability[branches.Cleaner](r, store)
	session := r.Session(store)
	gone, kept := r.Begin(session).Wrote().Committed(), r.Begin(session).Wrote().Committed()
	r.Must("remove no markers", cleaner.RemoveMarkers(r.Ctx, nil))
	r.Must("remove markers", cleaner.RemoveMarkers(r.Ctx, []branches.TxnID{gone.Txn}))
	r.Must("remove markers again", cleaner.RemoveMarkers(r.Ctx, []branches.TxnID{gone.Txn}))
	r.Fate(store, gone.Txn, branches.FateAbsent, "after its removal")
	r.Fate(store, kept.Txn, branches.FateApplied, "of another unit")
	gone.Rows(1, "after the removal of the marker")
}

func cleansByAge(r *Run) {
	store := r.Store()
	cleaner := ability[branches.Cleaner](r, store)
	session := r.Session(store)
	// Units of a day long ago, whose markers are the oldest there are.
	day := time.Date(2001, 2, 3, 0, 0, 0, 0, time.UTC)
	old := make([]*Unit, 4)
	for i := range old {
		old[i] = r.BeginAs(session, bornAt(day.Add(time.Duration(i)*time.Hour), byte(i))).Wrote().Committed()
	}
	// One was open for days: a lost answer to its COMMIT is settled by its marker.
	long := r.BeginAs(session, bornAt(day, 9)).Wrote()
	long.TxTime = hlc.FromMillis(day.Add(100 * time.Hour).UnixMilli())
	long.Committed()
	n, err := cleaner.RemoveMarkersBefore(r.Ctx, day.Add(3*time.Hour), []branches.TxnID{old[1].Txn}, 1)
	r.Must("remove markers", err)
	if n != 1 {
		r.Errorf("removed %d markers, want the limit of 1", n)
	}
	r.Fate(store, old[0].Txn, branches.FateAbsent, "of the oldest unit")
	n, err = cleaner.RemoveMarkersBefore(r.Ctx, day.Add(3*time.Hour), []branches.TxnID{old[1].Txn}, 100)
	r.Must("remove markers", err)
	if n != 1 {
		r.Errorf("removed %d markers, want 1: one is kept, one is too young", n)
	}
	r.Fate(store, old[1].Txn, branches.FateApplied, "of a unit that is kept")
	r.Fate(store, old[2].Txn, branches.FateAbsent, "of an old unit")
	r.Fate(store, old[3].Txn, branches.FateApplied, "of a unit as old as the bound")
	r.Fate(store, long.Txn, branches.FateApplied, "of an old unit that was staged lately")
	r.Must("remove markers", cleaner.RemoveMarkers(r.Ctx, []branches.TxnID{old[1].Txn, old[3].Txn, long.Txn}))
}

// bornAt makes a dat_txn of that millisecond.
func bornAt(t time.Time, salt byte) branches.TxnID {
	id, ms := branches.TxnID{6: 0x70, 8: 0x80, 15: salt}, t.UnixMilli()
	for i := 5; i >= 0; i-- {
		id[i] = byte(ms)
		ms >>= 8
	}
	return id
}

func examined(r *Run) {
	findings, err := ability[branches.Examiner](r, r.Store()).Examine(r.Ctx)
	r.Must("examine", err)
	if len(findings) == 0 {
		r.Errorf("an examination that looks at nothing")
	}
	for _, f := range findings {
		if f.Check == "" || f.Text == "" {
			r.Errorf("a finding that says nothing: %+v", f)
		}
		if f.Severity == branches.SeverityError {
			r.Errorf("%s: %s (%s)", f.Check, f.Text, f.Way)
		}
	}
}
