package rig

import "testing"

func TestTrue(t *testing.T) {
	for _, c := range []struct {
		verdict string
		fate    Fate
		want    bool
	}{
		{"committed", Fate{2, 2}, true},
		{"committed", Fate{1, 2}, false},
		{"committed", Fate{}, false},
		{"pending", Fate{2, 2}, true},
		{"pending", Fate{}, false},
		{"aborted", Fate{}, true},
		{"aborted", Fate{1, 2}, false},
		{"aborted", Fate{2, 2}, false},
		{"in doubt", Fate{2, 2}, true},
		{"in doubt", Fate{}, true},
	} {
		if got := True(c.verdict, c.fate); got != c.want {
			t.Errorf("%s with effect in %s is true: %t, want %t", c.verdict, c.fate, got, c.want)
		}
	}
}
