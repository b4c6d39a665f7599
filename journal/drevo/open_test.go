package drevo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/drevo"
)

const secret = "s3cr3t"

func TestOpenRefuses(t *testing.T) {
	for location, label := range map[string]string{
		"":                                  "",
		"postgres://u:" + secret + "@h/g":   "",
		"neo4j://u:" + secret + "@h/g":      "",
		"bolt://u:" + secret + "/@h/g":      "",
		"bolt://u:" + secret + "@h/g?x=1":   "",
		"bolt://h/g":                        "a`b",
		"bolt://u:" + secret + "@h/g":       "9a",
		"bolt://u:" + secret + "@h2/g":      "DatJournal_meta",
		"bolt://u:" + secret + "@h3/g":      "DatJournal_payload",
		"bolt://u:" + secret + "@h4/orders": "x_store",
	} {
		j, err := drevo.Open(location, drevo.Options{Label: label})
		if err == nil {
			t.Errorf("Open(%s) with label %q: %v", location, label, j)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("Open(%s) prints the password: %v", location, err)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	cluster := drevotest.Own(t)
	location := strings.Replace(newBed(t, cluster).graph.URL(), "bolt://", "bolt://user:"+secret+"@", 1)
	j := open(t, location, journal.Options{})
	cluster.Kill(t)
	s := session(t, j)
	rec := journal.Record{Txn: newTxn(t)}
	err := s.Create(t.Context(), &rec)
	if err == nil || j.Classify(err) != branches.Transient || branches.IsUnknown(err) {
		t.Errorf("Create without a server: %v, want a transient error that says that nothing was written", err)
	}
	if strings.Contains(fmt.Sprintf("%v %+v", err, j), secret) {
		t.Errorf("the password is printed: %v", err)
	}
	cluster.Start(t)
	if err := s.Create(t.Context(), &rec); err != nil {
		t.Errorf("Create with a server again: %v", err)
	}
}

// Two journals of one graph are two journals.
func TestLabel(t *testing.T) {
	b := newBed(t, drevotest.Server(t))
	b.active(t)
	other, err := drevo.Open(b.graph.URL(), drevo.Options{Label: "Coord"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Harden(t.Context()); !errors.Is(err, branches.ErrNotInstalled) {
		t.Errorf("Harden under another label: %v, want ErrNotInstalled", err)
	}
	install(t, other)
	found := 0
	if err := other.Scan(t.Context(), journal.Filter{States: journal.States}, func(journal.Record) error { found++; return nil }); err != nil || found != 0 {
		t.Errorf("under another label there are %d records, %v", found, err)
	}
	mine, err := b.journal.Identify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := other.Identify(t.Context())
	if err != nil || theirs.ID == mine.ID || theirs.Here != mine.Here {
		t.Errorf("they are %+v and %+v, %v", mine, theirs, err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	graph := drevotest.Server(t).Graph(t, "journal")
	before := goleak.IgnoreCurrent()
	j, err := drevo.Open(graph.URL(), drevo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	install(t, j)
	if err := errors.Join(j.Harden(t.Context()), j.Close(), j.Close()); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
}
