package archive_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/archive"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// memory is a bucket in this process.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	written map[string]int // times, which is the version
}

func newMemory() *memory { return &memory{objects: map[string][]byte{}, written: map[string]int{}} }

func (m *memory) version(key string) archive.Version {
	return archive.Version(fmt.Sprint(m.written[key]))
}

func (m *memory) Get(_ context.Context, key string) ([]byte, archive.Version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.objects[key]
	if !ok {
		return nil, "", archive.ErrAbsent
	}
	return data, m.version(key), nil
}

func (m *memory) put(key string, data []byte, allowed func() bool) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !allowed() {
		return false, nil
	}
	m.objects[key] = slices.Clone(data)
	m.written[key]++
	return true, nil
}

func (m *memory) Create(_ context.Context, key string, data []byte) (bool, error) {
	return m.put(key, data, func() bool { return m.objects[key] == nil })
}

func (m *memory) Replace(_ context.Context, key string, data []byte, v archive.Version) (bool, error) {
	return m.put(key, data, func() bool { return m.objects[key] != nil && m.version(key) == v })
}

func (m *memory) List(_ context.Context, prefix string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Sorted(maps.Keys(m.objects))
	return slices.DeleteFunc(keys, func(k string) bool { return !strings.HasPrefix(k, prefix) }), nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

// machines is a journal and 3 machines that compact it into one bucket.
type machines struct {
	*rapid.T
	test    *testing.T
	bucket  *memory
	nodes   [3]*faulty
	pushers [3]*archive.Archive
	look    *archive.Archive
	did     map[string]int

	read    map[string][]journal.Record // by part
	named   map[string]bool             // ever, by the manifest
	ever    map[branches.TxnID]bool     // written to the journal
	journal []journal.Record            // those that stand there
	pushed  [3][]journal.Record         // named by the manifest, as the machine knows, and not deleted yet
}

// finish: units reach their end.
func (m *machines) finish(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "records") {
		rec := records(m.test, 1)[0]
		m.ever[rec.Txn] = true
		m.journal = append(m.journal, rec)
	}
}

// push: a machine pushes some of what it sees in the journal, through faults.
func (m *machines) push(t *rapid.T) {
	if len(m.journal) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.nodes)-1).Draw(t, "machine")
	first := rapid.IntRange(0, len(m.journal)-1).Draw(t, "from")
	list := slices.Clone(m.journal[first:])
	weather := []fault{none, none, lost, down, lostDone, overtaken}
	if rapid.IntRange(0, 3).Draw(t, "weather") == 0 {
		weather = []fault{lost, down} // for good
	}
	upload := rapid.SampledFrom([]fault{none, none, none, down}).Draw(t, "upload")
	plan := append([]fault{upload}, rapid.SliceOfN(rapid.SampledFrom(weather), 1, 12).Draw(t, "faults")...)
	n, overtakes := -1, 0
	m.nodes[i].plan = func() fault {
		n++
		f := plan[0]
		if n > 0 {
			f = plan[1+n%(len(plan)-1)]
		}
		if f != overtaken {
			return f
		}
		if overtakes++; overtakes < 3 {
			m.overtake((i + 1) % len(m.nodes))
		}
		return f
	}
	err := m.pushers[i].Push(m.test.Context(), list)
	m.nodes[i].plan = func() fault { return none }
	switch contended, gaveUp := errors.AsType[*archive.Contended](err); {
	case err == nil:
		m.pushed[i] = list
		m.noteNamed()
		m.did["pushed"]++
	case gaveUp && len(contended.Unnamed) == 1:
		m.did["contended"]++
	case errors.Is(err, errBroken):
		m.did["not uploaded"]++
	case strings.Contains(err.Error(), "upload part"):
		m.did["not uploaded"]++
	default:
		m.Fatalf("push: %v", err)
	}
}

// overtaken: between a machine's look at the bucket and its write another one pushes.
const overtaken fault = -1

