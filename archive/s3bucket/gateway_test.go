package s3bucket_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rhizodat/rhizodat-go/archive"
	"github.com/rhizodat/rhizodat-go/archive/s3bucket"
	"github.com/rhizodat/rhizodat-go/internal/s3gateway"
	"github.com/rhizodat/rhizodat-go/internal/s3test"
)

// realServer is a bucket of a server that is a process of its own.
func realServer(t *testing.T) *server {
	t.Helper()
	g := s3test.Server(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s3gateway.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", g.Secret())
	return behind(g.Front(t), g.Bucket(t, "archive"))
}

func TestConditionsOfARealServer(t *testing.T) { conditions(t, realServer(t)) }

func TestTwoPushersOnARealServer(t *testing.T) { twoPushers(t, realServer(t)) }

// Sixteen clients replace one version at once: one of them wins.
func TestOneOfManyReplaces(t *testing.T) {
	s := realServer(t)
	first := s.bucket(t)
	if won, err := first.Create(t.Context(), "k", []byte("0")); err != nil || !won {
		t.Fatal(won, err)
	}
	for round := range 10 {
		before, version, err := first.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		var won atomic.Int64
		var writers sync.WaitGroup
		for w := range 16 {
			b := s.bucket(t)
			writers.Go(func() {
				ok, err := b.Replace(t.Context(), "k", fmt.Appendf(nil, "%d by %d", round, w), version)
				if err != nil {
					t.Errorf("round %d: %v", round, err)
				}
				if ok {
					won.Add(1)
				}
			})
		}
		writers.Wait()
		after, now, err := first.Get(t.Context(), "k")
		if err != nil || won.Load() != 1 || now == version {
			t.Fatalf("round %d: %d of 16 won, %q became %q, %v", round, won.Load(), before, after, err)
		}
	}
}

// Without credentials, or with wrong ones, nothing is pushed, and the error says so.
func TestCredentials(t *testing.T) {
	s := realServer(t)
	for name, tc := range map[string]struct{ key, secret, want string }{
		"wrong": {s3gateway.Key, "fixture-wrong", "SignatureDoesNotMatch"},
		"none":  {"", "", "credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ACCESS_KEY_ID", tc.key)
			t.Setenv("AWS_SECRET_ACCESS_KEY", tc.secret)
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
			t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
			b, err := s3bucket.Open(t.Context(), s.url)
			if err != nil {
				t.Fatal(err)
			}
			_, err = archive.Open(t.Context(), b, archive.Options{Journal: "j"})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "fixture") {
				t.Errorf("open: %v, want %q", err, tc.want)
			}
		})
	}
	if keys, err := s.bucket(t).List(t.Context(), ""); err != nil || len(keys) != 0 {
		t.Errorf("the bucket holds %v, %v", keys, err)
	}
}
