package drevo

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// stored is a record as its node holds it: without its payloads.
type stored struct {
	journal.Record
	payloads bool // a node of their own holds them
}

// decode reads a row of columns.
func decode(row []any) (stored, error) {
	if len(row) < 10 {
		return stored{}, fmt.Errorf("row of %d columns", len(row))
	}
	rec := stored{}
	id := asText(row[0])
	txn, err := branches.ParseTxnID(id)
	if err != nil {
		return rec, &journal.Damaged{Text: id, Err: err}
	}
	rec.Txn = txn
	if err := decodeInto(&rec, row[1:]); err != nil {
		return rec, &journal.Damaged{Text: id, Err: err}
	}
	return rec, nil
}

func decodeInto(rec *stored, row []any) (err error) {
	if rec.State, err = journal.ParseState(asText(row[0])); err != nil {
		return err
	}
	for _, n := range []struct {
		value any
		into  *int64
	}{
		{row[1], (*int64)(&rec.TxTime)},
		{row[2], &rec.CreatedMS},
		{row[3], &rec.UpdatedMS},
		{row[5], (*int64)(&rec.Fence)},
	} {
		if *n.into, err = asInt[int64](n.value); err != nil {
			return err
		}
	}
	rec.Lease = asText(row[4])
	if note := asText(row[6]); note != "" {
		if err := json.Unmarshal([]byte(note), &rec.Note); err != nil {
			return fmt.Errorf("note: %w", err)
		}
	}
	if err := json.Unmarshal([]byte(asText(row[7])), &rec.Branches); err != nil {
		return fmt.Errorf("branches: %w", err)
	}
	rec.payloads, _ = row[8].(bool)
	return nil
}

// withPayloads puts the payloads back into their branches.
func (s *stored) withPayloads(text any) error {
	if !s.payloads {
		return nil
	}
	var list [][]byte
	if err := json.Unmarshal([]byte(asText(text)), &list); err != nil {
		return &journal.Damaged{Text: s.Txn.String(), Err: fmt.Errorf("payloads: %w", err)}
	}
	if len(list) != len(s.Branches) {
		return &journal.Damaged{Text: s.Txn.String(), Err: fmt.Errorf("%d payloads of %d branches", len(list), len(s.Branches))}
	}
	for i := range list {
		s.Branches[i].Payload = list[i]
	}
	return nil
}

// payloadsOf is the text of the payloads, one for each branch, null for none;
// empty where no branch has one. drevo takes no bytes: they are base64.
func payloadsOf(list []journal.Branch) (string, error) {
	if !slices.ContainsFunc(list, func(b journal.Branch) bool { return b.Payload != nil }) {
		return "", nil
	}
	payloads := make([][]byte, len(list))
	for i, b := range list {
		payloads[i] = b.Payload
	}
	text, err := json.Marshal(payloads)
	return string(text), err
}

func encodeBranches(list []journal.Branch) (string, error) {
	light := make([]journal.Branch, len(list))
	copy(light, list)
	for i := range light {
		light[i].Payload = nil
	}
	text, err := json.Marshal(light)
	return string(text), err
}

// encodeNote is empty for a note of nothing: null would be no property.
func encodeNote(n journal.Note) (string, error) {
	if n.IsZero() {
		return "", nil
	}
	text, err := json.Marshal(n)
	return string(text), err
}

// own is the journal's own node.
type own struct {
	id        string
	place     branches.Place
	layout    int
	horizonMS int64
	hlc       hlc.Time // the highest that compaction ever removed
	fence     hlc.Time // of readers
	beat      int64    // raised by writes that only have to be durable
	nowMS     int64    // the server's clock
}

func decodeMeta(row []any) (m own, err error) {
	if len(row) != 8 {
		return m, fmt.Errorf("row of %d columns", len(row))
	}
	m.id, m.place = asText(row[0]), branches.Place(asText(row[1]))
	var errs [6]error
	m.layout, errs[0] = asInt[int](row[2])
	m.horizonMS, errs[1] = asInt[int64](row[3])
	m.hlc, errs[2] = asInt[hlc.Time](row[4])
	m.fence, errs[3] = asInt[hlc.Time](row[5])
	m.beat, errs[4] = asInt[int64](row[6])
	m.nowMS, errs[5] = asInt[int64](row[7])
	return m, errors.Join(errs[:]...)
}

func decodeStore(row []any) (journal.Registered, error) {
	if len(row) != 4 {
		return journal.Registered{}, fmt.Errorf("row of %d columns", len(row))
	}
	sweeps, err := asInt[int64](row[3])
	return journal.Registered{
		Name: asText(row[0]), Place: branches.Place(asText(row[1])), StoreID: asText(row[2]), Sweeps: sweeps,
	}, err
}

func asText(v any) string {
	s, _ := v.(string)
	return s
}

// asInt reads a number; a property that is not there is 0.
func asInt[T ~int | ~int64](v any) (T, error) {
	switch n := v.(type) {
	case nil:
		return 0, nil
	case int64:
		return T(n), nil
	}
	return 0, fmt.Errorf("%T where a number belongs", v)
}
