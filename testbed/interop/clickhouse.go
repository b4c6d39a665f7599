package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	lib "github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// clickhouseReads lets ClickHouse read every table by icebergLocal: the columns of
// plain types, which it spells as canon does.
func clickhouseReads(ctx context.Context, s *venue) error {
	if s.clickhouse == nil || s.place.name != full {
		return nil
	}
	var t tally
	for _, table := range s.tables {
		got, plain, err := s.byClickHouse(ctx, table.name)
		if err != nil {
			return err
		}
		lines := []string{got.Error}
		if got.Error == "" {
			lines = canon.Differences(only(plain, table.want), got.Rows)
		}
		if err := s.judge(&t, s.subject("clickhouse", reads, table.name), nil, lines, nil); err != nil {
			return err
		}
	}
	s.board.AtLeast(s.prefix+"clickhouse_reads_equal", t.equal, len(s.tables)/2)
	s.board.Exactly(s.prefix+"clickhouse_reads_wrong", t.wrong, 0)
	return nil
}

// byClickHouse reads the plain columns, which it names, of a table as it is now.
func (s *venue) byClickHouse(ctx context.Context, name string) (got answer, plain []string, err error) {
	tbl, err := s.load(ctx, name)
	if err != nil {
		return got, nil, err
	}
	dir := localPath(tbl.Location())
	metadata := strings.TrimPrefix(localPath(tbl.MetadataLocation()), dir+"/")
	var columns []string
	for _, f := range tbl.Schema().Fields() {
		if text := spelling(f); text != "" {
			columns, plain = append(columns, text+" AS `"+f.Name+"`"), append(plain, f.Name)
		}
	}
	// An alias hides the column that it is made of, but not from below.
	from := "(SELECT * FROM icebergLocal('" + dir + "', SETTINGS iceberg_metadata_file_path = '" + metadata + "'))"
	text, err := s.clickhouse.Endpoint().Ask(ctx, "", "SELECT "+strings.Join(columns, ", ")+" FROM "+from+" FORMAT JSONEachRow")
	if err != nil {
		got.Error = err.Error()
		if _, exception, found := strings.Cut(got.Error, "Code: "); found {
			got.Error = "Code: " + exception
		}
		return got, plain, nil
	}
	got.Rows, err = eachRow(text)
	return got, plain, err
}

// only are rows with the named columns alone.
func only(names []string, rows []canon.Row) []canon.Row {
	short := make([]canon.Row, len(rows))
	for i, r := range rows {
		short[i] = canon.Row{}
		for _, name := range names {
			short[i][name] = r[name]
		}
	}
	return short
}

// eachRow reads ClickHouse's lines of JSON.
func eachRow(text string) ([]canon.Row, error) {
	var rows []canon.Row
	for line := range strings.Lines(text) {
		row := canon.Row{}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return nil, fmt.Errorf("read answer of ClickHouse: %w", err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// spelling is a column in canonical form in ClickHouse's SQL, empty for a nested type.
func spelling(f lib.NestedField) string {
	column := "`" + f.Name + "`"
	switch t := f.Type.(type) {
	case lib.BooleanType:
		return "CAST(" + column + " AS Nullable(Bool))"
	case lib.Int32Type, lib.Int64Type, lib.StringType, lib.UUIDType:
		return "toString(" + column + ")"
	case lib.Float32Type:
		return "leftPad(lower(hex(reinterpretAsUInt32(" + column + "))), 8, '0')"
	case lib.Float64Type:
		return "leftPad(lower(hex(reinterpretAsUInt64(" + column + "))), 16, '0')"
	case lib.DecimalType:
		return fmt.Sprintf("toDecimalString(%s, %d)", column, t.Scale())
	case lib.DateType:
		return "toString(toInt32(" + column + "))"
	case lib.TimestampType, lib.TimestampTzType:
		return "toString(toUnixTimestamp64Micro(" + column + "))"
	case lib.TimestampNsType, lib.TimestampTzNsType:
		return "toString(toUnixTimestamp64Nano(" + column + "))"
	case lib.TimeType:
		return "toString(" + column + ")"
	case lib.FixedType, lib.BinaryType:
		return "lower(hex(" + column + "))"
	}
	return ""
}
