package linear

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/memjournal"
	"github.com/rhizodat/rhizodat-go/journal"
)

func TestCheck(t *testing.T) {
	j := memjournal.New(hlc.System)
	clients := make([]journal.Journal, 16)
	for i := range clients {
		n := 0
		clients[i] = j.Node(func(memjournal.Op) memjournal.Fault {
			if n++; n%25 == 0 {
				return memjournal.Fault(1 + n/25%2)
			}
			return memjournal.None
		})
	}
	counts := Run{Clients: clients, Rounds: 60, Seed: 1}.Check(t)
	t.Log(counts)
	if counts.Won == 0 || counts.Lost == 0 || counts.Unknown == 0 {
		t.Errorf("it checked too little: %v", counts)
	}
}

// The checker is worth something: histories that no journal may give are refused.
func TestCheckRefuses(t *testing.T) {
	const won, lost = journal.AnswerWon, journal.AnswerLost
	granted := func(holder, token string, fence journal.Fence, live bool) row {
		return row{there: true, holder: holder, token: token, fence: fence, live: live}
	}
	acquire := func(holder, token string, long bool) input {
		return input{op: leaseAcquire, key: "l", holder: holder, token: token, long: long}
	}
	claim := input{op: stepClaim, key: "s", holder: "a", token: "1", long: true}
	record := func(token, value string) input { return input{op: stepRecord, key: "s", token: token, value: value} }
	type op struct {
		in  input
		out output
	}
	for name, tc := range map[string]struct {
		ops  []op
		want bool
	}{
		"a fence that repeats": {[]op{
			{acquire("a", "1", false), output{won, granted("a", "1", 1, false)}},
			{acquire("b", "2", false), output{won, granted("b", "2", 1, false)}},
		}, false},
		"two holders": {[]op{
			{acquire("a", "1", true), output{won, granted("a", "1", 1, true)}},
			{acquire("b", "2", true), output{won, granted("b", "2", 2, true)}},
		}, false},
		"a grant after the release": {[]op{
			{acquire("a", "1", true), output{won, granted("a", "1", 1, true)}},
			{input{op: leaseRelease, key: "l", token: "1", fence: 1}, output{answer: won}},
			{acquire("b", "2", true), output{won, granted("b", "2", 2, true)}},
		}, true},
		"a renewal under an old fence": {[]op{
			{acquire("a", "1", false), output{won, granted("a", "1", 1, false)}},
			{acquire("b", "2", true), output{won, granted("b", "2", 2, true)}},
			{input{op: leaseRenew, key: "l", token: "1", fence: 1, long: true}, output{answer: won}},
		}, false},
		"two claims": {[]op{
			{claim, output{won, row{there: true, holder: "a", token: "1", live: true}}},
			{input{op: stepClaim, key: "s", holder: "b", token: "2", long: true}, output{won, row{there: true, holder: "b", token: "2", live: true}}},
		}, false},
		"two values": {[]op{
			{claim, output{won, row{there: true, holder: "a", token: "1", live: true}}},
			{record("1", "x"), output{answer: won}},
			{record("1", "y"), output{answer: won}},
		}, false},
		"a refusal without a reason": {[]op{
			{claim, output{won, row{there: true, holder: "a", token: "1", live: true}}},
			{record("1", "x"), output{answer: lost}},
		}, false},
		"a value that was lost and read": {[]op{
			{claim, output{won, row{there: true, holder: "a", token: "1", live: true}}},
			{record("1", "x"), output{}},
			{input{op: stepGet, key: "s"}, output{won, row{there: true, holder: "a", token: "1", recorded: true, value: "x"}}},
		}, true},
		"a value that goes away": {[]op{
			{claim, output{won, row{there: true, holder: "a", token: "1", live: true}}},
			{record("1", "x"), output{answer: won}},
			{input{op: stepGet, key: "s"}, output{answer: won}},
		}, false},
	} {
		var history []porcupine.Operation
		for i, o := range tc.ops {
			history = append(history, porcupine.Operation{Input: o.in, Output: o.out, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		if got := porcupine.CheckOperations(model(), history); got != tc.want {
			t.Errorf("%s: the check says %t, want %t", name, got, tc.want)
		}
	}
}
