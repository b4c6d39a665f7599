package sqlite_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/journaltest/linear"
)

// 16 clients of one file, whose calls are cut short now and then.
func TestConditionalWritesAreLinearizable(t *testing.T) {
	location := "file://" + filepath.Join(t.TempDir(), "journal.db")
	install(t, open(t, location, journal.Options{}))
	clients := make([]journal.Journal, 16)
	for i := range clients {
		clients[i] = open(t, location, journal.Options{Places: 1, Logger: slog.New(slog.DiscardHandler)})
	}
	counts := linear.Run{Clients: clients, Rounds: 30, Seed: 7, Fault: func(ctx context.Context, _ int) context.Context {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(3000))*time.Microsecond)
		t.Cleanup(cancel)
		return ctx
	}}.Check(t)
	t.Log(counts)
	if counts.Operations == 0 || counts.Won == 0 || counts.Lost == 0 || counts.Unknown == 0 {
		t.Errorf("it checked too little: %v", counts)
	}
}
