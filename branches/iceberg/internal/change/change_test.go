package change_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
)

var sample = []*change.Change{{
	Table: []string{"ns", "t"}, UUID: "5f0c", Schema: 1, Format: 2, Base: 7,
	Add:    []change.File{{Path: "file:///x", Rows: 3, Bytes: 100, Spec: 1, Entry: []byte{0, 255}, Rewritten: true}},
	Remove: []change.File{{Path: "file:///y", Rows: 1, Bytes: 50}},
	Filter: []byte(`true`), Redo: []byte(`[{"sql":"DELETE FROM t"}]`), Writes: []string{"u"},
}}

// The layout is format: what a version has written every later one reads.
func TestPayloadFormat(t *testing.T) {
	const text = `{"v":1,"changes":[{"table":["ns","t"],"table_uuid":"5f0c","schema_id":1,"format":2,"base_snapshot":7,` +
		`"add":[{"path":"file:///x","rows":3,"bytes":100,"spec_id":1,"entry":"AP8=","rewritten":true}],` +
		`"remove":[{"path":"file:///y","rows":1,"bytes":50,"spec_id":0}],"filter":true,"redo":[{"sql":"DELETE FROM t"}],"write_uuids":["u"]}]}`
	got, err := change.EncodePayload(sample)
	if err != nil || string(got) != text {
		t.Errorf("%v\n got %s\nwant %s", err, got, text)
	}
	back, err := change.DecodePayload([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample, back); diff != "" {
		t.Error(diff)
	}
}

// The ids of a unit's files follow from the unit, and differ by table and write.
func TestWriteUUID(t *testing.T) {
	txn := branches.TxnID{1}
	first := change.WriteUUID(txn, []string{"a", "b"}, 0)
	if again := change.WriteUUID(txn, []string{"a", "b"}, 0); again != first {
		t.Errorf("%s and %s", first, again)
	}
	for _, other := range []string{
		change.WriteUUID(txn, []string{"a", "b"}, 1).String(), change.WriteUUID(txn, []string{"ab"}, 0).String(),
		change.WriteUUID(txn, []string{"a#0", "b"}, 0).String(), change.WriteUUID(branches.TxnID{2}, []string{"a", "b"}, 0).String(),
	} {
		if other == first.String() {
			t.Errorf("%s twice", first)
		}
	}
}

func FuzzDecodePayload(f *testing.F) {
	good, err := change.EncodePayload(sample)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"v":1,"changes":[{"table":["a","b"],"table_uuid":"u","add":[{}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		changes, err := change.DecodePayload(data)
		if err != nil {
			return
		}
		once, err := change.EncodePayload(changes)
		if err != nil {
			t.Fatal(err)
		}
		again, err := change.DecodePayload(once)
		if err != nil {
			t.Fatal(err)
		}
		if twice, _ := change.EncodePayload(again); !bytes.Equal(once, twice) {
			t.Errorf("%s and %s", once, twice)
		}
	})
}
