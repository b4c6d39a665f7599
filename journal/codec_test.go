package journal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/journal"
)

func TestBranchJSON(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"the seeds' keys", `{"store": "pg", "gid": "g", "two_phase": true, "payload": null}`, `{"gid":"g","payload":null,"store":"pg","two_phase":true}`},
		{"a payload", `{"store":"ch","payload":"AP8="}`, `{"gid":"","payload":"AP8=","store":"ch","two_phase":false}`},
		{"an empty payload is not null", `{"store":"ch","payload":""}`, `{"gid":"","payload":"","store":"ch","two_phase":false}`},
		{"an outcome", `{"store":"a","outcome":"skipped","reason":"r"}`, `{"gid":"","outcome":"skipped","payload":null,"reason":"r","store":"a","two_phase":false}`},
		{"unknown keys", `{"store":"a","home":true,"x":{"y":[1.0]}}`, `{"gid":"","home":true,"payload":null,"store":"a","two_phase":false,"x":{"y":[1.0]}}`},
		{"a key in other letters is another key", `{"store":"a","Store":"b"}`, `{"Store":"b","gid":"","payload":null,"store":"a","two_phase":false}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b journal.Branch
			if err := json.Unmarshal([]byte(tc.text), &b); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(b)
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestBranchJSONRefuses(t *testing.T) {
	for _, text := range []string{
		`null`, `{}`, `[]`, `7`, `"a"`, `{"store":""}`, `{"store":null}`, `{"store":7}`, `{"store":"a","two_phase":"yes"}`,
		`{"store":"a","payload":"not base64!"}`, `{"store":"a"`, `{"gid":"g"}`,
	} {
		var b journal.Branch
		if err := b.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s was read as %+v", text, b)
		}
	}
}

func TestAmended(t *testing.T) {
	var read journal.Branch
	if err := json.Unmarshal([]byte(`{"store":"a","outcome":"heuristic","reason":"r"}`), &read); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		change func(*journal.Branch)
		want   bool
	}{
		{"nothing", func(*journal.Branch) {}, false},
		{"its payload", func(b *journal.Branch) { b.Payload = []byte("x") }, false},
		{"its outcome", func(b *journal.Branch) { b.Outcome = journal.OutcomeApplied }, true},
		{"its outcome taken back", func(b *journal.Branch) { b.Outcome = journal.OutcomeNormal }, true},
		{"its reason", func(b *journal.Branch) { b.Reason = "" }, true},
	} {
		b := read
		tc.change(&b)
		if got := b.Amended(); got != tc.want {
			t.Errorf("%s changed: Amended is %t", tc.name, got)
		}
	}
	if (journal.Branch{Store: "a"}).Amended() {
		t.Error("a branch that was never read and has no outcome is amended")
	}
}

func TestNoteJSON(t *testing.T) {
	if zero := (journal.Note{}); !zero.IsZero() {
		t.Error("the zero Note is not zero")
	}
	const text = `{"claim":{"holder":"h","fence":1,"until_ms":2},"later":[1],"remarks":[{"at_ms":1,"who":"w","text":"t"}]}`
	var n journal.Note
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(n)
	if err != nil || string(got) != text {
		t.Errorf("got %s, %v, want %s", got, err, text)
	}
	n.Claim, n.Remarks = nil, nil
	if n.IsZero() {
		t.Error("a note with keys of a newer version counts as nothing to write")
	}
}

// FuzzBranchesJSON: whatever a worker of another version wrote is either
// refused, or comes back with every key and value it had.
func FuzzBranchesJSON(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[{"store":"pg","gid":"dat:01940000-0000-7000-8000-000000000001:pg","two_phase":true,"payload":null}]`,
		`[{"store":"ch","payload":"cm93cw=="},{"store":"home","home":true}]`,
		`[{"store":"a","x":{"payload":"AAAA"},"Payload":1,"outcome":"heuristic","reason":"\u0000<&>\u2028"}]`,
		`[{"store":"a","n":1e400,"m":-0,"k":1.50}]`, `[null]`, `{"store":"a"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var first []journal.Branch
		if json.Unmarshal(data, &first) != nil {
			return
		}
		text, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		var second []journal.Branch
		if err := json.Unmarshal(text, &second); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, text)
		}
		memory := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".stored" }, cmp.Ignore())
		if diff := cmp.Diff(first, second, memory, cmp.AllowUnexported(journal.Branch{}), cmp.Comparer(sameJSON)); diff != "" {
			t.Errorf("decode(encode) differs:\n%s", diff)
		}
		again, err := json.Marshal(second)
		if err != nil || string(again) != string(text) {
			t.Errorf("encode(decode) differs: %v\n%s\n%s", err, text, again)
		}
		keepsKeys(t, data, text)
	})
}

// sameJSON compares values as JSON: written, they are compact and escaped.
func sameJSON(a, b json.RawMessage) bool { return string(canonical(a)) == string(canonical(b)) }

func canonical(raw json.RawMessage) []byte {
	text, err := json.Marshal(raw)
	if err != nil {
		return raw
	}
	return text
}

func keepsKeys(t *testing.T, read, written []byte) {
	t.Helper()
	var before, after []map[string]json.RawMessage
	if json.Unmarshal(read, &before) != nil || json.Unmarshal(written, &after) != nil || len(before) != len(after) {
		t.Fatalf("%s became %s", read, written)
	}
	for i, branch := range before {
		for key, value := range branch {
			if kept, ok := after[i][key]; !ok && !empty(key, value) || ok && !known(key) && !sameJSON(value, kept) {
				t.Errorf("key %q: %s became %s", key, value, kept)
			}
		}
	}
}

func known(key string) bool {
	return strings.Contains(" store gid two_phase payload outcome reason ", " "+key+" ")
}

// empty: outcome and reason are left out where there is none.
func empty(key string, value json.RawMessage) bool {
	return (key == "outcome" || key == "reason") && (string(value) == `""` || string(value) == `null`)
}
