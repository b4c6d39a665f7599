package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// allowance is something that a peer itself gets wrong, with the evidence: a text
// that must stand in what it says or in the differences, that it says an error at all,
// or a change to the expected rows after which there must be none.
type allowance struct {
	peer, doing string
	tables      string   // patterns of path.Match
	says        []string // one of them
	anyError    bool     // it reads bytes as what they are not, so its text is another one each time
	mend        func(canon.Row)
	reason      string
	sometimes   bool // not all of the tables show it

	used, equal int
}

// What is done with a table.
const (
	reads   = "reads"   // ours
	writes  = "writes"  // and we read it
	rereads = "rereads" // its own, when we have deleted from it
	filters = "filters" // ours, by each value
	parts   = "parts"   // of ours: partition values against its own transforms
)

// allowances of this run: each is counted.
func allowances() []*allowance {
	all := []*allowance{
		{
			peer: "py", doing: reads, tables: "types_v*", mend: noNullOfStructs,
			reason: "PyIceberg 0.12.0 reads a NULL list or map whose elements are structs as an empty one; pyarrow reads the same file right",
		},
		{
			peer: "py", doing: reads, tables: "tsn_identity_v3 tzn_identity_v3", says: []string{"'logicalType': 'timestamp-nanos'"},
			reason: "PyIceberg 0.12.0 has no Avro timestamp-nanos, the type of such a partition in a manifest",
		},
		{
			peer: "java", doing: reads, tables: "tsn_identity_v3 tzn_identity_v3", says: []string{"java.lang.Long cannot be cast to class java.time.LocalDateTime"},
			reason: "Java 1.12.0's generic reader puts the partition's number where it wants a time",
		},
		{
			peer: "java", doing: reads, tables: "fix_identity_v*", anyError: true,
			reason: "Java 1.12.0 wants a length before a fixed partition value, which Avro's specification has not; PyIceberg reads the table in this run",
		},
		{
			peer: "py", doing: reads, tables: withEqualityDeletes, says: []string{"does not yet support equality deletes"},
			reason: "PyIceberg 0.12.0 refuses every table with equality deletes",
		},
		{
			peer: "py", doing: writes, tables: "types_v1 types_v2", mend: noNullOfStructs,
			reason: "PyIceberg 0.12.0 writes a NULL list or map whose elements are structs as an empty one",
		},
		{
			peer: "py", doing: writes, tables: "*_v3",
			says: []string{
				"Writing V3 is not yet supported", "Cannot write manifest for table version: 3", // the second where a REST server has made the table
				"Nanosecond resolution temporal type", "FeatureUnsupported => Unsupported data type for", // of a transform, which comes first
			},
			reason: "PyIceberg 0.12.0 writes no table of format version 3",
		},
		{
			peer: "py", doing: writes, tables: "float_identity_v[12] double_identity_v[12]", says: []string{"ZeroDivisionError"},
			reason: "PyIceberg 0.12.0 divides by the number in a partition by a float",
		},
		{
			peer: "py", doing: writes, tables: "dec*_truncate50_v[12]", says: []string{"precision of value is greater than precision of type", "Decimal value does not fit in precision 38"},
			reason: "PyIceberg refuses the smallest decimal: its truncation has a digit more than the type",
		},
		{
			peer: "py", doing: writes, tables: "time_bucket16_v[12]", says: []string{"'int' object has no attribute 'hour'"},
			reason: "PyIceberg 0.12.0 cannot make the bucket of a time",
		},
		{
			peer: "py", doing: writes, tables: "uuid_identity_v[12]", says: []string{"Keys of type extension<arrow.uuid>"},
			reason: "PyIceberg 0.12.0 cannot group rows by a uuid",
		},
		{
			peer: "py", doing: writes, tables: "bin_truncate2_v[12]", says: []string{"Unsupported data type for truncate transform: LargeBinary"},
			reason: "PyIceberg 0.12.0 cannot truncate a binary",
		},
		{
			peer: "java", doing: writes, tables: "dec*_truncate50_v*", says: []string{"too large: -"},
			reason: "Java refuses the smallest decimal: its truncation has a digit more than the type",
		},
		{
			peer: "java", doing: writes, tables: "fix_identity_v*", says: []string{"py " + nobodyElse},
			reason: "Java 1.12.0 writes a length before a fixed partition value, which Avro's specification has not; PyIceberg cannot read it either",
		},
		{
			peer: "clickhouse", doing: reads, tables: "date_*_v* types_v*", says: []string{"is out of allowed Date32 range"},
			reason: "ClickHouse 26.7 has no date before 1900 or after 2299, and refuses the file",
		},
		{
			peer: "clickhouse", doing: reads, tables: "time_*_v*", says: []string{`unexpected {"id":"2","note":null,"v":"81068"}`},
			reason: "ClickHouse 26.7 reads a time of day as whole seconds",
		},
		{
			peer: "clickhouse", doing: reads, tables: evolved, says: []string{"that is not in datalake metadata"},
			reason: "ClickHouse 26.7 refuses a file that was staged before a column of it was dropped and committed after; the specification reads columns by their ids",
		},
		{
			peer: "clickhouse", doing: reads, tables: withEqualityDeletes, says: []string{`missing {"city":null,"id":"3"}`}, sometimes: true,
			reason: "ClickHouse 26.7 drops the rows whose column is NULL where an equality delete names another value",
		},
		{
			peer: "clickhouse", doing: reads, tables: "cities3*", says: []string{"Position deletes are supported only for parquet format"},
			reason: "ClickHouse 26.7 reads no deletion vectors",
		},
		{
			peer: "clickhouse", doing: reads, tables: "dec38_truncate50_v*", says: []string{"While processing icebergTruncate(50"},
			reason: "ClickHouse 26.7 cannot truncate a decimal of more than 18 digits",
		},
	}
	return append(all, statisticsAllowances()...)
}

// noNullOfStructs makes the NULL lists and maps of structs empty.
func noNullOfStructs(r canon.Row) {
	for _, name := range []string{"ls", "ms"} {
		if v, ok := r[name]; ok && v == nil {
			r[name] = []any{}
		}
	}
}

// allowed is the allowance of a subject, if there is one.
func (l *lab) allowed(to subject) *allowance {
	for _, a := range l.allowances {
		if a.peer != to.peer || a.doing != to.doing {
			continue
		}
		for pattern := range strings.FieldsSeq(a.tables) {
			if ok, err := path.Match(pattern, to.table); err == nil && ok {
				return a
			}
		}
	}
	return nil
}

// covers reports whether the evidence is there.
func (a *allowance) covers(err error, lines []string, again func(func(canon.Row)) []string) bool {
	if a.mend != nil {
		return err == nil && again != nil && len(again(a.mend)) == 0
	}
	if a.anyError {
		return err != nil
	}
	text := strings.Join(lines, "\n")
	return slices.ContainsFunc(a.says, func(evidence string) bool { return strings.Contains(text, evidence) })
}

// report prints what was allowed, and counts the allowances that nothing needed.
func (l *lab) report() {
	stale := 0
	for _, a := range l.allowances {
		if a.used == 0 && a.equal == 0 {
			continue // its tables were not in this run
		}
		fmt.Printf("allowed %d times: %s %s %s: %s\n", a.used, a.peer, a.doing, a.tables, a.reason)
		if a.equal > 0 && (!a.sometimes || a.used == 0) {
			stale++
			fmt.Printf("no longer needed: %d tables of it are equal\n", a.equal)
		}
	}
	l.board.Exactly("interop_allowances_not_needed", stale, 0)
}
