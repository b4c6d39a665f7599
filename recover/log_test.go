package recovery_test

import (
	"log/slog"
	"strings"
	"sync"
)

// countingLog keeps what was logged.
type countingLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *countingLog) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *countingLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(b))
	return len(b), nil
}

// count counts the lines that hold text.
func (l *countingLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
