package clickhouse

import (
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
)

// ValueError is a value that its column cannot hold. It is PERMANENT, and leaves
// nothing of its statement behind.
type ValueError struct {
	Table, Column, Type string
	Value               any
	Err                 error
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("rhizodat: insert into %s: column %s of type %s: value %s: %s", e.Table, e.Column, e.Type, shown(e.Value), e.Err)
}

func (e *ValueError) Unwrap() error { return e.Err }

// Kind of a refused value.
func (e *ValueError) Kind() branches.Kind { return branches.Permanent }

// shown is a value for an error's text: enough to find it, not all of it.
func shown(v any) string {
	const most = 64
	if v == nil {
		return "NULL"
	}
	text := fmt.Sprintf("%v", v)
	if _, isText := v.(string); isText {
		text = fmt.Sprintf("%q", v)
	}
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// ErrTooLarge says that a unit holds more than max_payload.
var ErrTooLarge = errors.New("rhizodat: buffer rows: the unit's rows are larger than max_payload")

// fail wraps what went wrong with the store's name.
func (s *Store) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	if missing(err) {
		err = errors.Join(branches.ErrNotInstalled, err)
	}
	return &branches.Error{Store: s.name, Doing: doing, Err: err, Asks: classify(err)}
}

// refuse is a PERMANENT error with a way out.
func (s *Store) refuse(doing, cause, way string) error {
	return &branches.Error{Store: s.name, Doing: doing, Cause: cause, Way: way, Asks: branches.Permanent}
}

// busy is a TRANSIENT error: the next try may find it otherwise.
func (s *Store) busy(doing, cause string, err error) error {
	return &branches.Error{Store: s.name, Doing: doing, Cause: cause, Err: err, Asks: branches.Transient}
}
