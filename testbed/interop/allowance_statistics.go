package main

// statisticsAllowances are about filters and partition values.
func statisticsAllowances() []*allowance {
	return []*allowance{
		{
			peer: "java", doing: filters, tables: "types_v* uuid_identity_v*", says: []string{`"00000000-0000-0000-0000-000000000000": 0 of`},
			reason: "Java 1.12.0 orders uuids as signed numbers and finds none by its bounds, also in its own files",
		},
		{
			peer: "java", doing: filters, tables: "fix_identity_v*", anyError: true,
			reason: "as it cannot read the table",
		},
		{
			peer: "java", doing: parts, tables: "fix_identity_v*", anyError: true,
			reason: "as it cannot read the table",
		},
		{
			peer: "java", doing: filters, tables: "tsn_identity_v3 tzn_identity_v3", says: []string{"java.lang.Long cannot be cast to class java.time.LocalDateTime"},
			reason: "as it cannot read the table",
		},
		{
			peer: "java", doing: filters, tables: "float_identity_v* double_identity_v*", says: []string{`v = "80000000`}, sometimes: true,
			reason: "Java 1.12.0 takes the partition of -0 for another than that of 0 and the filter for both",
		},
		{
			peer: "py", doing: filters, tables: "types_v* uuid_bucket16_v*", says: []string{"Function 'equal' has no kernel matching input types"},
			reason: "PyIceberg 0.12.0 cannot filter by a uuid: pyarrow does not compare them",
		},
		{
			peer: "py", doing: filters, tables: "uuid_identity_v*", says: []string{`"f79c3e09-677c-4bbd-a479-3f349cb785e7": 0 of`},
			reason: "PyIceberg 0.12.0 compares a uuid with the bytes of the partition, and finds none",
		},
		{
			peer: "py", doing: filters, tables: "int_truncate10_v* long_truncate10_v*", says: []string{`v = "-2147483648": 0 of`, `v = "-9223372036854775808": 0 of`},
			reason: "PyIceberg 0.12.0 truncates the smallest integer to one that the type has not; Java wraps around as iceberg-go does",
		},
		{
			peer: "py", doing: parts, tables: "int_truncate10_v* long_truncate10_v*", says: []string{"the file says 2147483646", "the file says 9223372036854775806"},
			reason: "PyIceberg 0.12.0 truncates the smallest integer to one that the type has not; Java wraps around as iceberg-go does",
		},
		{
			peer: "py", doing: filters, tables: "float_identity_v*", says: []string{`v = "ff800000": 0 of`},
			reason: "PyIceberg 0.12.0 finds no -Infinity; Java does",
		},
		{
			peer: "py", doing: filters, tables: "double_identity_v*", says: []string{`v = "3fb999999999999a": 0 of`},
			reason: "PyIceberg 0.12.0 reads the double of a partition as a float; Java reads it right",
		},
		{
			peer: "py", doing: parts, tables: "double_identity_v*", says: []string{"the file says 0.10000000149011612"},
			reason: "PyIceberg 0.12.0 reads the double of a partition as a float; Java reads it right",
		},
		{
			peer: "py", doing: filters, tables: "tsn_identity_v3 tzn_identity_v3", says: []string{"'logicalType': 'timestamp-nanos'"},
			reason: "as it cannot read the table",
		},
		{
			peer: "py", doing: parts, tables: "tsn_identity_v3 tzn_identity_v3", says: []string{"'logicalType': 'timestamp-nanos'"},
			reason: "as it cannot read the table",
		},
	}
}
