package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/await"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// The daemon: it recovers, answers HTTP, and ends in order.
func TestRun(t *testing.T) {
	t.Parallel()
	r := installed(t, "stale_after=200ms", "commit_timeout=100ms")
	undecided, decided := r.leave(t, false), r.leave(t, true)
	r.cluster.Exec(t, r.journal, `INSERT INTO dat_lease (name, holder, token, fence, expires_at) VALUES ('gone', 'n', 't', 3, 0), ('free', '', 't', 1, 0)`)
	address := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	var errs lockedBuffer
	ended := make(chan int)
	go func() {
		ended <- run(ctx, console{
			args: []string{"run", "--interval=50ms", "--listen", address}, out: &errs, err: &errs,
			env: func(key string) (string, bool) { return r.dsn, key == envDSN },
		})
	}()
	defer stop()
	await.Until(t, "readyz", func() bool { code, _ := get(address, "/readyz"); return code == http.StatusOK })
	await.Until(t, "recovery", func() bool {
		return r.cluster.Int(t, r.journal, "SELECT count(*) FROM dat_journal WHERE state IN ('DONE', 'ABORTED')") == 2
	})
	await.Until(t, "the counters", func() bool {
		_, text := get(address, "/metrics")
		return strings.Contains(text, "rhizodat_recovery_rolled_back_total 1\n") && strings.Contains(text, "rhizodat_recovery_rolled_forward_total 1\n")
	})
	code, text := get(address, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("/metrics: %d", code)
	}
	for _, line := range []string{
		`rhizodat_recovery_passes_total{result="ok"}`, `rhizodat_recovery_items{kind="stuck"} 0`, `rhizodat_recovery_records{state="COMMITTED"} 0`,
		`rhizodat_recovery_store_standing{standing="ok",store="a"} 1`, `rhizodat_recovery_store_sweeps{store="b"}`,
		`rhizodat_recovery_store_oldest_prepared_age_seconds{store="a"}`, `rhizodat_recovery_pass_seconds_count`,
		`rhizodat_recovery_leases{state="lapsed"} 1`, `rhizodat_recovery_leases{state="held"} 0`, `rhizodat_recovery_steps{state="claimed"} 0`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	if strings.Contains(text, r.cluster.Password()) && r.cluster.Password() != "" {
		t.Error("/metrics holds a password")
	}
	if code, text := get(address, "/healthz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("/healthz: %d %q", code, text)
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d after the signal: %s", code, errs.String())
	}
	if code, _ := get(address, "/healthz"); code != 0 {
		t.Error("it still answers HTTP after its end")
	}
	for txn, want := range map[string]string{undecided.String(): "ABORTED", decided.String(): "DONE"} {
		if got := r.cluster.Strings(t, r.journal, "SELECT state FROM dat_journal WHERE dat_txn = $1", txn); len(got) != 1 || got[0] != want {
			t.Errorf("unit %s is %v, want %s", txn, got, want)
		}
	}
}

// An address that is taken is an error at the start, not a line in a log.
func TestRunAddressTaken(t *testing.T) {
	t.Parallel()
	r := installed(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if got := call(t, r.dsn, "", "run", "--listen", listener.Addr().String()); got.code != exitError || !strings.Contains(got.err, "listen") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
}

// Healthy means that passes are made; ready, that the last one was finished.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := newWatch(time.Second)
	if w.healthy() != "" || w.ready() == "" {
		t.Errorf("before the first pass: healthy %q, ready %q", w.healthy(), w.ready())
	}
	w.Pass(t.Context(), recovery.Report{}, nil)
	if w.healthy() != "" || w.ready() != "" {
		t.Errorf("after a pass: healthy %q, ready %q", w.healthy(), w.ready())
	}
	w.Pass(t.Context(), recovery.Report{}, context.DeadlineExceeded)
	if w.healthy() != "" || w.ready() == "" {
		t.Errorf("after a failed pass: healthy %q, ready %q", w.healthy(), w.ready())
	}
	w.lastPass = w.lastPass.Add(-w.patience - time.Second)
	if w.healthy() == "" {
		t.Error("healthy although no pass was made for a long time")
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// get returns 0 when nobody answers.
func get(address, path string) (int, string) {
	answer, err := http.Get(fmt.Sprintf("http://%s%s", address, path))
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, ""
	}
	return answer.StatusCode, string(body)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