func (m *machines) overtake(i int) {
	rec := m.journal[len(m.journal)-1]
	rec.UpdatedMS += int64(len(m.bucket.written)) // a part of its own
	if err := m.pushers[i].Push(m.test.Context(), []journal.Record{rec}); err != nil {
		m.Fatalf("push without a fault: %v", err)
	}
	m.noteNamed()
	m.did["overtaken"]++
}

// noteNamed remembers what the manifest names.
func (m *machines) noteNamed() {
	manifest, err := m.look.Manifest(m.test.Context())
	if err != nil {
		m.Fatal(err)
	}
	for _, part := range manifest.Parts {
		m.named[part.Name] = true
	}
}

// remove: a machine deletes what it has pushed, which another may have done.
func (m *machines) remove(t *rapid.T) {
	i := rapid.IntRange(0, len(m.nodes)-1).Draw(t, "machine")
	for _, rec := range m.pushed[i] {
		m.journal = slices.DeleteFunc(m.journal, func(r journal.Record) bool { return r.Txn == rec.Txn })
		m.did["removed"]++
	}
	m.pushed[i] = nil
}

// crash: a machine forgets what it has pushed, between manifest and delete.
func (m *machines) crash(t *rapid.T) {
	i := rapid.IntRange(0, len(m.nodes)-1).Draw(t, "machine")
	if len(m.pushed[i]) > 0 {
		m.did["crashed"]++
	}
	m.pushed[i] = nil
}

// check is I6: every record is in the journal or in a part that the manifest
// names, and it names every part once.
func (m *machines) check(*rapid.T) {
	manifest, err := m.look.Manifest(m.test.Context())
	if err != nil {
		m.Fatal(err)
	}
	lost, named := maps.Clone(m.ever), map[string]bool{}
	for _, rec := range m.journal {
		delete(lost, rec.Txn)
	}
	for _, part := range manifest.Parts {
		if named[part.Name] {
			m.Fatalf("I6: the manifest names %s twice", part.Name)
		}
		named[part.Name] = true
		for _, rec := range m.records(part) {
			delete(lost, rec.Txn)
		}
	}
	for name := range m.named {
		if !named[name] {
			m.Fatalf("A1: the manifest does not name %s any more", name)
		}
	}
	if len(lost) > 0 {
		m.Fatalf("I6: %d records have left the journal and are not in the archive", len(lost))
	}
	for key, times := range m.bucket.written {
		if strings.HasPrefix(key, "parts/") && times != 1 {
			m.Fatalf("A2: part %s was written %d times", key, times)
		}
	}
}

// records of a part, which is read once: it never changes, as check sees.
func (m *machines) records(part archive.Part) []journal.Record {
	if m.read[part.Name] == nil {
		list, err := m.look.Records(m.test.Context(), part)
		if err != nil {
			m.Fatal(err)
		}
		m.read[part.Name] = list
	}
	return m.read[part.Name]
}

// TestModel plays random histories of 3 machines whose conditional writes are
// lost, answered late or not at all, and which crash between manifest and delete.
func TestModel(t *testing.T) {
	did := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		m := &machines{T: rt, test: t, bucket: newMemory(), did: did, ever: map[branches.TxnID]bool{}, read: map[string][]journal.Record{}, named: map[string]bool{}}
		for i := range m.nodes {
			m.nodes[i] = &faulty{Bucket: m.bucket, plan: func() fault { return none }}
			m.pushers[i] = open(t, m.nodes[i], archive.Options{Pusher: fmt.Sprint(i), Wall: instant{}})
		}
		m.look = open(t, m.bucket, archive.Options{})
		rt.Repeat(map[string]func(*rapid.T){"finish": m.finish, "push": m.push, "remove": m.remove, "crash": m.crash, "": m.check})
	})
	t.Log(did)
	for _, what := range []string{"pushed", "overtaken", "contended", "not uploaded", "removed", "crashed"} {
		if did[what] == 0 {
			t.Errorf("no history had: %s", what)
		}
	}
}
