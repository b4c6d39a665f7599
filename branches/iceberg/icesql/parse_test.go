package icesql_test

import (
	"os"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
)

// exact compares statements; iceberg-go's types hide their fields.
var exact = cmp.Options{
	cmp.Comparer(func(a, b iceberg.FixedType) bool { return a == b }),
	cmp.Comparer(func(a, b iceberg.DecimalType) bool { return a == b }),
}

func mustParse(t *testing.T, text string) icesql.Statement {
	t.Helper()
	s, err := icesql.Parse(text)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return s
}

func corpus(tb testing.TB) []string {
	tb.Helper()
	raw, err := os.ReadFile("testdata/statements.sql")
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

func TestPrintedStatementIsReadAsTheSame(t *testing.T) {
	for _, text := range corpus(t) {
		first := mustParse(t, text)
		again := mustParse(t, first.String())
		if d := cmp.Diff(first, again, exact); d != "" {
			t.Errorf("%s\nprinted as\n%s\n%s", text, first, d)
		}
	}
}
