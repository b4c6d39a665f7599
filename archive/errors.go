package archive

import (
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Contended means that a push found other pushers winning, round after round,
// or no answer at all. Nothing has left the journal. Unnamed are the parts that
// are uploaded and that no manifest names yet: pushing again finds them.
type Contended struct {
	Unnamed []string
	Err     error // of the last round; nil where its condition was lost
}

func (e *Contended) Error() string {
	text := fmt.Sprintf("rhizodat: push to archive: the manifest was not replaced within the bound; uploaded and not yet named: %s: run the push again", strings.Join(e.Unnamed, ", "))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the last round's error to errors.Is and errors.As.
func (e *Contended) Unwrap() error { return e.Err }

// Kind is Transient: another push may win.
func (e *Contended) Kind() branches.Kind { return branches.Transient }

// Foreign means that the archive is another journal's.
type Foreign struct{ Archive, Journal string }

func (e *Foreign) Error() string {
	return fmt.Sprintf("rhizodat: push to archive: it holds the records of journal %s, these are of journal %s: give each journal a prefix of its own", e.Archive, e.Journal)
}

// Kind is Permanent: only another place helps.
func (e *Foreign) Kind() branches.Kind { return branches.Permanent }

// Unfit means that a bucket's conditional writes do not do what the manifest
// rests on.
type Unfit struct{ Check string }

func (e *Unfit) Error() string {
	return fmt.Sprintf("rhizodat: probe archive's bucket: a conditional write answered wrongly (%s): use a bucket that honours If-Match and If-None-Match", e.Check)
}

// Kind is Permanent: only another bucket helps.
func (e *Unfit) Kind() branches.Kind { return branches.Permanent }

// Damaged means that something in the archive is not what its name or the
// manifest says.
type Damaged struct {
	Key string
	Err error
}

func (e *Damaged) Error() string { return fmt.Sprintf("rhizodat: read archive: %s: %v", e.Key, e.Err) }

// Unwrap returns what was wrong with it.
func (e *Damaged) Unwrap() error { return e.Err }

// Kind is Permanent: it takes a person.
func (e *Damaged) Kind() branches.Kind { return branches.Permanent }
