package branches_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

func newTxn(tb testing.TB) branches.TxnID {
	tb.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		tb.Fatal(err)
	}
	return txn
}

func TestTxnID(t *testing.T) {
	before := time.Now().Truncate(time.Millisecond)
	txn := newTxn(t)
	if txn == newTxn(t) || txn.IsZero() || !(branches.TxnID{}).IsZero() {
		t.Error("ids are not unique, or zero")
	}
	if born := txn.Time(); born.Before(before) || born.After(time.Now().Add(time.Second)) {
		t.Errorf("Time = %v, want about now", born)
	}
	if !(branches.TxnID{}).Time().IsZero() {
		t.Error("an id that is no UUIDv7 has a time")
	}
	text, err := json.Marshal(txn)
	if err != nil {
		t.Fatal(err)
	}
	var back branches.TxnID
	if err := json.Unmarshal(text, &back); err != nil || back != txn {
		t.Errorf("JSON %s reads as %s, %v", text, back, err)
	}
	for _, bad := range []string{"", "x", strings.Repeat("0", 36), "{" + txn.String() + "}", "urn:uuid:" + txn.String(), txn.String()[:35]} {
		if _, err := branches.ParseTxnID(bad); err == nil {
			t.Errorf("ParseTxnID(%q) = nil", bad)
		}
	}
}

func TestGID(t *testing.T) {
	txn := newTxn(t)
	gid := branches.NewGID(txn, "pg_1")
	if string(gid) != "dat:"+txn.String()+":pg_1" || gid.Txn() != txn || gid.Store() != "pg_1" {
		t.Errorf("gid %s: txn %s, store %s", gid, gid.Txn(), gid.Store())
	}
	if got, err := branches.ParseGID(gid.String()); err != nil || got != gid {
		t.Errorf("ParseGID = %s, %v", got, err)
	}
	longest := branches.NewGID(txn, strings.Repeat("a", 32))
	if _, err := branches.ParseGID(string(longest)); err != nil || len(longest) >= 200 {
		t.Errorf("the longest gid has %d bytes: %v", len(longest), err)
	}
	id := txn.String()
	for _, bad := range []string{
		"", "dat:", "dat:x:pg", "dat:" + id, "dat:" + id + ":", "dat:" + id + ":Pg", "dat:" + id + ":pg'", "dat:" + id + ":1",
		"DAT:" + id + ":pg", "dat:" + strings.ToUpper(id) + ":pg", "dat:" + id + ":" + strings.Repeat("a", 33), " dat:" + id + ":pg",
	} {
		if got, err := branches.ParseGID(bad); err == nil {
			t.Errorf("ParseGID(%q) = %s", bad, got)
		}
	}
	for _, short := range []branches.GID{"", "dat:", "dat:1234"} {
		if !short.Txn().IsZero() || short.Store() != "" {
			t.Errorf("%q has a txn or a store", short)
		}
	}
}

// FuzzGID: what is parsed is what NewGID makes of its parts, and nothing in it
// can leave a string literal of a store's language.
func FuzzGID(f *testing.F) {
	f.Add(string(branches.NewGID(newTxn(f), "pg")))
	f.Add("dat:0190a1b2-0000-7000-8000-000000000000:a")
	f.Add("dat:0190A1B2-0000-7000-8000-000000000000:a'")
	f.Fuzz(func(t *testing.T, text string) {
		gid, err := branches.ParseGID(text)
		if err != nil {
			return
		}
		if branches.NewGID(gid.Txn(), gid.Store()) != gid || string(gid) != text {
			t.Errorf("%q parses as %q", text, gid)
		}
		if strings.ContainsAny(text, "'\"\\\x00\n ") {
			t.Errorf("%q is a gid", text)
		}
	})
}
