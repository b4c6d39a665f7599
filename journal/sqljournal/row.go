package sqljournal

import (
	"encoding/json"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// decode reads a row of columns. withPayloads false drops what a small payload
// left in a light listing.
func decode(row []any, withPayloads bool) (journal.Record, error) {
	if len(row) != 9 {
		return journal.Record{}, fmt.Errorf("row of %d columns", len(row))
	}
	id, ok := row[0].(string)
	if !ok {
		return journal.Record{}, fmt.Errorf("dat_txn is %T", row[0])
	}
	rec := journal.Record{}
	txn, err := branches.ParseTxnID(id)
	if err != nil {
		return rec, &journal.Damaged{Text: id, Err: err}
	}
	rec.Txn = txn
	if err := decodeInto(&rec, row[1:]); err != nil {
		return rec, &journal.Damaged{Text: id, Err: err}
	}
	if !withPayloads {
		for i := range rec.Branches {
			rec.Branches[i].Payload = nil
		}
	}
	return rec, nil
}

func decodeInto(rec *journal.Record, row []any) (err error) {
	if rec.State, err = journal.ParseState(asText(row[0])); err != nil {
		return err
	}
	// The seeds set dat_tx_time at PREPARED: NULL before that is no time.
	for _, n := range []struct {
		value any
		into  *int64
	}{
		{row[1], (*int64)(&rec.TxTime)}, {row[2], &rec.CreatedMS}, {row[3], &rec.UpdatedMS}, {row[5], (*int64)(&rec.Fence)},
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
	return nil
}

func encodeNote(n journal.Note) (any, error) {
	if n.IsZero() {
		return nil, nil
	}
	text, err := json.Marshal(n)
	return string(text), err
}

func asText(v any) string {
	s, _ := v.(string)
	return s
}

// asInt reads a number; NULL is 0.
func asInt[T ~int | ~int64](v any) (T, error) {
	switch n := v.(type) {
	case nil:
		return 0, nil
	case int64:
		return T(n), nil
	}
	return 0, fmt.Errorf("%T where a number belongs", v)
}

// oneRow is for statements that answer exactly one row.
func oneRow(res Result) ([]any, error) {
	if len(res.Rows) != 1 {
		return nil, fmt.Errorf("%d rows where there is one", len(res.Rows))
	}
	return res.Rows[0], nil
}

func asTime(v any) (hlc.Time, error) { return asInt[hlc.Time](v) }
