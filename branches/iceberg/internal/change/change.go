// Package change is what one unit does to one Iceberg table, from the first data
// file to the snapshot that holds it: written before the unit is decided, committed
// after it, by any process and once.
//
// iceberg-go is used here in a narrow way, because its comfortable one loses data
// (branches/iceberg, the package comment): files are written by WriteRecords and
// committed by AddDataFiles or ReplaceDataFilesWithDataFiles; the commit is one
// CommitTable on exactly the head that was inspected. Nothing of the library
// retries.
package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/codec"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// The keys in a snapshot's summary. They are format.
const (
	TxnKey   = "dat.txn"     // the unit that the snapshot holds
	TimeKey  = "dat.tx_time" // its time, as a decimal number
	NeverKey = "dat.never"   // a unit that never commits: a tombstone, in an empty snapshot
)

// Change is what a unit does to a table, complete: recovery has nothing else. Its
// JSON is format.
type Change struct {
	Table  []string `json:"table"`
	UUID   string   `json:"table_uuid"`
	Schema int      `json:"schema_id"` // that the entries of Add were encoded with
	Format int      `json:"format"`
	Base   int64    `json:"base_snapshot,omitempty"` // the head when the unit first met the table; 0: none
	Add    []File   `json:"add,omitempty"`
	Remove []File   `json:"remove,omitempty"` // whole files that Add stands in for
	// Filter is what DELETE and UPDATE looked at, an expression of iceberg-go in
	// JSON: rows that a peer adds inside of it are a conflict.
	Filter json.RawMessage `json:"filter,omitempty"`
	// Redo are the statements, to do them again on a later head.
	Redo json.RawMessage `json:"redo,omitempty"`
	// Writes are the ids in the names of the files that the unit has written.
	Writes []string `json:"write_uuids,omitempty"`
}

// File is a data file.
type File struct {
	Path  string `json:"path"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
	Spec  int    `json:"spec_id"`
	// Entry is the manifest's own Avro entry; empty for a file of Remove.
	Entry []byte `json:"entry,omitempty"`
	// Rewritten: it holds rows of removed files. Doing the statements again makes
	// it anew, while a file of inserted rows stays as it is.
	Rewritten bool `json:"rewritten,omitempty"`
}

// Mark is what a snapshot carries of its unit.
type Mark struct {
	Txn  branches.TxnID
	Time hlc.Time
}

func (m Mark) summary() iceberg.Properties {
	return iceberg.Properties{TxnKey: m.Txn.String(), TimeKey: strconv.FormatInt(int64(m.Time), 10)}
}

var (
	// ErrConflict says that a peer has changed what the change stands on.
	ErrConflict = errors.New("a peer has changed the table")
	// ErrSchema says that the files cannot be read under the table's schema any more.
	ErrSchema = errors.New("the table was changed so that the staged files do not fit")
	// ErrReplaced says that another table stands under the name.
	ErrReplaced = errors.New("another table stands under the same name")
	// ErrGone says that a staged file is not there. Committed all the same, it would
	// make the whole table unreadable.
	ErrGone = errors.New("a staged file is gone")
	// ErrNever says that a tombstone of the unit stands.
	ErrNever = errors.New("this unit was given up: it was settled by another")
	// ErrApplied says that the unit is in the table before its time.
	ErrApplied = errors.New("a snapshot of this unit stands: the unit comes twice, or two stores share the namespace")
	// ErrRedo says that what a peer has left is nothing that the statements can be
	// done on.
	ErrRedo = errors.New("the unit's statements cannot be done again")
	// ErrTooLate says that nobody can tell whether the change was applied.
	ErrTooLate = errors.New("the table's history has expired since the unit was staged, so that nobody can tell whether it was applied")
)

// New is an empty change of a table as it is.
func New(tbl *table.Table) *Change {
	c := &Change{
		Table: tbl.Identifier(), UUID: tbl.Metadata().TableUUID().String(),
		Schema: tbl.Schema().ID, Format: tbl.Metadata().Version(),
	}
	if head := tbl.CurrentSnapshot(); head != nil {
		c.Base = head.SnapshotID
	}
	return c
}

// Empty reports whether the change leaves the table as it is.
func (c *Change) Empty() bool { return len(c.Add) == 0 && len(c.Remove) == 0 }

// WriteUUID is the id in the names of one write's files. It follows from the
// unit, so that a sweep that knows no more than dat_txn finds them. seq differs
// with every write: the library counts files from 0 in each, and a second write
// with the same id silently overwrites the first one's files.
func WriteUUID(txn branches.TxnID, ident []string, seq int) uuid.UUID {
	name, _ := json.Marshal(ident) //nolint:errchkjson // strings always marshal
	return uuid.NewSHA1(uuid.UUID(txn), fmt.Appendf(name, "#%d", seq))
}

// Encode makes the File of a data file that was written under tbl.
func Encode(tbl *table.Table, df iceberg.DataFile, rewritten bool) (File, error) {
	spec := tbl.Metadata().PartitionSpecByID(int(df.SpecID()))
	if spec == nil {
		return File{}, fmt.Errorf("table %v has no partition spec %d", tbl.Identifier(), df.SpecID())
	}
	entry, err := codec.EncodeDataFile(df, *spec, tbl.Schema(), tbl.Metadata().Version())
	f := Named(df)
	f.Entry, f.Rewritten = entry, rewritten
	return f, err
}

// Named is a File without its entry.
func Named(df iceberg.DataFile) File {
	return File{Path: df.FilePath(), Rows: df.Count(), Bytes: df.FileSizeBytes(), Spec: int(df.SpecID())}
}

// decode gives back the data files of Add.
func (c *Change) decode(tbl *table.Table, files []File) ([]iceberg.DataFile, error) {
	schema := tbl.Schemas()[c.Schema]
	if schema == nil {
		return nil, fmt.Errorf("%w: schema %d is gone", ErrSchema, c.Schema)
	}
	found := make([]iceberg.DataFile, 0, len(files))
	for _, f := range files {
		spec := tbl.Metadata().PartitionSpecByID(f.Spec)
		if spec == nil {
			return nil, fmt.Errorf("%w: partition spec %d is gone", ErrSchema, f.Spec)
		}
		df, err := codec.DecodeDataFile(f.Entry, *spec, schema, c.Format)
		if err != nil {
			return nil, fmt.Errorf("read entry of staged file: %w", err)
		}
		found = append(found, df)
	}
	return found, nil
}

// Payload is what a branch gives to the journal.
type Payload struct {
	Version int       `json:"v"`
	Changes []*Change `json:"changes"` // in the order of their tables' names
}

// version of the payload's layout. One that was released is read for ever.
const version = 1

// ErrPayload says that a payload is damaged, or of a later version than this program
// knows.
var ErrPayload = errors.New("rhizodat: read payload: damaged, or made by a newer rhizodat")

// EncodePayload makes the payload of a unit.
func EncodePayload(changes []*Change) ([]byte, error) {
	return json.Marshal(Payload{Version: version, Changes: changes})
}

// DecodePayload reads a payload.
func DecodePayload(data []byte) ([]*Change, error) {
	var p Payload
	if err := json.Unmarshal(data, &p); err != nil || p.Version != version || len(p.Changes) == 0 {
		return nil, ErrPayload
	}
	for _, c := range p.Changes {
		if c == nil || len(c.Table) < 2 || c.UUID == "" || c.Empty() {
			return nil, ErrPayload
		}
	}
	return p.Changes, nil
}
