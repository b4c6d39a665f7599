package drevo_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/drevo"
)

func TestLayoutOfAnotherVersion(t *testing.T) {
	b := newBed(t, drevotest.Server(t))
	for _, found := range []int{drevo.Layout + 1, drevo.Layout - 1} {
		b.graph.Rows(t, "MATCH (m:DatJournal_meta) SET m.layout = $layout", map[string]any{"layout": found})
		j := open(t, b.graph.URL(), journal.Options{})
		for name, err := range map[string]error{"Harden": j.Harden(t.Context()), "Install": j.Install(t.Context())} {
			if layout, ok := errors.AsType[*journal.Layout](err); !ok || layout.Found != found || layout.Known != drevo.Layout {
				t.Errorf("%s with layout %d: %v, want *Layout with both numbers", name, found, err)
			}
		}
	}
}

func TestNotInstalled(t *testing.T) {
	cluster := drevotest.Server(t)
	j := open(t, cluster.Graph(t, "empty").URL(), journal.Options{})
	s := session(t, j)
	rec := journal.Record{Txn: newTxn(t)}
	for name, err := range map[string]error{
		"Create": s.Create(t.Context(), &rec), "Harden": j.Harden(t.Context()),
	} {
		if !errors.Is(err, branches.ErrNotInstalled) || j.Classify(err) != branches.Permanent {
			t.Errorf("%s: %v, want ErrNotInstalled", name, err)
		}
	}
	if _, err := j.Place(t.Context()); !errors.Is(err, branches.ErrNotInstalled) {
		t.Errorf("Place: %v, want ErrNotInstalled", err)
	}

	nowhere := open(t, cluster.URL("no_such_graph"), journal.Options{})
	for name, err := range map[string]error{"Harden": nowhere.Harden(t.Context()), "Install": nowhere.Install(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "no_such_graph") || !strings.Contains(err.Error(), "POST /databases") {
			t.Errorf("%s where there is no such graph: %v, want the graph's name and the way out", name, err)
		}
	}
}

// nodes lists the nodes of a graph with the names of their properties.
func nodes(t *testing.T, graph *drevotest.Graph) []string {
	t.Helper()
	var list []string
	for _, row := range graph.Rows(t, "MATCH (n) RETURN labels(n), n.title, keys(n) ORDER BY n.title", nil) {
		var words []string
		for _, key := range row[2].([]any) {
			words = append(words, key.(string))
		}
		slices.Sort(words)
		list = append(list, row[0].([]any)[0].(string)+" "+row[1].(string)+" "+strings.Join(words, ","))
	}
	return list
}

// The Cypher that is printed makes what Install makes.
func TestInstallSQL(t *testing.T) {
	cluster := drevotest.Server(t)
	byInit, byHand := newBed(t, cluster), cluster.Graph(t, "dba")
	j := open(t, byHand.URL(), journal.Options{})
	for text := range strings.SplitSeq(j.InstallSQL(), ";\n") {
		if _, statement, found := strings.Cut(text, "\n"); found && strings.HasPrefix(text, "//") {
			text = statement
		}
		if text != "" {
			byHand.Exec(t, text)
		}
	}
	if diff := cmp.Diff(nodes(t, byInit.graph), nodes(t, byHand)); diff != "" {
		t.Errorf("-init +DBA:\n%s", diff)
	}
	id, err := j.Identify(t.Context())
	if err != nil || id.Moved() || id.ID == "" || id.Layout != drevo.Layout {
		t.Errorf("Identify: %+v, %v", id, err)
	}
	install(t, j)
	if again, err := j.Identify(t.Context()); err != nil || again != id {
		t.Errorf("installed again: %+v, %v, was %+v", again, err, id)
	}
}

