package icesql

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Truth is a value of SQL's logic. The order of the three makes AND the least, OR
// the greatest, and NOT the distance from True.
type Truth uint8

// The three truths.
const (
	False Truth = iota
	Unknown
	True
)

func (t Truth) String() string {
	switch t {
	case False:
		return "false"
	case Unknown:
		return "unknown"
	case True:
		return "true"
	}
	return "?"
}

func truthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}

// Mask is a predicate's truth for every row of a batch.
type Mask []Truth

// Count is the number of rows for which the predicate is true.
func (m Mask) Count() int {
	n := 0
	for _, t := range m {
		n += int(t >> 1)
	}
	return n
}

// Filter is the rows of b for which the predicate is true. The caller releases it;
// b stays the caller's.
func (m Mask) Filter(ctx context.Context, b arrow.RecordBatch) (arrow.RecordBatch, error) {
	return m.keep(ctx, b, func(t Truth) bool { return t == True })
}

// Rest is the rows of b that Filter leaves out: those for which the predicate is
// false and those for which it is unknown. A DELETE keeps both: a row with a NULL
// is not deleted by a comparison with it.
func (m Mask) Rest(ctx context.Context, b arrow.RecordBatch) (arrow.RecordBatch, error) {
	return m.keep(ctx, b, func(t Truth) bool { return t != True })
}

func (m Mask) keep(ctx context.Context, b arrow.RecordBatch, want func(Truth) bool) (arrow.RecordBatch, error) {
	if int64(len(m)) != b.NumRows() {
		return nil, fmt.Errorf("rhizodat: filter rows: a mask of %d rows over a batch of %d", len(m), b.NumRows())
	}
	bits := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer bits.Release()
	bits.Reserve(len(m))
	kept := 0
	for _, t := range m {
		w := want(t)
		if w {
			kept++
		}
		bits.UnsafeAppend(w)
	}
	switch kept {
	case len(m):
		b.Retain()
		return b, nil
	case 0:
		return b.NewSlice(0, 0), nil
	}
	chosen := bits.NewBooleanArray()
	defer chosen.Release()
	out, err := compute.FilterRecordBatch(ctx, b, chosen, compute.DefaultFilterOptions())
	if err != nil {
		return nil, fmt.Errorf("rhizodat: filter rows: %w", err)
	}
	return out, nil
}
