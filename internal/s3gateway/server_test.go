package s3gateway_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/rhizodat/rhizodat-go/internal/child/childtest"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/internal/s3gateway"
)

func launch(t *testing.T) *s3gateway.Server {
	t.Helper()
	s, err := s3gateway.Launch(t.Context())
	if errors.Is(err, s3gateway.ErrNoServer) {
		pgtest.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What was acknowledged is there after a crash, at the old address, and the
// directory goes with the server.
func TestRestart(t *testing.T) {
	s := launch(t)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("directory after Close: %v", err)
		}
	}()
	if err := s.MakeBucket(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}
	addr := s.Addr()
	object := s3.PutObjectInput{Bucket: aws.String("kept"), Key: aws.String("a/b"), Body: bytes.NewReader([]byte("text"))}
	if _, err := s.Client().PutObject(t.Context(), &object); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil || s.Running() || childtest.Answers(t, addr) {
		t.Fatalf("killed: %v, running %t", err, s.Running())
	}
	if err := s.Start(t.Context()); err != nil || s.Addr() != addr {
		t.Fatalf("started at %s, was at %s, %v", s.Addr(), addr, err)
	}
	out, err := s.Client().GetObject(t.Context(), &s3.GetObjectInput{Bucket: object.Bucket, Key: object.Key})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(out.Body); string(data) != "text" || err != nil {
		t.Errorf("it holds %q, %v", data, err)
	}
}

// TestOwner is the process that is killed by TestEndsWithItsOwner.
func TestOwner(*testing.T) {
	childtest.Owner(func(ctx context.Context) (dir, addr string, err error) {
		s, err := s3gateway.Launch(ctx)
		if err != nil {
			return "", "", err
		}
		return s.Dir(), s.Addr(), nil
	})
}

// However the owner ends, its server does not stay, nor its directory.
func TestEndsWithItsOwner(t *testing.T) {
	s := launch(t) // skips where there is none
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	childtest.EndsWithItsOwner(t, "TestOwner")
}
