package linear

import (
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rhizodat/rhizodat-go/journal"
)

type op int

const (
	leaseAcquire op = iota
	leaseRenew
	leaseRelease
	leaseGet
	stepClaim
	stepRecord
	stepRelease
	stepGet
	ops
)

// input is what was sent.
type input struct {
	op       op
	key      string
	holder   string
	token    string
	fence    journal.Fence
	replaces string
	value    string
	long     bool // it does not lapse while the check runs; else at once
}

func (in input) ttl() time.Duration {
	if in.long {
		return 24 * time.Hour
	}
	return 0
}

// row is the state of one key, and what a read shows of it.
type row struct {
	there    bool
	holder   string
	token    string
	fence    journal.Fence
	live     bool
	recorded bool
	value    string
}

func leaseRow(l journal.Lease) row {
	return row{there: true, holder: l.Holder, token: l.Token, fence: l.Fence, live: !l.Lapsed}
}

func stepRow(s journal.Step) row {
	r := row{there: true, holder: s.Holder, token: s.Token, live: !s.Lapsed, recorded: s.Recorded}
	if s.Recorded {
		r.value, r.live = string(s.Value), false
	}
	return r
}

// output is what came back.
type output struct {
	answer journal.Answer
	row    row // of a read, and of a grant
}

// model is a row for each key.
func model() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Partition: byKey,
		Init:      func() []any { return []any{row{}} },
		Step: func(state, in, out any) []any {
			return after(state.(row), in.(input), out.(output)) //nolint:forcetypeassert // ours
		},
		Equal: func(a, b any) bool { return a == b },
	}).ToModel()
}

func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	of := map[string]int{}
	var parts [][]porcupine.Operation
	for _, o := range history {
		key := o.Input.(input).key //nolint:forcetypeassert // ours
		i, ok := of[key]
		if !ok {
			i = len(parts)
			of[key], parts = i, append(parts, nil)
		}
		parts[i] = append(parts[i], o)
	}
	return parts
}

// after are the rows that may stand when in was answered by out; none where no
// journal answers so.
func after(r row, in input, out output) []any {
	next, applies := apply(r, in)
	switch {
	case in.op == leaseGet || in.op == stepGet:
		if out.row == r {
			return []any{r}
		}
		return nil
	case out.answer == journal.AnswerUnknown && applies:
		return []any{r, next}
	case out.answer == journal.AnswerUnknown:
		return []any{r}
	case out.answer == journal.AnswerWon:
		if !applies || out.row.there && out.row != next {
			return nil
		}
		return []any{next}
	}
	// Lost: nothing has changed. An acquirer also loses to a lock.
	if applies && in.op != leaseAcquire {
		return nil
	}
	return []any{r}
}

// apply is the journal as its page describes it.
func apply(r row, in input) (next row, applies bool) {
	next = r
	mine := r.there && r.token == in.token
	switch in.op {
	case leaseAcquire:
		applies = !r.there || !r.live || r.holder == in.holder
		next = row{there: true, holder: in.holder, token: in.token, fence: r.fence + 1, live: in.long}
	case leaseRenew:
		applies = mine && r.fence == in.fence && r.live
		next.live = in.long
	case leaseRelease:
		applies = mine && r.fence == in.fence && r.holder != ""
		next.holder, next.live = "", false
	case stepClaim:
		applies = !r.there || !r.recorded && !r.live && in.replaces != "" && r.token == in.replaces
		next = row{there: true, holder: in.holder, token: in.token, live: in.long}
	case stepRecord:
		applies = mine && !r.recorded
		next.recorded, next.value, next.live = true, in.value, false
	case stepRelease:
		applies = mine && !r.recorded
		next = row{}
	case leaseGet, stepGet, ops:
	}
	return next, applies
}
