package iceberg

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/catalogs"
)

// ValueError is a value that the table cannot hold where it would go. It is
// PERMANENT, and leaves nothing of its statement behind.
type ValueError struct {
	Table, Column string
	Reason        string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("rhizodat: write into %s: column %s: %s", e.Table, e.Column, e.Reason)
}

// Kind of a refused value.
func (e *ValueError) Kind() branches.Kind { return branches.Permanent }

// fail wraps what went wrong with the store's name. What has it already stays as
// it is.
func (s *Store) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*branches.Error](err); ok && own.Store == s.name {
		return err
	}
	if errors.Is(err, catalogs.ErrMissing) {
		err = errors.Join(branches.ErrNotInstalled, err)
	}
	return &branches.Error{Store: s.name, Doing: doing, Err: err, Asks: classify(err), Mask: s.to.masked}
}

// refuse is a PERMANENT error with a way out.
func (s *Store) refuse(doing, cause, way string) error {
	return &branches.Error{Store: s.name, Doing: doing, Cause: cause, Way: way, Asks: branches.Permanent, Mask: s.to.masked}
}

// busy is a TRANSIENT error: the next try may find it otherwise.
func (s *Store) busy(doing, cause string, err error) error {
	return &branches.Error{Store: s.name, Doing: doing, Cause: cause, Err: err, Asks: branches.Transient, Mask: s.to.masked}
}

// masked is an error's text without the secrets of the DSN.
func (t *target) masked(text string) string {
	for _, secret := range t.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	return text
}
