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
	if s.clickhouse == nil {
		return nil
	}
	var t tally
	for _, table := range s.tables {
		tbl, err := s.load(ctx, table.name)
		if err != nil {
			return err
		}
		dir := localPath(tbl.Location())
		metadata := strings.TrimPrefix(localPath(tbl.MetadataLocation()), dir+"/")
		var columns []string
		want := make([]canon.Row, len(table.want))
		for i := range want {
			want[i] = canon.Row{}
		}
		for _, f := range tbl.Schema().Fields() {
			spelled := spelling(f)
			if spelled == "" {
				continue
			}
			columns = append(columns, spelled+" AS `"+f.Name+"`")
			for i := range want {
				want[i][f.Name] = table.want[i][f.Name]
			}
		}
		query := "WITH t AS (SELECT * FROM icebergLocal('" + dir + "') SETTINGS iceberg_metadata_file_path = '" + metadata + "') SELECT " +
			strings.Join(columns, ", ") + " FROM t FORMAT JSONEachRow"
		text, err := s.clickhouse.Endpoint().Ask(ctx, "", query)
		var lines []string
		var got []canon.Row
		if err != nil {
			lines = []string{err.Error()}
		} else {
			if got, err = eachRow(text); err != nil {
				return err
			}
			lines = canon.Differences(want, got)
		}
		again := func(mend func(canon.Row)) []string { return canon.Differences(mended(want, mend), got) }
		if err := s.judge(&t, s.subject("clickhouse", reads, table.name), nil, lines, again); err != nil {
			return err
		}
	}
	s.board.AtLeast(s.prefix+"clickhouse_reads_equal", t.equal, len(s.tables)/2)
	s.board.Exactly(s.prefix+"clickhouse_reads_wrong", t.wrong, 0)
	return nil
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
