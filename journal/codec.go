package journal

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Names of the keys of a branch and of a note. They are format (docs/journal.md).
const (
	keyClaim    = "claim"
	keyRemarks  = "remarks"
	keyStore    = "store"
	keyGID      = "gid"
	keyTwoPhase = "two_phase"
	keyPayload  = "payload"
	keyOutcome  = "outcome"
	keyReason   = "reason"
)

// newBranch is a branch without unknown keys, which is how each is born. Its keys
// stand in the order in which those of a map are written.
type newBranch struct {
	GID      branches.GID `json:"gid"`
	Outcome  Outcome      `json:"outcome,omitempty"`
	Payload  []byte       `json:"payload"`
	Reason   string       `json:"reason,omitempty"`
	Store    string       `json:"store"`
	TwoPhase bool         `json:"two_phase"`
}

// MarshalJSON writes the branch with the unknown keys it was read with.
func (b Branch) MarshalJSON() ([]byte, error) {
	if len(b.extra) == 0 {
		return json.Marshal(newBranch{b.GID, b.Outcome, b.Payload, b.Reason, b.Store, b.TwoPhase})
	}
	known := map[string]any{
		keyStore: b.Store, keyGID: b.GID, keyTwoPhase: b.TwoPhase, keyPayload: b.Payload,
	}
	if b.Outcome != OutcomeNormal {
		known[keyOutcome] = b.Outcome
	}
	if b.Reason != "" {
		known[keyReason] = b.Reason
	}
	return marshal(known, b.extra)
}

// UnmarshalJSON reads a branch and keeps what it does not know.
func (b *Branch) UnmarshalJSON(data []byte) error {
	*b = Branch{}
	extra, err := unmarshal(data, map[string]any{
		keyStore: &b.Store, keyGID: &b.GID, keyTwoPhase: &b.TwoPhase,
		keyPayload: &b.Payload, keyOutcome: &b.Outcome, keyReason: &b.Reason,
	})
	if err != nil {
		return fmt.Errorf("rhizodat: read journal branch: %w", err)
	}
	if b.Store == "" {
		return errNoStore
	}
	b.extra, b.stored = extra, ending{b.Outcome, b.Reason}
	return nil
}

var errNoStore = errors.New("rhizodat: read journal branch: it names no store")

// MarshalJSON writes the note with the unknown keys it was read with.
func (n Note) MarshalJSON() ([]byte, error) {
	known := map[string]any{}
	if n.Claim != nil {
		known[keyClaim] = n.Claim
	}
	if len(n.Remarks) > 0 {
		known[keyRemarks] = n.Remarks
	}
	return marshal(known, n.extra)
}

// UnmarshalJSON reads a note and keeps what it does not know.
func (n *Note) UnmarshalJSON(data []byte) error {
	*n = Note{}
	extra, err := unmarshal(data, map[string]any{keyClaim: &n.Claim, keyRemarks: &n.Remarks})
	if err != nil {
		return fmt.Errorf("rhizodat: read journal note: %w", err)
	}
	n.extra = extra
	return nil
}

func marshal(known map[string]any, extra map[string]json.RawMessage) ([]byte, error) {
	for key, value := range extra {
		known[key] = value
	}
	return json.Marshal(known)
}

// unmarshal reads the known keys of an object and returns the others. Unlike a
// struct's, its keys are those of the format to the letter: encoding/json takes
// "Payload" for "payload", and the key would come back twice.
func unmarshal(data []byte, known map[string]any) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	for key, into := range known {
		raw, ok := all[key]
		if !ok {
			continue
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return nil, fmt.Errorf("key %s: %w", key, err)
		}
		delete(all, key)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}
