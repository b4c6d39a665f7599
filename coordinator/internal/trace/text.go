package trace

import (
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
)

// Text prints a trace for people: one line per request, where its answer came
// before anything else did, and one per part of it otherwise.
func Text(events []Event) string {
	p := printer{took: map[int]bool{}}
	for i := 0; i < len(events); i++ {
		e := events[i]
		switch e.What {
		case Point:
			p.line(e, pointText(e))
		case Ended:
			p.line(e, "= "+endText(e.End))
		case Crashed:
			p.line(e, "-- the journal's server crashes")
		case Told:
			p.line(e, "-- "+e.Text)
		case Granted:
			p.line(e, fmt.Sprintf("-- %s is granted with fence %d", e.Lease, e.Fence))
		case Sent:
			i += p.sent(events[i:])
		case Took:
			p.tookEffect(e, next(events, i+1))
		case Replied:
			p.line(e, p.request(e)+"  "+p.answer(e))
		}
	}
	p.flush()
	return p.b.String()
}

type printer struct {
	b     strings.Builder
	took  map[int]bool
	last  string
	times int
}

// line prints text, and counts what repeats.
func (p *printer) line(e Event, text string) {
	if e.Proc != "app" && e.Proc != "" {
		text = "[" + e.Proc + "] " + text
	}
	if text == p.last {
		p.times++
		return
	}
	p.flush()
	p.last, p.times = text, 1
}

func (p *printer) flush() {
	switch {
	case p.times == 1:
		fmt.Fprintln(&p.b, p.last)
	case p.times > 1:
		fmt.Fprintf(&p.b, "%s  (%d times)\n", p.last, p.times)
	}
	p.last, p.times = "", 0
}

func next(events []Event, i int) Event {
	if i < len(events) {
		return events[i]
	}
	return Event{}
}

// sent prints a request with the answer that follows at once, and returns how
// many more events that took.
func (p *printer) sent(events []Event) int {
	e, used := events[0], 0
	if took := next(events, 1); took.What == Took && took.Call == e.Call {
		p.took[e.Call] = true
		used = 1
	}
	if replied := next(events, 1+used); replied.What == Replied && replied.Call == e.Call {
		p.line(e, p.request(e)+"  "+p.answer(replied))
		return used + 1
	}
	p.took[e.Call] = false
	p.line(e, p.request(e)+"  …")
	return 0
}

func (p *printer) tookEffect(e, after Event) {
	p.took[e.Call] = true
	switch {
	case e.Proc == "":
		p.line(e, p.request(e)+"  by the store itself")
	case after.What == Replied && after.Call == e.Call: // the answer tells
	case e.Err != nil:
		p.line(e, p.request(e)+"  is refused, unseen: "+e.Err.Error())
	default:
		p.line(e, p.request(e)+"  takes effect, unseen")
	}
}

func (p *printer) request(e Event) string {
	text := e.Text
	if text == "" {
		text = e.Op
	}
	if e.Actor == Journal && (e.Op == Forbid || e.Op == Decide) && !e.Forced {
		text += " unforced"
	}
	if e.Lease != "" {
		text += fmt.Sprintf(" under %s, fence %d,", e.Lease, e.Fence)
	}
	if e.Actor == Journal && e.Forced {
		text += " forced"
	}
	if e.Op == Finish && e.Own {
		text += " (own session)"
	}
	return fmt.Sprintf("    %-8s %s", e.Actor, text)
}

func (p *printer) answer(e Event) string {
	switch {
	case e.Err == nil && e.Vote != 0:
		return "ok: " + e.Vote.String()
	case e.Err == nil && (e.Op == Forbid || e.Op == Read):
		return "ok: " + e.State.String()
	case e.Err == nil:
		return "ok"
	case branches.IsUnknown(e.Err) && p.took[e.Call]:
		return "no answer, and it happened"
	case branches.IsUnknown(e.Err):
		return "no answer"
	}
	return "refused: " + e.Err.Error()
}

func pointText(e Event) string {
	text := e.Step.Point()
	if e.Step.Err != nil {
		text += "  error"
	}
	return text
}

func endText(out coordinator.Outcome) string {
	text := out.Verdict.String()
	if out.Err != nil {
		text = out.Err.Error()
	}
	return text
}
