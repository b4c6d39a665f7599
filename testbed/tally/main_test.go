package main

import (
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	const pass = `{"Action":"output","Package":"p","Test":"A","Output":"noise of A\n"}
{"Action":"pass","Package":"p","Test":"A"}
`
	for name, c := range map[string]struct {
		in   string
		ok   bool
		want []string
		not  string
	}{
		"all passed": {pass + `{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}`, true, []string{"ok  \tp\t0.1s\n", "\n1 passed, 0 failed, 0 skipped\n"}, "noise"},
		"a failure": {pass + `{"Action":"output","Package":"p","Test":"B","Output":"why B failed\n"}
{"Action":"fail","Package":"p","Test":"B"}
{"Action":"fail","Package":"p"}`, false, []string{"why B failed\n", "1 passed, 1 failed, 0 skipped\n"}, "noise"},
		"a skip": {pass + `{"Action":"output","Package":"p","Test":"B","Output":"SKIP-NO-SERVER: none\n"}
{"Action":"skip","Package":"p","Test":"B"}`, false, []string{"SKIP-NO-SERVER", "1 passed, 0 failed, 1 skipped\n"}, "noise"},
		"a package without tests": {pass + `{"Action":"skip","Package":"q"}`, true, []string{"1 passed, 0 failed, 0 skipped\n"}, "noise"},
		"left out": {pass + `{"Action":"output","Package":"p","Test":"B","Output":"    x_test.go:7: ran 3, left out 1 (no server)\n"}
{"Action":"pass","Package":"p","Test":"B"}`, false, []string{"ran 3, left out 1 (no server)", "2 passed, 0 failed, 0 skipped\n"}, "noise"},
		"may leave out": {`{"Action":"output","Package":"small","Test":"B","Output":"    x_test.go:7: ran 3, left out 1 (no savepoints)\n"}
{"Action":"pass","Package":"small","Test":"B"}`, true, []string{"ran 3, left out 1 (no savepoints)", "1 passed, 0 failed, 0 skipped\n"}, "failure"},
		"nothing left out": {`{"Action":"output","Package":"p","Test":"B","Output":"    x_test.go:7: ran 3, left out 0\n"}
{"Action":"pass","Package":"p","Test":"B"}`, true, []string{"ran 3, left out 0", "1 passed, 0 failed, 0 skipped\n"}, "failure"},
		"a password": {`{"Action":"output","Package":"p","Test":"A","Output":"dsn=postgres://u:fixture-ABCDEFGHIJKLMNOPQRSTUVWXYZ@h/d\n"}
{"Action":"pass","Package":"p","Test":"A"}`, false, []string{"a password was printed by p A\n", "1 passed, 0 failed"}, "ABCDEFGH"},
		"does not build": {pass + `{"ImportPath":"q","Action":"build-output","Output":"q.go:1: syntax error\n"}
{"Action":"fail","Package":"q"}`, false, []string{"q.go:1: syntax error\n", "1 passed, 1 failed, 0 skipped\n"}, "noise"},
		"panic ends the package": {`{"Action":"output","Package":"p","Test":"B","Output":"panic: in B\n"}
{"Action":"fail","Package":"p"}`, false, []string{"panic: in B\n", "0 passed, 1 failed, 0 skipped\n"}, "skipped, which"},
		"nothing ran":    {``, false, []string{"no test passed\n0 passed, 0 failed, 0 skipped\n"}, "noise"},
		"not of go test": {"go: a message\n" + pass, true, []string{"go: a message\n"}, "noise"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			tally := &tally{out: &out, mayLeaveOut: "small", output: map[key][]byte{}, failedIn: map[string]int{}}
			if err := tally.read(strings.NewReader(c.in)); err != nil {
				t.Fatal(err)
			}
			if ok := tally.sum(); ok != c.ok {
				t.Errorf("ok = %v, want %v", ok, c.ok)
			}
			text := "\n" + out.String()
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("output lacks %q:\n%s", want, text)
				}
			}
			if strings.Contains(text, c.not) {
				t.Errorf("output has %q:\n%s", c.not, text)
			}
		})
	}
}
