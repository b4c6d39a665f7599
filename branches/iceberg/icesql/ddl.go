package icesql

import (
	"strings"

	"github.com/apache/iceberg-go"
)

// Schema is the table's schema as iceberg-go takes it; the catalog assigns the
// final field ids.
func (s *CreateTable) Schema() *iceberg.Schema {
	fields := make([]iceberg.NestedField, len(s.Columns))
	for i, c := range s.Columns {
		fields[i] = iceberg.NestedField{ID: i + 1, Name: c.Name, Type: c.Type, Required: c.Required, Doc: c.Doc}
	}
	return iceberg.NewSchema(0, fields...)
}

// PartitionSpec is the table's partitioning over sc; nil where there is none. The
// error is a *BindError: a column that is not there, a transform that does not
// fit its type, two equal fields.
func (s *CreateTable) PartitionSpec(sc *iceberg.Schema) (*iceberg.PartitionSpec, error) {
	if len(s.Partition) == 0 {
		return nil, nil
	}
	opts := make([]iceberg.PartitionOption, 0, len(s.Partition))
	for _, f := range s.Partition {
		column := strings.Join(f.Path, ".")
		field, ok := sc.FindFieldByName(column)
		if !ok {
			return nil, &BindError{Column: column, Cause: "there is no such column to partition by"}
		}
		if !f.Transform.CanTransform(field.Type) {
			return nil, &BindError{Column: column, Type: typeText(field.Type), Cause: "the transform " + f.Transform.String() + " does not take this type"}
		}
		name, err := iceberg.GeneratePartitionFieldName(sc, iceberg.PartitionField{SourceIDs: []int{field.ID}, Transform: f.Transform})
		if err != nil {
			return nil, &BindError{Column: column, Err: err}
		}
		opts = append(opts, iceberg.AddPartitionFieldBySourceID(field.ID, name, f.Transform, sc, nil))
	}
	spec, err := iceberg.NewPartitionSpecOpts(opts...)
	if err != nil {
		return nil, &BindError{Cause: "partition the table", Err: err}
	}
	return &spec, nil
}
