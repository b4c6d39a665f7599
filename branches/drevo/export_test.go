package drevo

// Renew gives up the connections of the application's statements.
func (s *Store) Renew() error { return s.renew(s.work.Load()) }

// Read tells what a statement's text shows: whether it may write, and whether it
// names a procedure of drevo.tx.
func Read(query string) (writes, resolves bool) {
	st := read(query)
	return st.writes, st.resolves
}

// Parameter is the form in which a value is sent.
func Parameter(v any) (any, error) { return parameter(v, 0) }

// Stopped makes the store see an answer of the server.
func (s *Store) Notice(err error) { s.notice(err) }
