package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	manifestKey     = "manifest.json"
	manifestVersion = 1
)

// Manifest is the list of an archive's parts, in the order in which they were
// named. Its JSON is format.
type Manifest struct {
	Version int    `json:"version"`
	Journal string `json:"journal"` // the id of the journal whose records these are
	Parts   []Part `json:"parts"`
}

// Part is one immutable object of records.
type Part struct {
	Name     string `json:"name"` // its key
	Bytes    int64  `json:"bytes"`
	Records  int    `json:"records"`
	First    string `json:"first"` // lowest and highest dat_txn
	Last     string `json:"last"`
	Pusher   string `json:"pusher,omitempty"`
	PushedMS int64  `json:"pushed_ms"`
}

func (m Manifest) names(part string) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { return p.Name == part })
}

// with is the manifest with one part more.
func (m Manifest) with(journal string, part Part) Manifest {
	return Manifest{Version: manifestVersion, Journal: journal, Parts: append(slices.Clone(m.Parts), part)}
}

func (m Manifest) encode() ([]byte, error) { return json.MarshalIndent(m, "", " ") }

// manifest reads the manifest and its version. None is an empty one, of no version.
func (a *Archive) manifest(ctx context.Context) (Manifest, Version, error) {
	data, version, err := a.bucket.Get(ctx, manifestKey)
	if errors.Is(err, ErrAbsent) {
		return Manifest{Version: manifestVersion}, "", nil
	}
	if err != nil {
		return Manifest{}, "", fmt.Errorf("rhizodat: read archive's manifest: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return m, "", &Damaged{Key: manifestKey, Err: err}
	}
	if m.Version > manifestVersion {
		return m, "", &Damaged{Key: manifestKey, Err: fmt.Errorf("its version is %d, this program knows up to %d: use a newer rhizodat", m.Version, manifestVersion)}
	}
	return m, version, nil
}

// backoff waits with full jitter, so that pushers do not lose in lockstep.
func backoff(round int) time.Duration {
	limit := min(50*time.Millisecond<<min(round, 6), 2*time.Second)
	return rand.N(limit) //nolint:gosec // jitter
}