// The format of docs/journal.md.
func TestFormat(t *testing.T) {
	b := newBed(t, drevotest.Server(t))
	rec := b.active(t)
	rec.Txn = newTxn(t)
	rec.Branches = []journal.Branch{{Store: "ch", GID: branches.NewGID(rec.Txn, "ch"), Payload: []byte("rows")}}
	if err := b.session.Create(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	if _, err := b.journal.Register(t.Context(), journal.Registered{Name: "ch", Place: "p", StoreID: "s"}); err != nil {
		t.Fatal(err)
	}
	acquire(t, leasesOf(t, b), "one", "a", time.Minute)
	all, err := b.journal.Steps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key := journal.StepKey{Execution: "run 7/a", Label: "mail%", Input: "0f"}
	if _, answer, err := all.Claim(t.Context(), journal.StepRequest{Key: key, Holder: "a", Token: "t"}); answer != journal.AnswerWon {
		t.Fatalf("Claim: %v, %v", answer, err)
	}
	const columns = "branches,created_ms,dat_tx_time,dat_txn,note,payloads,state,title,updated_ms"
	want := []string{
		"DatGraph DatGraph id,title",
		"DatJournal DatJournal:" + rec.Txn.String() + " " + columns,
		"DatJournal_lease DatJournal_lease:one expires_at,fence,holder,name,title,token",
		"DatJournal_lease DatJournal_lease:rhizodat.probe expires_at,fence,holder,name,title,token",
		"DatJournal_meta DatJournal_meta beat,fence,hlc,horizon_ms,id,layout,place,title",
		"DatJournal_payload DatJournal_payload:" + rec.Txn.String() + " payloads,title",
		"DatJournal_step DatJournal_step:run%207%2Fa/mail%25/0f created_ms,execution,expires_at,holder,input,label,recorded,title,token,updated_ms",
		"DatJournal_store DatJournal_store:ch name,place,store_id,sweeps,title",
	}
	got := slices.DeleteFunc(nodes(t, b.graph), func(line string) bool {
		return strings.HasPrefix(line, "DatJournal DatJournal:") && !strings.Contains(line, rec.Txn.String())
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	row := b.graph.Rows(t, "MATCH (j:DatJournal {dat_txn: $txn}) MATCH (p:DatJournal_payload) RETURN j.branches, p.payloads", map[string]any{"txn": rec.Txn.String()})[0]
	if want := `[{"gid":"` + rec.Branches[0].GID.String() + `","payload":null,"store":"ch","two_phase":false}]`; row[0] != want || row[1] != `["cm93cw=="]` {
		t.Errorf("branches %v, payloads %v", row[0], row[1])
	}
}

// S4 stamps itself above the read fence.
func TestReadFence(t *testing.T) {
	b := newBed(t, drevotest.Server(t))
	fence := hlc.FromMillis(hlc.System.Now().UnixMilli() + 1000)
	b.graph.Rows(t, "MATCH (m:DatJournal_meta) SET m.fence = $fence", map[string]any{"fence": int64(fence)})
	if rec := b.active(t); rec.TxTime != fence+1 {
		t.Errorf("S4 stamped %v, want %v", rec.TxTime, fence+1)
	}
	if high, err := b.journal.HighWater(t.Context()); err != nil || high != fence+1 {
		t.Errorf("HighWater: %v, %v", high, err)
	}
}

// A record that cannot be read is named and does not hide the others.
func TestDamagedRecord(t *testing.T) {
	b := newBed(t, drevotest.Server(t))
	damages := map[string]string{
		"branches":    "SET j.branches = '{'",
		"note":        "SET j.note = 'x'",
		"dat_tx_time": "SET j.dat_tx_time = 'x'",
		"dat_txn":     "SET j.dat_txn = 'x'",
	}
	for _, damage := range damages {
		rec := b.active(t)
		b.graph.Rows(t, "MATCH (j:DatJournal {title: $title}) "+damage, map[string]any{"title": "DatJournal:" + rec.Txn.String()})
	}
	good := b.active(t)
	var found []branches.TxnID
	err := b.journal.Scan(t.Context(), journal.Filter{States: journal.States}, func(rec journal.Record) error {
		found = append(found, rec.Txn)
		return nil
	})
	if !slices.Equal(found, []branches.TxnID{good.Txn}) {
		t.Errorf("Scan found %v, want %v", found, good.Txn)
	}
	if _, ok := errors.AsType[*journal.Damaged](err); !ok {
		t.Fatalf("Scan: %v, want *Damaged", err)
	}
	if named := strings.Count(err.Error(), "read journal record"); named != len(damages) {
		t.Errorf("Scan named %d records, want %d: %v", named, len(damages), err)
	}
}

// What a doctor says of the graph.
func TestExamine(t *testing.T) {
	b := newBed(t, drevotest.Server(t))
	b.active(t)
	worst := func() (list []string) {
		t.Helper()
		findings, err := b.journal.Examine(t.Context())
		if err != nil || len(findings) != 3 {
			t.Fatalf("Examine: %+v, %v", findings, err)
		}
		for _, f := range findings {
			if f.Severity != branches.SeverityOK {
				list = append(list, f.Severity.String()+" "+f.Check)
			}
			if (f.Severity == branches.SeverityOK) != (f.Way == "") || f.Text == "" {
				t.Errorf("%+v", f)
			}
		}
		return list
	}
	if list := worst(); len(list) > 0 {
		t.Errorf("of a graph for itself: %v", list)
	}
	fenced(t, b, "stranger")
	if list := worst(); !slices.Equal(list, []string{"error journal fence"}) {
		t.Errorf("with a stranger's fence: %v", list)
	}
	if err := b.graph.Resolve(t.Context(), "commitPrepared", "stranger"); err != nil {
		t.Fatal(err)
	}
	if list := worst(); !slices.Equal(list, []string{"warning journal graph"}) {
		t.Errorf("with a stranger's node: %v", list)
	}
}
