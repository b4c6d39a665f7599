package step

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/memjournal"
)

// wire is the network: it keeps what was sent.
type wire struct{ sent []*http.Request }

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.sent = append(w.sent, req)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok")), Request: req}, nil
}

type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

func post(ctx context.Context, t *testing.T, client *http.Client, b io.Reader, header string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bank.example/charge", b)
	if err != nil {
		t.Fatal(err)
	}
	if header != "" {
		req.Header.Set("Idempotency-Key", header)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func TestTransport(t *testing.T) {
	j, net := memjournal.New(hlc.System), &wire{}
	client := &http.Client{Transport: &Transport{Base: net}}
	r := runnerOf(t, j)
	broken := errors.New("broken")
	for i, end := range []error{broken, nil} { // the effect is entered twice
		_, err := charge(t.Context(), r, func(ctx context.Context) (string, error) {
			if err := post(ctx, t, client, strings.NewReader("5"), ""); err != nil {
				t.Error(err)
			}
			if id, ok := IdempotencyKey(ctx); !ok || id != net.sent[i].Header.Get("Idempotency-Key") {
				t.Errorf("IdempotencyKey: %q, %t", id, ok)
			}
			return "paid", end
		})
		if !errors.Is(err, end) {
			t.Errorf("got %v", err)
		}
	}
	first, second := net.sent[0].Header.Get("Idempotency-Key"), net.sent[1].Header.Get("Idempotency-Key")
	if first == "" || first != second || first != idempotencyKey(r.key) {
		t.Errorf("the two runs had the keys %q and %q", first, second)
	}
	if err := post(t.Context(), t, client, nil, ""); err != nil || net.sent[2].Header.Get("Idempotency-Key") != "" {
		t.Errorf("outside of a step: %v, %v", err, net.sent[2].Header)
	}
}

// An owner that was replaced sends nothing.
func TestTransportAsksForStanding(t *testing.T) {
	j, net := memjournal.New(hlc.System), &wire{}
	client := &http.Client{Transport: &Transport{Base: net}}
	s, err := j.Steps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := runnerOf(t, j)
	_, err = charge(t.Context(), r, func(ctx context.Context) (string, error) {
		if err := post(ctx, t, client, nil, "own key"); err != nil || net.sent[0].Header.Get("Idempotency-Key") != "own key" {
			t.Errorf("a key of the caller's: %v, %v", err, net.sent[0].Header)
		}
		stands, err := s.Get(ctx, r.key)
		if err != nil {
			return "", err
		}
		if _, err := s.Release(ctx, r.key, stands.Token); err != nil {
			return "", err
		}
		b := &body{Reader: strings.NewReader("5")}
		err = post(ctx, t, client, b, "")
		if _, ok := errors.AsType[*Superseded](err); !ok || !b.closed {
			t.Errorf("got %v, body closed %t", err, b.closed)
		}
		return "", err
	})
	if _, ok := errors.AsType[*Superseded](err); !ok || len(net.sent) != 1 {
		t.Errorf("got %v, and %d requests were sent", err, len(net.sent))
	}
	// An error of the journal is no permission.
	var off atomic.Bool
	_, err = charge(t.Context(), runnerOf(t, j.Node(cut(&off))), func(ctx context.Context) (string, error) {
		off.Store(true)
		defer off.Store(false)
		return "", post(ctx, t, client, nil, "")
	})
	if !errors.Is(err, memjournal.ErrLost) || len(net.sent) != 1 {
		t.Errorf("got %v, and %d requests were sent", err, len(net.sent))
	}
}
