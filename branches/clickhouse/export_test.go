package clickhouse

import "time"

// Moments of a finisher at which a test may hold it.
const (
	Quiet    = string(momentQuiet)
	Counted  = string(momentCounted)
	Deleted  = string(momentDeleted)
	Inserted = string(momentInserted)
	Settled  = string(momentSettled)
)

// Hold calls f whenever a finisher of s comes to a moment.
func Hold(s *Store, f func(moment string)) {
	s.moment = func(m moment) { f(string(m)) }
}

// BoundDeletes bounds a DELETE of s.
func BoundDeletes(s *Store, d time.Duration) { s.deleteTime = d }
