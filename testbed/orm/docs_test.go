package orm_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docsFile is where the code of this module is shown.
const docsFile = "../../docs/orms.md"

var (
	// A region of tested code: "// docs: NAME" to "// :docs".
	region = regexp.MustCompile(`(?s)// docs: ([a-z ]+)\n(.*?)\n[\t ]*(?:\n[\t ]*)?// :docs`)
	// A block of the manual, with the name of its region.
	block = regexp.MustCompile("(?s)<!-- ([a-z ]+) -->\n```go\n(.*?)\n```")
)

// TestDocs holds every Go block of the manual to the code that is tested.
func TestDocs(t *testing.T) {
	tested := map[string]string{}
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	for _, file := range files {
		code, err := os.ReadFile(file)
		must(t, err)
		for _, found := range region.FindAllStringSubmatch(string(code), -1) {
			tested[found[1]] = dedented(found[2])
		}
	}
	manual, err := os.ReadFile(docsFile)
	must(t, err)
	blocks := block.FindAllStringSubmatch(string(manual), -1)
	if all := strings.Count(string(manual), "```go\n"); all != len(blocks) || all == 0 {
		t.Errorf("%d of %d Go blocks name the code that they are", len(blocks), all)
	}
	for _, found := range blocks {
		name, shown := found[1], found[2]
		if code, ok := tested[name]; !ok {
			t.Errorf("no code is marked as %q", name)
		} else if code != shown {
			t.Errorf("%s: the manual shows\n%s\n\nand the tests run\n%s", name, shown, code)
		}
		delete(tested, name)
	}
	for name := range tested {
		t.Errorf("%s is marked for the manual and not in it", name)
	}
}

// dedented takes the indentation of the first line off all of them.
func dedented(code string) string {
	indent := code[:len(code)-len(strings.TrimLeft(code, "\t"))]
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indent)
	}
	return strings.Join(lines, "\n")
}
