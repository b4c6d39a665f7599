package step

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/memjournal"
	"github.com/rhizodat/rhizodat-go/journal"
)

type upper struct{}

func (upper) Encode(v any) ([]byte, error) {
	text, ok := v.(string)
	if !ok || text == "" {
		return nil, errors.New("no text")
	}
	return []byte(strings.ToUpper(text)), nil
}

func (upper) Decode(data []byte, v any) error {
	if string(data) == "BAD" {
		return errors.New("bad")
	}
	*v.(*string) = string(data)
	return nil
}

func TestValues(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		runs := 0
		big := strings.Repeat("x", MaxValue-1) // with its quotes one byte too many
		_, err := charge(t.Context(), runnerOf(t, j), returns(big, &runs))
		if large, ok := errors.AsType[*TooLarge](err); !ok || large.Size != MaxValue+1 || !strings.Contains(err.Error(), "reference") {
			t.Errorf("a value over the bound: %v", err)
		}
		if v, err := charge(t.Context(), runnerOf(t, j), returns(big[1:], &runs)); v != big[1:] || err != nil {
			t.Errorf("the greatest value: %d bytes, %v", len(v), err)
		}
		for label, tc := range map[string]struct{ value, want string }{"coded": {"paid", "PAID"}, "not encoded": {"", ""}, "not decoded": {"bad", ""}} {
			r := runnerOf(t, j, WithCodec(upper{}))
			r.key.Label = label
			v, err := charge(t.Context(), r, returns(tc.value, &runs))
			if v != tc.want || tc.want == "" != (err != nil) {
				t.Errorf("%s: got %q, %v", label, v, err)
			}
		}
	})
}

func TestKeys(t *testing.T) {
	base, _, err := prepare(key, nil)
	if err != nil || len(base.Input) != 64 {
		t.Fatalf("%+v, %v", base, err)
	}
	same, _, _ := prepare(Key{Execution: "run 7", Label: "charge", Input: struct {
		Amount int    `json:"amount"`
		To     string `json:"to"`
	}{5, "x"}}, nil)
	if same != base || idempotencyKey(same) != idempotencyKey(base) {
		t.Errorf("the same JSON gives %+v and %+v", base, same)
	}
	// Format: another version must find what this one recorded.
	fixed, _, _ := prepare(Key{Execution: "e", Label: "l"}, nil)
	if fixed.Input != "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b" {
		t.Errorf("the hash of no input is %s", fixed.Input)
	}
	seen := map[string]Key{idempotencyKey(base): key}
	for _, k := range []Key{
		{Execution: "run 8", Label: key.Label, Input: key.Input},
		{Execution: key.Execution, Label: "refund", Input: key.Input},
		{Execution: key.Execution, Label: key.Label},
		{Execution: key.Execution, Label: key.Label, Input: "null"},
		{Execution: "run 7c", Label: "harge", Input: key.Input},
	} {
		id, _, err := prepare(k, nil)
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := seen[idempotencyKey(id)]; taken {
			t.Errorf("%+v and %+v have one idempotency key", k, other)
		}
		seen[idempotencyKey(id)] = k
	}
	for name, tc := range map[string]struct {
		key  Key
		opts []Option
		want string
	}{
		"no execution": {Key{Label: "l"}, nil, "the execution is empty"},
		"no label":     {Key{Execution: "e"}, nil, "the label is empty"},
		"overlong":     {Key{Execution: "e", Label: strings.Repeat("x", 201)}, nil, "the label has 201 bytes, at most 200"},
		"no JSON":      {Key{Execution: "e", Label: "l", Input: func() {}}, nil, "hash its input"},
		"TTL":          {Key{Execution: "e", Label: "l"}, []Option{WithTTL(time.Millisecond)}, "a TTL of 1ms: at least 1s"},
		"holder":       {Key{Execution: "e", Label: "l"}, []Option{WithHolder("a\nb")}, "the holder holds a control character"},
	} {
		if _, _, err := prepare(tc.key, tc.opts); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if _, err := open(t.Context(), struct{ journal.Journal }{}, base, settings{}); err == nil {
		t.Error("a journal that keeps no steps was taken")
	}
}
