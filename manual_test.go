package rhizodat

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the table of options into doc.go")

// TestManual holds the table of the package comment to the table of options.
func TestManual(t *testing.T) {
	var want strings.Builder
	row := func(key, fallback, values, about string) {
		line := fmt.Sprintf("//\t%-16s  %-10s  %-22s %s", key, fallback, values, about)
		want.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("option", "default", "value", "meaning")
	for _, o := range options {
		row(o.key, o.fallback, o.values, o.about)
	}
	raw, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?m)^//\toption .*\n(//\t.*\n)*`)
	got := table.FindString(string(raw))
	if got == want.String() {
		return
	}
	if !*rewrite {
		t.Fatalf("the table in doc.go is not that of the options; run: go test -run TestManual -rewrite .\n%s", want.String())
	}
	if err := os.WriteFile("doc.go", table.ReplaceAllLiteral(raw, []byte(want.String())), 0o644); err != nil {
		t.Fatal(err)
	}
}
