package rhizodat

import (
	"log/slog"
	"testing"
	"time"
)

// TestOptionDefaults: every default of the table is a text its option takes,
// and it is what the zero Config means.
func TestOptionDefaults(t *testing.T) {
	for _, o := range options {
		if o.fallback == "" {
			continue
		}
		var c Config
		if reason := o.set(&c, o.fallback); reason != "" {
			t.Errorf("%s: its default %s is refused: %s", o.key, o.fallback, reason)
		}
		if got := o.get(&c); got != "" && got != o.fallback && o.key != "max_clock_drift" {
			t.Errorf("%s: its default %s is written %s", o.key, o.fallback, got)
		}
	}
	zero := Config{Stores: map[string]StoreConfig{"pg": {URL: "postgres://h/a"}}}
	got := zero.WithDefaults()
	want := Config{
		Default: "pg", CommitTimeout: 20 * time.Second, FinishTimeout: 5 * time.Second, StaleAfter: 30 * time.Second,
		AlertAfter: 10 * time.Minute, LockTimeout: 10 * time.Second, MaxPayload: 64 << 20, Retain: 24 * time.Hour,
		MaxClockDrift: time.Minute, JournalConns: 16, JournalLabel: "DatJournal", CommitWait: 45 * time.Second,
	}
	for _, o := range options {
		if o.get(got) != o.get(&want) {
			t.Errorf("%s: default %q, want %q", o.key, o.get(got), o.get(&want))
		}
	}
	if got.OnPending != PendingError || got.Markers != MarkersAuto || got.Ping != PingAll || got.Logger == nil {
		t.Errorf("on_pending %v, markers %v, ping %v, logger %v", got.OnPending, got.Markers, got.Ping, got.Logger)
	}
	if zero.Default != "" || zero.CommitTimeout != 0 || zero.Logger != nil {
		t.Error("WithDefaults changed the Config it was called on")
	}
}

func TestWithDefaultsKeeps(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	c := Config{
		Stores:  map[string]StoreConfig{"a": {URL: "postgres://h/a"}, "b": {URL: "postgres://h/b"}},
		MinFree: 5, LockTimeout: NoLockTimeout, StaleAfter: time.Hour, OnPending: PendingOK, Logger: logger,
	}
	got := c.WithDefaults()
	if got.Default != "" || got.MinFree != 5 || got.LockTimeout != NoLockTimeout || got.StaleAfter != time.Hour ||
		got.OnPending != PendingOK || got.Logger != logger {
		t.Errorf("not kept: %s", got)
	}
}

func TestSizeText(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "1023": 1023, "1KiB": 1 << 10, "512KiB": 512 << 10, "64MiB": 64 << 20, "1GiB": 1 << 30,
		"3TiB": 3 << 40, "9223372036854775807": 1<<63 - 1, "8388607TiB": 8388607 << 40,
	} {
		n, ok := parseSize(text)
		if !ok || n != want {
			t.Errorf("parseSize(%q) = %d, %v", text, n, ok)
		}
		if got := formatSize(n); got != text {
			t.Errorf("formatSize(%d) = %s", n, got)
		}
	}
	for _, text := range []string{"", "KiB", "-1", "+1", "1.5GiB", "1 GiB", "1gib", "1K", "1MB", "9223372036854775808", "9007199254740992KiB", "0x10", "1_000"} {
		if n, ok := parseSize(text); ok {
			t.Errorf("parseSize(%q) = %d, want it refused", text, n)
		}
	}
}

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		20 * time.Second: "20s", 90 * time.Second: "1m30s", time.Minute: "1m", 24 * time.Hour: "24h",
		time.Hour + time.Second: "1h0m1s", 90 * time.Minute: "1h30m", 1500 * time.Millisecond: "1.5s", 10 * time.Minute: "10m",
	} {
		got := formatDuration(d)
		if got != want {
			t.Errorf("formatDuration(%v) = %s, want %s", d, got, want)
		}
		if back, err := time.ParseDuration(got); err != nil || back != d {
			t.Errorf("%s reads as %v, %v", got, back, err)
		}
	}
}

func TestWordsPrint(t *testing.T) {
	for got, want := range map[string]string{
		PendingOK.String(): "ok", PendingError.String(): "error", MarkersOn.String(): "on", MarkersAuto.String(): "auto",
		PingDefault.String(): "default", PingAll.String(): "all", Ping(7).String(): "value 7",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	keys := optionKeys()
	for name, want := range map[string]string{
		"comit_timeout": "commit_timeout", "stale": "stale_after", "JOURNAL": "journal", "minfree": "min_free",
		"journal_con": "journal_conns", "applicationname": "application_name", "lock": "lock_timeout", "retian": "retain",
	} {
		if got := nearest(name, keys); got != want {
			t.Errorf("nearest(%q) = %s, want %s", name, got, want)
		}
	}
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}} {
		if got := editDistance(tt.a, tt.b); got != tt.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
