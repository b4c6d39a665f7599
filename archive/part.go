package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

const partPrefix, partSuffix = "parts/", ".jsonl.gz"

// line is a record as the archive writes it: the journal's columns under their
// names. It is format.
type line struct {
	Txn       string           `json:"dat_txn"`
	State     journal.State    `json:"state"`
	TxTime    int64            `json:"dat_tx_time"`
	Branches  []journal.Branch `json:"branches"`
	CreatedMS int64            `json:"created_ms"`
	UpdatedMS int64            `json:"updated_ms"`
	Lease     string           `json:"lease,omitempty"`
	Fence     journal.Fence    `json:"fence,omitempty"`
	Note      *journal.Note    `json:"note,omitempty"`
}

// encode makes a part of records. The same records make the same bytes: that is
// how a push that is repeated finds what it has uploaded.
func encode(records []journal.Record) ([]byte, Part, error) {
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, func(a, b journal.Record) int { return cmp.Compare(a.Txn.String(), b.Txn.String()) })
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf) // writes no time of its own
	lines := json.NewEncoder(zip)
	for _, rec := range sorted {
		if !rec.State.Final() {
			return nil, Part{}, fmt.Errorf("rhizodat: push to archive: record %s is %s: only final records may leave a journal", rec.Txn, rec.State)
		}
		if err := lines.Encode(lineOf(rec)); err != nil {
			return nil, Part{}, fmt.Errorf("rhizodat: push to archive: write record: %w", err)
		}
	}
	if err := zip.Close(); err != nil {
		return nil, Part{}, fmt.Errorf("rhizodat: push to archive: compress records: %w", err)
	}
	data := buf.Bytes()
	return data, Part{
		Name: nameOf(data), Bytes: int64(len(data)), Records: len(sorted),
		First: sorted[0].Txn.String(), Last: sorted[len(sorted)-1].Txn.String(),
	}, nil
}

var errOtherBytes = errors.New("its bytes are not those that its name says")

func nameOf(data []byte) string {
	sum := sha256.Sum256(data)
	return partPrefix + hex.EncodeToString(sum[:]) + partSuffix
}

func lineOf(rec journal.Record) line {
	l := line{
		Txn: rec.Txn.String(), State: rec.State, TxTime: int64(rec.TxTime), Branches: rec.Branches,
		CreatedMS: rec.CreatedMS, UpdatedMS: rec.UpdatedMS, Lease: rec.Lease, Fence: rec.Fence,
	}
	if !rec.Note.IsZero() {
		l.Note = &rec.Note
	}
	return l
}

func (l line) record() (journal.Record, error) {
	txn, err := branches.ParseTxnID(l.Txn)
	if err != nil {
		return journal.Record{}, err
	}
	rec := journal.Record{
		Txn: txn, State: l.State, TxTime: hlc.Time(l.TxTime), Branches: l.Branches,
		CreatedMS: l.CreatedMS, UpdatedMS: l.UpdatedMS, Lease: l.Lease, Fence: l.Fence,
	}
	if l.Note != nil {
		rec.Note = *l.Note
	}
	if !rec.State.Final() {
		return rec, fmt.Errorf("record %s is in state %q", l.Txn, l.State)
	}
	return rec, nil
}

// decode reads a part that the manifest names, and refuses one that is not what
// its name or the manifest says.
func decode(data []byte, part Part) ([]journal.Record, error) {
	if name := nameOf(data); name != part.Name {
		return nil, &Damaged{Key: part.Name, Err: errOtherBytes}
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, &Damaged{Key: part.Name, Err: err}
	}
	lines := json.NewDecoder(bufio.NewReader(zip))
	var records []journal.Record
	for {
		var l line
		err := lines.Decode(&l)
		if errors.Is(err, io.EOF) {
			break
		}
		var rec journal.Record
		if err == nil {
			rec, err = l.record()
		}
		if err != nil {
			return nil, &Damaged{Key: part.Name, Err: err}
		}
		records = append(records, rec)
	}
	if len(records) != part.Records {
		return nil, &Damaged{Key: part.Name, Err: fmt.Errorf("it holds %d records, the manifest says %d", len(records), part.Records)}
	}
	return records, nil
}
