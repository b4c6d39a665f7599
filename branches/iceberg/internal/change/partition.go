package change

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// PartitionError is a value that would make other engines lose rows, put where a
// table is partitioned by its text.
type PartitionError struct {
	Column string
	Reason string
}

func (e *PartitionError) Error() string { return "partition column " + e.Column + ": " + e.Reason }

// textPartition is a partition field whose value is written as a text that is a
// column's own: identity or truncate of a string or of bytes.
type textPartition struct {
	column string // with the names of structs before it
	field  int    // source id
	width  int    // of truncate; 0: identity
	binary bool
}

// textPartitions are those of the table's present spec. Nothing else is written.
func textPartitions(tbl *table.Table) []textPartition {
	var found []textPartition
	schema, spec := tbl.Schema(), tbl.Spec()
	for _, f := range spec.Fields() {
		if len(f.SourceIDs) != 1 {
			continue
		}
		p := textPartition{field: f.SourceIDs[0]}
		switch t := f.Transform.(type) {
		case iceberg.IdentityTransform:
		case iceberg.TruncateTransform:
			p.width = t.Width
		default:
			continue
		}
		source, ok := schema.FindFieldByID(p.field)
		if !ok {
			continue
		}
		switch source.Type.(type) {
		case iceberg.StringType:
		case iceberg.BinaryType, iceberg.FixedType:
			p.binary = true
		default:
			continue
		}
		p.column, _ = schema.FindColumnName(p.field)
		found = append(found, p)
	}
	return found
}

// HasTextPartitions reports whether values of the table's rows have to be checked.
func HasTextPartitions(tbl *table.Table) bool { return len(textPartitions(tbl)) > 0 }

// CheckPartitions refuses what iceberg-go writes so that rows are lost: an empty
// string, whose bound it leaves out of the manifest (every engine then skips the
// file), and on an object store a text that ends in "..", which its client
// rewrites inside of a key.
func CheckPartitions(tbl *table.Table, batch arrow.RecordBatch, objects bool) error {
	for _, p := range textPartitions(tbl) {
		if p.binary {
			continue // base64 holds no point, and an empty value is written right
		}
		column := find(batch, p.column)
		if column == nil {
			continue
		}
		for row := range column.Len() {
			text, ok := textAt(column, row)
			switch {
			case !ok:
			case text == "":
				return &PartitionError{Column: p.column, Reason: "the empty string: readers would skip every row of its file (store NULL, or partition by bucket)"}
			case objects && strings.HasSuffix(p.shown(text), ".."):
				return &PartitionError{Column: p.column, Reason: `a text that ends in "..": in an object store other engines would not find its file`}
			}
		}
	}
	return nil
}

// shown is a value as it stands in a path.
func (p textPartition) shown(text string) string {
	if p.binary {
		if p.width > 0 && len(text) > p.width {
			text = text[:p.width]
		}
		return base64.StdEncoding.EncodeToString([]byte(text))
	}
	if p.width > 0 {
		n := 0
		for i := range text {
			if n == p.width {
				return text[:i]
			}
			n++
		}
	}
	return text
}

// nullText is how the library prints NULL in a path.
const nullText = "null"

// apart parts rows so that in no part a NULL meets a value that is printed alike:
// the library finds the file of a partition by its path, so both would share one,
// whose partition is that of whichever came first.
func apart(ctx context.Context, tbl *table.Table, batches []arrow.RecordBatch) ([][]arrow.RecordBatch, error) {
	partitions := textPartitions(tbl)
	patterns := map[string][]arrow.RecordBatch{}
	var order []string
	for _, b := range batches {
		found, err := byPattern(ctx, partitions, b)
		if err != nil {
			return nil, fmt.Errorf("part rows by partition: %w", err)
		}
		for _, g := range found {
			if _, known := patterns[g.pattern]; !known {
				order = append(order, g.pattern)
			}
			patterns[g.pattern] = append(patterns[g.pattern], g.rows)
		}
	}
	groups := make([][]arrow.RecordBatch, len(order))
	for i, pattern := range order {
		groups[i] = patterns[pattern]
	}
	return groups, nil
}

// group is the rows of one batch that agree on which of their partition texts are
// the text "null".
type group struct {
	pattern string
	rows    arrow.RecordBatch
}

func byPattern(ctx context.Context, partitions []textPartition, batch arrow.RecordBatch) ([]group, error) {
	rows := int(batch.NumRows())
	pattern := make([][]byte, rows)
	special := false
	for i, p := range partitions {
		column := find(batch, p.column)
		if column == nil {
			continue
		}
		for row := range rows {
			if text, ok := textAt(column, row); ok && p.shown(text) == nullText {
				pattern[row] = append(pattern[row], byte('0'+i))
				special = true
			}
		}
	}
	if !special {
		batch.Retain()
		return []group{{rows: batch}}, nil
	}
	masks := map[string]*array.BooleanBuilder{}
	var order []string
	for _, p := range pattern {
		if masks[string(p)] == nil {
			masks[string(p)] = array.NewBooleanBuilder(memory.DefaultAllocator)
			order = append(order, string(p))
		}
	}
	for _, p := range pattern {
		for _, name := range order {
			masks[name].Append(name == string(p))
		}
	}
	groups := make([]group, 0, len(order))
	for _, name := range order {
		part, err := compute.FilterRecordBatch(ctx, batch, masks[name].NewBooleanArray(), compute.DefaultFilterOptions())
		if err != nil {
			return nil, err
		}
		groups = append(groups, group{name, part})
	}
	return groups, nil
}

// find is the column of a name, which may lie inside of structs.
func find(batch arrow.RecordBatch, name string) arrow.Array {
	parts := strings.Split(name, ".")
	if found := batch.Schema().FieldIndices(name); len(found) == 1 {
		return batch.Column(found[0])
	}
	found := batch.Schema().FieldIndices(parts[0])
	if len(found) != 1 {
		return nil
	}
	column := batch.Column(found[0])
	for _, part := range parts[1:] {
		s, ok := column.(*array.Struct)
		if !ok {
			return nil
		}
		at, ok := s.DataType().(*arrow.StructType).FieldIdx(part)
		if !ok {
			return nil
		}
		column = s.Field(at)
	}
	return column
}

// textAt is a string or the bytes of a row; ok is false for NULL.
func textAt(column arrow.Array, row int) (text string, ok bool) {
	if column.IsNull(row) {
		return "", false
	}
	switch c := column.(type) {
	case *array.String:
		return c.Value(row), true
	case *array.LargeString:
		return c.Value(row), true
	case *array.Binary:
		return string(c.Value(row)), true
	case *array.LargeBinary:
		return string(c.Value(row)), true
	case *array.FixedSizeBinary:
		return string(c.Value(row)), true
	}
	return "", false
}
