// Package s3test gives tests S3 buckets of their own, on a real server: Versity's
// gateway over a folder. [Server] is the shared one of a test run, [Own] one that a
// test may kill. Both are thrown away afterwards.
package s3test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/internal/s3gateway"
)

// Gateway is a server with as many buckets as tests ask for.
type Gateway struct{ *s3gateway.Server }

// Not of any test's context: the server is for all of them, and ends with the
// process.
var shared = sync.OnceValues(func() (*s3gateway.Server, error) { return s3gateway.Launch(context.Background()) })

// Server returns the server that all tests of a package share. The test is
// skipped where there is none.
func Server(tb testing.TB) *Gateway {
	tb.Helper()
	server, err := shared()
	return usable(tb, server, err)
}

// Own starts a server for this test alone and removes it afterwards.
func Own(tb testing.TB) *Gateway {
	tb.Helper()
	server, err := s3gateway.Launch(tb.Context())
	g := usable(tb, server, err)
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Errorf("close own server: %v", err)
		}
	})
	return g
}

func usable(tb testing.TB, server *s3gateway.Server, err error) *Gateway {
	tb.Helper()
	if errors.Is(err, s3gateway.ErrNoServer) {
		pgtest.Skip(tb, err.Error())
	}
	if err != nil {
		tb.Fatalf("S3 for tests: %v", err)
	}
	return &Gateway{server}
}

// Bucket makes an empty bucket whose name begins with prefix and returns its name.
func (g *Gateway) Bucket(tb testing.TB, prefix string) string {
	tb.Helper()
	name := strings.ToLower(prefix + "-" + rand.Text()[:12])
	if err := g.MakeBucket(tb.Context(), name); err != nil {
		tb.Fatal(err)
	}
	return name
}
