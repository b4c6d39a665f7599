package branches_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/memory"
)

// speaker is a store that classifies, whisperer one that only knows what is
// worth trying again.
type (
	speaker   struct{ memory.Store }
	whisperer struct{ memory.Store }
	kinded    struct{ error }
)

func (speaker) Classify(error) branches.Kind { return branches.Constraint }
func (whisperer) IsRetryable(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
func (kinded) Kind() branches.Kind           { return branches.Invalid }

func TestClassify(t *testing.T) {
	plain := errors.New("plain")
	for name, row := range map[string]struct {
		store branches.Store
		err   error
		want  branches.Kind
	}{
		"store's word":         {speaker{}, plain, branches.Constraint},
		"error's own word":     {speaker{}, fmt.Errorf("x: %w", kinded{plain}), branches.Invalid},
		"device full":          {speaker{}, fmt.Errorf("x: %w", syscall.ENOSPC), branches.StoreFull},
		"quota":                {memory.Store{}, syscall.EDQUOT, branches.StoreFull},
		"retryable":            {whisperer{}, fmt.Errorf("x: %w", context.DeadlineExceeded), branches.Transient},
		"not retryable":        {whisperer{}, plain, branches.Permanent},
		"nobody classified it": {memory.Store{}, plain, branches.Permanent},
	} {
		if got := branches.Classify(row.store, row.err); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// A connection that broke is worth another try, a certificate that is refused is not.
func TestConnectionLost(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, row := range map[string]struct {
		err             error
		lost, untrusted bool
	}{
		"nothing":             {nil, false, false},
		"an answer":           {errors.New("syntax error"), false, false},
		"refused":             {refused, true, false},
		"by a URL":            {&url.Error{Op: "Post", URL: "http://h", Err: errors.New("broken")}, true, false},
		"reset":               {fmt.Errorf("x: %w", syscall.ECONNRESET), true, false},
		"ended":               {fmt.Errorf("x: %w", io.ErrUnexpectedEOF), true, false},
		"too late":            {context.DeadlineExceeded, true, false},
		"given up":            {context.Canceled, false, false},
		"unknown authority":   {&url.Error{Op: "Post", URL: "https://h", Err: x509.UnknownAuthorityError{}}, false, true},
		"refused certificate": {&net.OpError{Op: "dial", Err: &tls.CertificateVerificationError{Err: errors.New("expired")}}, false, true},
	} {
		if lost, untrusted := branches.ConnectionLost(row.err), branches.Untrusted(row.err); lost != row.lost || untrusted != row.untrusted {
			t.Errorf("%s: lost %t, untrusted %t, want %t, %t", name, lost, untrusted, row.lost, row.untrusted)
		}
	}
}

func TestUnknown(t *testing.T) {
	cause := errors.New("reset by peer")
	err := branches.Unknown(cause)
	if !branches.IsUnknown(err) || !branches.IsUnknown(fmt.Errorf("x: %w", err)) || branches.IsUnknown(cause) || branches.IsUnknown(nil) {
		t.Error("IsUnknown does not tell what Unknown has marked")
	}
	if !errors.Is(err, cause) || errors.Unwrap(err) != cause { //nolint:errorlint // the value itself
		t.Errorf("Unknown hides %v", cause)
	}
	if branches.Unknown(nil) != nil || branches.Unknown(err) != err { //nolint:errorlint // the value itself
		t.Error("Unknown marks nothing, or twice")
	}
}

// An error of a store tells where, what and what to do; the library's own stays
// findable, and what is masked is in no text.
func TestError(t *testing.T) {
	cause := errors.New("dial tcp: password=hunter2")
	mask := func(text string) string { return strings.ReplaceAll(text, "hunter2", "xxxxx") }
	for want, e := range map[string]*branches.Error{
		"rhizodat: probe store: store pg: dial tcp: password=hunter2": {Store: "pg", Doing: "probe store", Err: cause},
		"rhizodat: probe store: store pg: refused: dial tcp: password=xxxxx (ask)": {
			Store: "pg", Doing: "probe store", Cause: "refused", Way: "ask", Err: cause, Mask: mask,
		},
		"rhizodat: find table: store ch: there is no table t": {Store: "ch", Doing: "find table", Cause: "there is no table t"},
	} {
		if e.Error() != want {
			t.Errorf("says %q, want %q", e, want)
		}
		if !errors.Is(e, cause) && e.Err != nil {
			t.Errorf("%q hides its cause", want)
		}
	}
	full := fmt.Errorf("x: %w", &branches.Error{Asks: branches.StoreFull, Err: cause})
	if got := branches.Classify(speaker{}, full); got != branches.StoreFull {
		t.Errorf("classified %s, want its own word: %s", got, branches.StoreFull)
	}
}

func TestStatementError(t *testing.T) {
	for want, e := range map[string]*branches.StatementError{
		"rhizodat: run statement: store ch: no updates":          {Store: "ch", Reason: "no updates"},
		"rhizodat: run statement: store ch: no updates (insert)": {Store: "ch", Reason: "no updates", Way: "insert"},
	} {
		if e.Error() != want {
			t.Errorf("says %q, want %q", e, want)
		}
		if got := branches.Classify(speaker{}, fmt.Errorf("x: %w", e)); got != branches.Permanent {
			t.Errorf("%q is %s, want %s", want, got, branches.Permanent)
		}
	}
}

func TestHeuristicSaysWhich(t *testing.T) {
	gid := branches.NewGID(newTxn(t), "pg")
	committed := (&branches.Heuristic{GID: gid, Committed: true, Evidence: "its marker"}).Error()
	rolledBack := (&branches.Heuristic{GID: gid, Evidence: "no marker"}).Error()
	if !strings.Contains(committed, "had committed it: its marker") || !strings.Contains(rolledBack, "had rolled it back: no marker") ||
		!strings.Contains(committed, string(gid)) {
		t.Errorf("%q and %q", committed, rolledBack)
	}
}

func TestWords(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"permanent": branches.Permanent, "transient": branches.Transient, "store full": branches.StoreFull,
		"constraint": branches.Constraint, "invalid": branches.Invalid,
		"read-only": branches.VoteReadOnly, "prepare": branches.VotePrepare, "apply": branches.VoteApply, "no vote": branches.Vote(0),
		"unknown": branches.FateUnknown, "absent": branches.FateAbsent, "applied": branches.FateApplied, "never": branches.FateNever,
		"ok": branches.SeverityOK, "note": branches.SeverityNote, "warning": branches.SeverityWarning, "error": branches.SeverityError,
	} {
		if got.String() != want {
			t.Errorf("%#v prints as %q, want %q", got, got, want)
		}
	}
}
