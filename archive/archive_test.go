package archive_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/archive"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

const ours = "journal-1"

func records(t *testing.T, n int) []journal.Record {
	t.Helper()
	list := make([]journal.Record, n)
	for i := range list {
		txn, err := branches.NewTxnID()
		if err != nil {
			t.Fatal(err)
		}
		list[i] = journal.Record{
			Txn: txn, State: journal.StateDone, TxTime: hlc.Time(i + 1), CreatedMS: 1, UpdatedMS: int64(i),
			Branches: []journal.Branch{{Store: "a", GID: branches.NewGID(txn, "a"), TwoPhase: true}},
			Lease:    "pipeline", Fence: 7,
			Note: journal.Note{Remarks: []journal.Remark{{AtMS: 1, Who: "w", Text: "<t>"}}},
		}
	}
	list[0].State = journal.StateAborted
	return list
}

func open(t *testing.T, b archive.Bucket, opts archive.Options) *archive.Archive {
	t.Helper()
	if opts.Journal == "" {
		opts.Journal = ours
	}
	a, err := archive.Open(t.Context(), b, opts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestPushAndRead(t *testing.T) {
	root := t.TempDir()
	a := open(t, archive.Folder(root), archive.Options{Pusher: "host/1"})
	if m, err := a.Manifest(t.Context()); err != nil || m.Journal != "" || len(m.Parts) != 0 {
		t.Errorf("an archive that nobody has pushed to: %+v, %v", m, err)
	}
	first, second := records(t, 3), records(t, 2)
	for _, list := range [][]journal.Record{first, second, first} { // the last one a second time
		if err := a.Push(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Push(t.Context(), nil); err != nil {
		t.Errorf("a push of nothing: %v", err)
	}
	m, err := a.Manifest(t.Context())
	if err != nil || m.Journal != ours || len(m.Parts) != 2 || m.Parts[0].Records != 3 || m.Parts[0].Pusher != "host/1" {
		t.Fatalf("manifest %+v, %v", m, err)
	}
	memory := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".stored" }, cmp.Ignore())
	for _, want := range slices.Concat(first, second) {
		got, err := a.Find(t.Context(), want.Txn)
		if diff := cmp.Diff(want, got, memory, cmp.AllowUnexported(journal.Branch{}, journal.Note{})); err != nil || diff != "" {
			t.Errorf("Find: %v\n%s", err, diff)
		}
	}
	if _, err := a.Find(t.Context(), records(t, 1)[0].Txn); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("Find of another: %v", err)
	}
	v, err := a.Verify(t.Context(), nil)
	if diff := cmp.Diff(archive.Verified{Parts: 2, Records: 5}, v); err != nil || diff != "" {
		t.Errorf("Verify: %v\n%s", err, diff)
	}
	if left, err := filepath.Glob(filepath.Join(root, "probe", "*")); err != nil || len(left) > 0 {
		t.Errorf("the probe left %v, %v", left, err)
	}
}

func TestPushRefuses(t *testing.T) {
	b := archive.Folder(t.TempDir())
	if err := open(t, b, archive.Options{}).Push(t.Context(), records(t, 1)); err != nil {
		t.Fatal(err)
	}
	_, isForeign := errors.AsType[*archive.Foreign](open(t, b, archive.Options{Journal: "journal-2"}).Push(t.Context(), records(t, 1)))
	if !isForeign {
		t.Error("another journal pushed to it")
	}
	open := records(t, 2)
	open[1].State = journal.StateCommitted
	a, err := archive.Open(t.Context(), b, archive.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Push(t.Context(), open); !errors.Is(err, archive.ErrReadOnly) {
		t.Errorf("a push without a journal: %v", err)
	}
	a, err = archive.Open(t.Context(), b, archive.Options{Journal: ours})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Push(t.Context(), open); err == nil || !strings.Contains(err.Error(), "only final records") {
		t.Errorf("a push of a record that is not final: %v", err)
	}
	if m, err := a.Manifest(t.Context()); err != nil || len(m.Parts) != 1 {
		t.Errorf("the manifest names %d parts, %v", len(m.Parts), err)
	}
}

func TestVerifyFindsDamage(t *testing.T) {
	root := t.TempDir()
	a := open(t, archive.Folder(root), archive.Options{})
	for range 3 {
		if err := a.Push(t.Context(), records(t, 2)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := a.Manifest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	flipped := filepath.Join(root, m.Parts[0].Name)
	data, err := os.ReadFile(flipped)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	for _, change := range []error{
		os.WriteFile(flipped, data, 0o600), os.Remove(filepath.Join(root, m.Parts[1].Name)),
		os.WriteFile(filepath.Join(root, "parts", "stray.jsonl.gz"), nil, 0o600),
	} {
		if change != nil {
			t.Fatal(change)
		}
	}
	v, err := a.Verify(t.Context(), nil)
	if err != nil || v.Parts != 1 || v.Records != 2 || len(v.Damage) != 2 || len(v.Unnamed) != 1 {
		t.Errorf("Verify: %+v, %v, want one whole part, two damaged, one stray", v, err)
	}
}

// faulty is a bucket whose conditional writes fail by plan, one entry a call.
type faulty struct {
	archive.Bucket
	mu   sync.Mutex
	plan func() fault
}

type fault int

const (
	none     fault = iota
	lost           // another was first, it says
	down           // an error, nothing applied
	lostDone       // applied, and an error: a lost reply
)

var errBroken = errors.New("connection reset")

func (f *faulty) next() fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.plan()
}

func (f *faulty) write(apply func() (bool, error)) (bool, error) {
	switch f.next() {
	case none, overtaken:
	case lost:
		return false, nil
	case down:
		return false, errBroken
	case lostDone:
		_, _ = apply()
		return false, errBroken
	}
	return apply()
}

func (f *faulty) Create(ctx context.Context, key string, data []byte) (bool, error) {
	return f.write(func() (bool, error) { return f.Bucket.Create(ctx, key, data) })
}

func (f *faulty) Replace(ctx context.Context, key string, data []byte, v archive.Version) (bool, error) {
	return f.write(func() (bool, error) { return f.Bucket.Replace(ctx, key, data, v) })
}

// Two pushers at once, with lost conditions, lost replies and errors: the
// manifest names every part exactly once.
func TestTwoPushers(t *testing.T) {
	root := t.TempDir()
	var pushers sync.WaitGroup
	var mu sync.Mutex
	pushed := 0
	for p := range 2 {
		n := p
		b := &faulty{Bucket: archive.Folder(root), plan: func() fault { return none }}
		a := open(t, b, archive.Options{Pusher: fmt.Sprint(p), Wall: instant{}, Stalled: 50})
		b.mu.Lock()
		b.plan = func() fault { n = (n*5 + 3) % 64; return fault(n % 5 % 4) } // the fifth is none again
		b.mu.Unlock()
		pushers.Go(func() {
			for range 20 {
				list := records(t, 3)
				for {
					err := a.Push(t.Context(), list)
					if err == nil {
						break
					}
					if !errors.Is(err, errBroken) {
						t.Errorf("push: %v", err)
						return
					}
				}
				mu.Lock()
				pushed += len(list)
				mu.Unlock()
			}
		})
	}
	pushers.Wait()
	a := open(t, archive.Folder(root), archive.Options{})
	v, err := a.Verify(t.Context(), nil)
	if diff := cmp.Diff(archive.Verified{Parts: 40, Records: 120}, v); err != nil || pushed != 120 || diff != "" {
		t.Errorf("Verify after %d records: %v\n%s", pushed, err, diff)
	}
}

// instant is a clock whose sleeps are over at once.
type instant struct{}

func (instant) Now() time.Time                                   { return time.UnixMilli(1_000) }
func (instant) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// A manifest that does not move although every write loses is a bucket that
// answers wrongly, or one that is down: the push ends, and says what it leaves.
func TestContended(t *testing.T) {
	for want, plan := range map[fault]int{lost: 6, down: 6} {
		b := &faulty{Bucket: archive.Folder(t.TempDir()), plan: func() fault { return none }}
		a := open(t, b, archive.Options{Wall: instant{}})
		calls := 0
		b.plan = func() fault {
			if calls++; calls == 1 {
				return none // the part
			}
			return want
		}
		err := a.Push(t.Context(), records(t, 1))
		contended, ok := errors.AsType[*archive.Contended](err)
		if !ok || len(contended.Unnamed) != 1 || errors.Is(err, errBroken) != (want == down) || calls-1 != plan-1 {
			t.Errorf("fault %d: %v after %d writes of the manifest", want, err, calls-1)
		}
		if contended.Kind() != branches.Transient {
			t.Error("it is not transient")
		}
		b.plan = func() fault { return none }
		v, err := a.Verify(t.Context(), nil)
		if err != nil || v.Parts != 0 || !slices.Equal(v.Unnamed, contended.Unnamed) {
			t.Errorf("Verify: %+v, %v, want the part that the error names", v, err)
		}
	}
}

// deaf ignores conditions, one of them a bucket.
type deaf struct {
	archive.Bucket
	create, replace bool
}

func (d deaf) Create(ctx context.Context, key string, data []byte) (bool, error) {
	if d.create {
		if err := d.Delete(ctx, key); err != nil {
			return false, err
		}
	}
	return d.Bucket.Create(ctx, key, data)
}

func (d deaf) Replace(ctx context.Context, key string, data []byte, v archive.Version) (bool, error) {
	if d.replace {
		_, stands, err := d.Get(ctx, key)
		if err != nil {
			return false, err
		}
		v = stands
	}
	return d.Bucket.Replace(ctx, key, data, v)
}

func TestOpenRefusesABucketWithoutConditions(t *testing.T) {
	for check, b := range map[string]deaf{
		"create where there is something":   {create: true},
		"replace on a version that is gone": {replace: true},
	} {
		b.Bucket = archive.Folder(t.TempDir())
		_, err := archive.Open(t.Context(), b, archive.Options{Journal: ours})
		unfit, ok := errors.AsType[*archive.Unfit](err)
		if !ok || unfit.Check != check {
			t.Errorf("%s: %v", check, err)
		}
		if _, err := archive.Open(t.Context(), b, archive.Options{}); err != nil {
			t.Errorf("it cannot be read either: %v", err)
		}
	}
	down := &faulty{Bucket: archive.Folder(t.TempDir()), plan: func() fault { return down }}
	if _, err := archive.Open(t.Context(), down, archive.Options{Journal: ours}); !errors.Is(err, errBroken) {
		t.Errorf("a bucket that is down: %v", err)
	}
}

// Sixteen writers of one version: one of them wins.
func TestFolderReplacesOnce(t *testing.T) {
	b := archive.Folder(t.TempDir())
	for round := range 20 {
		key := fmt.Sprint("k", round)
		if won, err := b.Create(t.Context(), key, []byte("0")); err != nil || !won {
			t.Fatal(won, err)
		}
		_, version, err := b.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for w := range 16 {
			writers.Go(func() {
				ok, err := b.Replace(t.Context(), key, fmt.Append(nil, w+1), version)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if ok {
					won++
				}
			})
		}
		writers.Wait()
		if won != 1 {
			t.Fatalf("%d of 16 won", won)
		}
	}
}
