package rhizodat_test

import (
	"fmt"
	"strings"
	"testing"

	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// worker recovers what a DSN reaches, however young it is.
func worker(t *testing.T, dsn string) *recovery.Worker {
	t.Helper()
	cfg, err := connector(t, dsn, nil).Recovery()
	if err != nil {
		t.Fatal(err)
	}
	cfg.StaleAfter = -1 // at once
	w, err := recovery.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// passOver makes one pass of recovery.
func passOver(t *testing.T, dsn string) recovery.Report {
	t.Helper()
	report, err := worker(t, dsn).Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// doctor is what recovery finds, a line for each finding.
func doctor(t *testing.T, w *recovery.Worker) string {
	t.Helper()
	var all strings.Builder
	for _, e := range w.Doctor(t.Context()) {
		for _, f := range e.Findings {
			fmt.Fprintf(&all, "%s: %s: %s: %s (%s)\n", e.Where, f.Severity, f.Check, f.Text, f.Way)
		}
	}
	return all.String()
}
