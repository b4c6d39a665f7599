package postgres_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/cutproxy"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/journaltest/linear"
)

// 16 clients, each over a connection that is cut now and then: before a request
// is sent, or behind it.
func TestConditionalWritesAreLinearizable(t *testing.T) {
	cluster := pgtest.Server(t)
	_, dsn := installed(t, cluster)
	clients := make([]journal.Journal, 16)
	proxies := make([]*cutproxy.Proxy, len(clients))
	for i := range clients {
		proxies[i] = cutproxy.New(t, cluster.Addr())
		clients[i] = open(t, proxies[i].DSN(dsn), journal.Options{Places: 1})
	}
	var mu sync.Mutex
	cuts := 0
	counts := linear.Run{Clients: clients, Rounds: 50, Seed: 7, Fault: func(ctx context.Context, client int) context.Context {
		mu.Lock()
		defer mu.Unlock()
		cuts++
		write := cutproxy.Contains("synchronous_commit")
		if rand.IntN(2) == 0 {
			proxies[client].CutBefore(write, cutproxy.Times(1))
		} else {
			proxies[client].CutAfter(write, cutproxy.Times(1))
		}
		return ctx
	}}.Check(t)
	t.Logf("%v, over connections that were cut %d times", counts, cuts)
	if counts.Operations == 0 || counts.Won == 0 || counts.Lost == 0 || counts.Unknown == 0 {
		t.Errorf("it checked too little: %v", counts)
	}
}
