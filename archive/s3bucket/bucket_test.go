package s3bucket_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/rhizodat/rhizodat-go/archive"
	"github.com/rhizodat/rhizodat-go/archive/s3bucket"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/s3test"
	"github.com/rhizodat/rhizodat-go/journal"
)

// server is an S3 server behind a front that can answer in its place.
type server struct {
	*s3test.Front
	url string
}

// newServer is one in process.
func newServer(t *testing.T) *server {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "fixture")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "fixture-secret")
	backend := s3mem.New()
	if err := backend.CreateBucket("archive"); err != nil {
		t.Fatal(err)
	}
	return behind(s3test.NewFront(t, gofakes3.New(backend).Server()), "archive")
}

func behind(front *s3test.Front, bucket string) *server {
	return &server{front, "s3://" + bucket + "/prod?region=us-east-1&path_style=true&endpoint=" + front.URL}
}

func (s *server) bucket(t *testing.T) archive.Bucket {
	t.Helper()
	b, err := s3bucket.Open(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestConditions(t *testing.T) { conditions(t, newServer(t)) }

func conditions(t *testing.T, s *server) {
	t.Helper()
	b := s.bucket(t)
	if _, _, err := b.Get(t.Context(), "k"); !errors.Is(err, archive.ErrAbsent) {
		t.Errorf("Get of nothing: %v", err)
	}
	expect := func(name string, want bool) func(bool, error) {
		return func(won bool, err error) {
			t.Helper()
			if err != nil || won != want {
				t.Errorf("%s: %t, %v, want %t", name, won, err, want)
			}
		}
	}
	expect("create", true)(b.Create(t.Context(), "k", []byte("1")))
	expect("second create", false)(b.Create(t.Context(), "k", []byte("2")))
	_, version, err := b.Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	expect("replace", true)(b.Replace(t.Context(), "k", []byte("3"), version))
	expect("second replace", false)(b.Replace(t.Context(), "k", []byte("4"), version))
	if data, _, err := b.Get(t.Context(), "k"); err != nil || string(data) != "3" {
		t.Errorf("it holds %q, %v", data, err)
	}
	if keys, err := b.List(t.Context(), ""); err != nil || len(keys) != 1 || keys[0] != "k" {
		t.Errorf("List: %v, %v", keys, err)
	}
	for range 2 {
		if err := b.Delete(t.Context(), "k"); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
}

// Lost is lost, and nothing else is: above all not an answer that says nothing
// of the object.
func TestAnswers(t *testing.T) {
	s := newServer(t)
	b := s.bucket(t)
	if _, err := b.Create(t.Context(), "k", []byte("1")); err != nil {
		t.Fatal(err)
	}
	_, version, err := b.Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		s3test.Answer
		replaceLost, createLost bool
	}{
		{s3test.Answer{Code: "PreconditionFailed", HTTP: 412}, true, true},
		{s3test.Answer{Code: "ConditionalRequestConflict", HTTP: 409}, true, true},
		{s3test.Answer{Code: "NoSuchKey", HTTP: 404}, true, false},
		{s3test.Answer{Code: "NoSuchBucket", HTTP: 404}, false, false},
		{s3test.Answer{Code: "NotFound", HTTP: 404}, false, false},
		{s3test.Answer{Code: "SlowDown", HTTP: 503}, false, false},
		{s3test.Answer{Code: "AccessDenied", HTTP: 403}, false, false},
	} {
		s.Set(func() s3test.Answer { return tc.Answer })
		won, err := b.Replace(t.Context(), "k", []byte("2"), version)
		if won || (err == nil) != tc.replaceLost {
			t.Errorf("replace answered %d %s: %t, %v", tc.HTTP, tc.Code, won, err)
		}
		won, err = b.Create(t.Context(), "other", []byte("2"))
		if won || (err == nil) != tc.createLost {
			t.Errorf("create answered %d %s: %t, %v", tc.HTTP, tc.Code, won, err)
		}
	}
}

// A bucket that is not there is an error, not an archive without parts.
func TestAbsentBucketIsNoEmptyArchive(t *testing.T) {
	s := newServer(t)
	s.url = strings.Replace(s.url, "//archive/", "//nowhere/", 1)
	a, err := archive.Open(t.Context(), s.bucket(t), archive.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := a.Manifest(t.Context()); err == nil || errors.Is(err, archive.ErrAbsent) {
		t.Errorf("Manifest: %+v, %v", m, err)
	}
}

// Two pushers, twenty rounds each, through 412, 409, 404, 503 and lost replies:
// the manifest names every part exactly once.
func TestTwoPushers(t *testing.T) { twoPushers(t, newServer(t)) }

func twoPushers(t *testing.T, s *server) {
	t.Helper()
	var archives [2]*archive.Archive
	for i := range archives {
		a, err := archive.Open(t.Context(), s.bucket(t), archive.Options{Journal: "j", Pusher: fmt.Sprint(i), Stalled: 50})
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = a
	}
	s.Set(s3test.Storm())
	var pushers sync.WaitGroup
	for _, a := range archives {
		pushers.Go(func() {
			for range 20 {
				txn, err := branches.NewTxnID()
				if err != nil {
					t.Error(err)
				}
				list := []journal.Record{{Txn: txn, State: journal.StateDone}}
				for tries := 0; ; tries++ {
					if err := a.Push(t.Context(), list); err == nil {
						break
					} else if tries > 20 {
						t.Errorf("push: %v", err)
						return
					}
				}
			}
		})
	}
	pushers.Wait()
	s.Set(nil)
	v, err := archives[0].Verify(t.Context(), nil)
	if err != nil || v.Parts != 40 || v.Records != 40 || v.Twice != 0 || len(v.Damage)+len(v.Unnamed) != 0 {
		t.Errorf("Verify: %+v, %v, want 40 parts, each named once", v, err)
	}
	injected := s.Injected()
	for _, kind := range []string{"412", "409", "404", "503", "lost"} {
		if injected[kind] == 0 {
			t.Errorf("nothing of %s was injected: %v", kind, injected)
		}
	}
	t.Logf("injected: %v", injected)
}

func TestOpenRefuses(t *testing.T) {
	for url, want := range map[string]string{
		"https://b/p":                  "not an s3://",
		"s3:///p":                      "not an s3://",
		"s3://key:fixture-secret@b/p":  "holds no credentials",
		"s3://b/p?secret=fixture-pass": `unknown parameter "secret"`,
	} {
		_, err := s3bucket.Open(t.Context(), url)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "fixture") {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}
