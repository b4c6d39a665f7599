// Command tally reads the output of "go test -json" and prints what plain
// "go test" would, then one line "N passed, N failed, N skipped".
//
// It exits with 1 if a test failed, if a test was skipped, if a suite left
// something out ("ran N, left out M" with M > 0), or if no test ran: where
// this runs everything is installed, so that what did not run is a failure. So
// is a fixture's password anywhere in what the tests, the library or its
// programs print or log; the line is not repeated.
// The packages named by -may-leave-out may leave out items of a suite: adapters
// that have not every optional ability.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// event is a line of test2json; see "go doc test2json".
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

type key struct{ pkg, test string }

// tally counts results and keeps the output of tests until they have one.
type tally struct {
	out                     io.Writer
	mayLeaveOut             string // packages, in white space
	broken                  error  // of out
	output                  map[key][]byte
	failedIn                map[string]int // by package: to find failures that belong to no test
	passed, failed, skipped int
	leftOut, secrets        int
}

// secret is a password as internal/pgserver, internal/pgtest and their kin make
// them.
var secret = regexp.MustCompile(`fixture-[A-Z2-7]{20,}`)

// suite is what suites say of themselves, or of other figures; it is shown
// though their tests pass.
var suite = regexp.MustCompile(`\bran \d+, left out (\d+)\b|^figure `)

func main() {
	t := &tally{out: os.Stdout, output: map[key][]byte{}, failedIn: map[string]int{}}
	flag.StringVar(&t.mayLeaveOut, "may-leave-out", "", "the import paths of packages whose suites may leave items out")
	flag.Parse()
	if err := t.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	if !t.sum() {
		os.Exit(1)
	}
}

func (t *tally) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			t.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		t.say(string(line)) // not an event: a message of the go command
		return
	}
	at := key{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		t.keep(at, e)
	case "pass":
		if e.Test != "" {
			t.passed++
		}
		delete(t.output, at)
	case "skip":
		if e.Test != "" { // a package without tests is "skipped" too
			t.skipped++
			t.show(at)
		}
		delete(t.output, at)
	case "fail":
		t.fail(at)
	}
}

func (t *tally) keep(at key, e event) {
	if secret.MatchString(e.Output) {
		t.secrets++
		t.say("a password was printed by " + at.pkg + " " + at.test + "\n")
		e.Output = secret.ReplaceAllString(e.Output, "fixture-xxxxx")
	}
	if e.Test == "" {
		if e.Output != "PASS\n" && e.Output != "FAIL\n" {
			t.say(e.Output)
		}
		return
	}
	if found := suite.FindStringSubmatch(e.Output); found != nil {
		t.say(e.Output)
		if found[1] != "" && found[1] != "0" && !slices.Contains(strings.Fields(t.mayLeaveOut), at.pkg) {
			t.leftOut++
		}
		return
	}
	t.output[at] = append(t.output[at], e.Output...)
}

func (t *tally) fail(at key) {
	switch {
	case at.test != "":
		t.failed++
		t.failedIn[at.pkg]++
		t.show(at)
	case t.failedIn[at.pkg] == 0: // did not build, panicked, timed out
		t.failed++
		for unfinished := range t.output {
			if unfinished.pkg == at.pkg {
				t.show(unfinished)
			}
		}
	}
}

func (t *tally) show(at key) {
	t.say(string(t.output[at]))
	delete(t.output, at)
}

func (t *tally) say(text string) {
	if _, err := io.WriteString(t.out, text); err != nil {
		t.broken = err
	}
}

// sum prints the closing line and tells whether all is well.
func (t *tally) sum() bool {
	if t.skipped > 0 {
		t.say("tests were skipped, which is a failure here\n")
	}
	if t.leftOut > 0 {
		t.say("suites left something out, which is a failure here\n")
	}
	if t.secrets > 0 {
		t.say("passwords were printed, which is a failure\n")
	}
	if t.passed == 0 {
		t.say("no test passed\n")
	}
	t.say(fmt.Sprintf("%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped))
	return t.broken == nil && t.passed > 0 && t.failed == 0 && t.skipped == 0 && t.leftOut == 0 && t.secrets == 0
}
