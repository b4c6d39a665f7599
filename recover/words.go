package recovery

import (
	"fmt"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// tell says in words what has happened to a unit that has a record, what will
// happen to it, and why.
func (s *Story) tell(p *pass, rec journal.Record) {
	age := pretty(p.age(rec.CreatedMS))
	switch rec.State {
	case journal.StateActive:
		s.Happened = fmt.Sprintf("Its coordinator wrote the record %s ago and began to prepare %s. Nothing was decided.", age, plural(len(rec.Branches)))
		s.undecided(p, rec)
	case journal.StatePrepared:
		s.Happened = fmt.Sprintf("Its coordinator prepared %s (%s old). Nothing was decided.", plural(len(rec.Branches)), age)
		s.undecided(p, rec)
	case journal.StateCommitted:
		s.Happened = fmt.Sprintf("It was decided to commit (%s old): it is committed, whatever happens now. %s", age, s.progress())
		s.decided(p, rec)
	case journal.StateDone:
		s.Happened = "It is committed, and nothing is left to do. " + s.progress()
		s.finished(p, rec)
	case journal.StateAborted:
		s.Happened = "It was aborted: nothing of it takes effect. " + s.progress()
		s.finished(p, rec)
	}
	s.Happened = strings.TrimSpace(s.Happened)
}

func (s *Story) undecided(p *pass, rec journal.Record) {
	if lacking := p.w.missing(rec); lacking != "" {
		s.notConfigured(lacking)
		return
	}
	left := p.w.cfg.StaleAfter + p.w.cfg.MaxClockDrift - p.age(rec.UpdatedMS)
	if left > 0 {
		s.Next = fmt.Sprintf("If nobody changes the record, recovery aborts it: a worker that runs on after %s, any other in %s. Until then its coordinator may still decide.",
			pretty(p.w.cfg.StaleAfter), pretty(left))
	} else {
		s.Next = "The next pass of recovery writes ABORTED and rolls the branches back."
	}
	s.Why = "Presumed abort: what nobody has decided is not committed. ABORTED and the coordinator's decision are compare-and-sets on one record, so only one of them can succeed."
	s.blocked(p)
}

func (s *Story) decided(p *pass, rec journal.Record) {
	if heuristic(rec) {
		s.heuristic(rec)
		return
	}
	if lacking := p.w.missing(rec); lacking != "" {
		s.notConfigured(lacking)
		return
	}
	s.Next = "Recovery rolls the open branches forward, as often as it takes, and writes DONE."
	s.Why = "After the decision a unit can only be finished. Every step of that may be repeated without harm."
	if c := rec.Note.Claim; c != nil && c.UntilMS > p.clock.UnixMilli() {
		s.Next = fmt.Sprintf("Worker %s is rolling it forward; others take over in %s.", c.Holder, pretty(time.UnixMilli(c.UntilMS).Sub(p.clock)))
	}
	if p.overdue(rec) {
		s.Next += fmt.Sprintf(" It is stuck: unfinished for longer than alert_after=%s.", p.w.cfg.AlertAfter)
	}
	s.blocked(p)
}

// finished is about final records, of which something may be left all the same.
func (s *Story) finished(p *pass, rec journal.Record) {
	if heuristic(rec) {
		s.heuristic(rec)
		return
	}
	for _, b := range s.Branches {
		switch {
		case !b.Prepared:
			continue
		case rec.State == journal.StateAborted, b.Outcome == journal.OutcomeSkipped:
			s.Next = "The next pass of recovery rolls back what is still prepared."
			s.Why = "The unit is aborted in the journal, so nobody can commit the branch any more."
			if b.Outcome == journal.OutcomeSkipped {
				s.Why = "A person gave this branch up."
			}
		default:
			s.Next = "The next pass of recovery commits what is still prepared, and reports it."
			s.Why = "The branch was finished once; that it is prepared again means that the store was restored from an older copy. Look for what else that copy lacks."
		}
		s.blocked(p)
		return
	}
	s.Next = fmt.Sprintf("Nothing. Compaction removes the record once it is unchanged for retain=%s.", p.w.cfg.Retain)
	s.Why = string(rec.State) + " is final."
}

func (s *Story) heuristic(rec journal.Record) {
	var calls []string
	for _, b := range rec.Branches {
		if b.Outcome == journal.OutcomeHeuristic {
			calls = append(calls, fmt.Sprintf("rhizorecover resolve %s --store %s --as applied|skipped --reason …", rec.Txn, b.Store))
		}
	}
	s.Next = "Nothing, until a person has repaired the data by hand where needed and says so: " + strings.Join(calls, "; ") + "."
	s.Why = "The store resolved its branch against the decision. No program can tell what the application needs now."
}

func (s *Story) notConfigured(stores string) {
	s.Next = "Nothing from here: this DSN has no store " + stores + ". Run recovery with the DSN of the application."
	s.Why = "A record is only worked on by a worker that knows all of its stores."
}

// tellMissing is about a unit that the journal does not know.
func (s *Story) tellMissing(p *pass, horizon time.Time) {
	for _, b := range s.Branches {
		if b.Prepared {
			s.preparedWithoutRecord(p, b, horizon)
			return
		}
	}
	for _, b := range s.Branches {
		if b.fate == branches.FateApplied {
			s.Happened = "It is committed in store " + b.Store + ": its marker is there. The journal has no record: it had one branch, or its record was compacted."
			s.Next, s.Why = "Nothing.", "Nothing of it is prepared anywhere this DSN can see."
			return
		}
		if b.fate == branches.FateNever {
			s.Happened = "It was aborted: a tombstone in store " + b.Store + " forbids its commit."
			s.Next, s.Why = "Nothing.", "Whoever lost the answer to its one-phase commit made sure that it never happens."
			return
		}
	}
	s.Next = "Nothing."
	s.Happened = "Nothing is known of it: no record, nothing prepared, no marker."
	s.Why = "Either it was aborted before it left a trace, or it is another deployment's, or of a time of which nothing is kept."
	if !s.Txn.Time().After(horizon) {
		s.Why = "It is older than the newest record that compaction has removed (" + horizon.UTC().Format(time.RFC3339) + "), so its absence proves nothing."
	}
}

func (s *Story) preparedWithoutRecord(p *pass, b BranchStory, horizon time.Time) {
	s.Happened = fmt.Sprintf("It is prepared in store %s for %s, by role %s, and the journal has no record of it.", b.Store, pretty(time.Duration(b.ForMS)*time.Millisecond), b.Owner)
	switch {
	case !b.listed.Ours:
		s.Next = "Nothing from here."
		s.Why = "It has left no marker in this deployment's table: it is another deployment's."
	case !s.Txn.Time().After(horizon):
		s.Next = fmt.Sprintf("Nothing, until a person decides: rhizorecover resolve %s --store %s --as skipped --reason … rolls it back.", s.Txn, b.Store)
		s.Why = "It is older than the newest record that compaction has removed (" + horizon.UTC().Format(time.RFC3339) + "): it may have been committed elsewhere. Look for its marker in the other stores first."
	default:
		s.Next = "The next pass of recovery writes ABORTED into the journal, forced, and rolls it back."
		s.Why = "The record is written before anything is prepared; a crash of the journal's server lost it. Without a record nobody can commit it."
		s.blocked(p)
	}
}

// blocked adds what keeps the next step from happening.
func (s *Story) blocked(p *pass) {
	for _, b := range s.Branches {
		switch {
		case b.Problem != "":
			s.Next += " It waits for store " + b.Store + " (" + b.Problem + ")."
		case b.Prepared && !b.listed.MayFinish:
			s.Next += fmt.Sprintf(" Store %s: the role of this DSN may not act for %s, who prepared it: grant that role.", b.Store, b.Owner)
		}
	}
	if p.journal.Moved() {
		s.Next = "Nothing from here: the journal is not where it was made or adopted. rhizorecover adopt, if this is meant."
	}
}

// progress says how far each branch is.
func (s *Story) progress() string {
	var parts []string
	for _, b := range s.Branches {
		parts = append(parts, "Store "+b.Store+": "+b.standing()+".")
	}
	return strings.Join(parts, " ")
}

func (b BranchStory) standing() string {
	switch {
	case b.Outcome == journal.OutcomeHeuristic:
		return "resolved by the store itself, the other way (" + plain(b.Reason, b.GID) + ")"
	case b.Outcome.Settled():
		return string(b.Outcome) + " by a person (" + b.Reason + ")"
	case !b.reachable:
		return "not known"
	case b.Prepared:
		return "still prepared"
	case b.fate == branches.FateApplied:
		return "committed"
	case b.TwoPhase:
		return "nothing prepared, no marker"
	}
	return "not yet applied"
}

// plain is an error's text without what the reader knows already.
func plain(text string, gid branches.GID) string {
	if _, rest, found := strings.Cut(text, gid.String()+": "); found {
		return rest
	}
	return text
}

func plural(n int) string {
	if n == 1 {
		return "1 branch"
	}
	return fmt.Sprintf("%d branches", n)
}

// pretty rounds a duration to what a person reads.
func pretty(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
