package drevo_test

import (
	"context"
	"math/rand/v2"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/byteproxy"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/journaltest/linear"
)

// commitMessage is Bolt's COMMIT as it is sent: a chunk of two bytes, a structure
// without fields.
const commitMessage = "\x00\x02\xb0\x12\x00\x00"

// 16 clients, each over a connection whose COMMIT is cut now and then: before it is
// sent, behind it, or before its reply.
func TestConditionalWritesAreLinearizable(t *testing.T) {
	cluster := drevotest.Server(t)
	graph := cluster.Graph(t, "journal")
	install(t, open(t, graph.URL(), journal.Options{}))
	clients := make([]journal.Journal, 16)
	networks := make([]*byteproxy.Proxy, len(clients))
	for i := range clients {
		networks[i] = byteproxy.New(t, cluster.Addr())
		location, err := url.Parse(graph.URL())
		if err != nil {
			t.Fatal(err)
		}
		location.Host = networks[i].Addr()
		clients[i] = open(t, location.String(), journal.Options{Places: 1})
	}
	var cuts atomic.Int64
	counts := linear.Run{Clients: clients, Rounds: 50, Seed: 7, Fault: func(ctx context.Context, client int) context.Context {
		cuts.Add(1)
		manners := []byteproxy.Manner{byteproxy.Before, byteproxy.Behind, byteproxy.Reply}
		networks[client].Cut(commitMessage, manners[rand.IntN(len(manners))])
		return ctx
	}}.Check(t)
	t.Logf("%v, over connections that were cut %d times", counts, cuts.Load())
	if counts.Operations == 0 || counts.Won == 0 || counts.Lost == 0 || counts.Unknown == 0 {
		t.Errorf("it checked too little: %v", counts)
	}
}
