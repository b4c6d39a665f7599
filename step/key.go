package step

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/keeper"
	"github.com/rhizodat/rhizodat-go/journal"
)

const (
	// DefaultTTL is how long a claim lives when its owner has died.
	DefaultTTL = 30 * time.Second
	// MinTTL leaves a renewal the time to be answered.
	MinTTL = time.Second
	// MaxValue is the greatest size of a value, encoded, in bytes.
	MaxValue = journal.MaxStepValue
)

// Key names a step.
type Key struct {
	Execution string // the run that the step is a part of: a job's or an order's id
	Label     string // the step within it
	// Input is what the effect depends on: a changed input is another step. Its
	// JSON is hashed, so anything with a stable one will do; nil for none.
	Input any
}

// TooLarge means that a value is over MaxValue and was not recorded. Record a
// reference to it instead.
type TooLarge struct{ Size int }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("rhizodat: record step: the value has %d bytes, at most %d: store it elsewhere and record a reference", e.Size, MaxValue)
}

// Codec turns a value into bytes and back.
type Codec interface {
	Encode(v any) ([]byte, error)
	// Decode reads data into what v points to.
	Decode(data []byte, v any) error
}

// JSON is the codec of steps that name none.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

func (jsonCodec) Encode(v any) ([]byte, error)    { return json.Marshal(v) }
func (jsonCodec) Decode(data []byte, v any) error { return json.Unmarshal(data, v) }

// Option of a step.
type Option func(*settings)

type settings struct {
	codec     Codec
	ttl       time.Duration
	holder    string
	txOptions *sql.TxOptions
}

// WithCodec sets how values are encoded. All callers of a key use the same.
func WithCodec(c Codec) Option { return func(s *settings) { s.codec = c } }

// WithTTL sets how long the claim lives without a renewal; at least MinTTL. It
// is renewed while the effect runs, however long that takes.
func WithTTL(ttl time.Duration) Option { return func(s *settings) { s.ttl = ttl } }

// WithHolder names the owner of the claim, for people to find it by.
func WithHolder(name string) Option { return func(s *settings) { s.holder = name } }

// WithTxOptions sets what DoTx begins its transaction with.
func WithTxOptions(opts *sql.TxOptions) Option { return func(s *settings) { s.txOptions = opts } }

func prepare(key Key, opts []Option) (journal.StepKey, settings, error) {
	s := settings{codec: JSON, ttl: DefaultTTL}
	for _, o := range opts {
		o(&s)
	}
	if s.holder == "" {
		s.holder = keeper.NewHolder()
	}
	for _, part := range []struct{ what, text string }{{"execution", key.Execution}, {"label", key.Label}, {"holder", s.holder}} {
		if fault := keeper.Fault(part.text); fault != "" {
			return journal.StepKey{}, s, errors.New("rhizodat: run step: the " + part.what + " " + fault)
		}
	}
	if s.ttl < MinTTL {
		return journal.StepKey{}, s, fmt.Errorf("rhizodat: run step: a TTL of %s: at least %s, so that it can be renewed in time", s.ttl, MinTTL)
	}
	input, err := json.Marshal(key.Input)
	if err != nil {
		return journal.StepKey{}, s, fmt.Errorf("rhizodat: run step: hash its input: %w", err)
	}
	hash := sha256.Sum256(input)
	return journal.StepKey{Execution: key.Execution, Label: key.Label, Input: hex.EncodeToString(hash[:])}, s, nil
}

func (s settings) encode(v any) ([]byte, error) {
	value, err := s.codec.Encode(v)
	switch {
	case err != nil:
		return nil, fmt.Errorf("rhizodat: record step: encode its value: %w", err)
	case len(value) > MaxValue:
		return nil, &TooLarge{Size: len(value)}
	}
	return value, nil
}

func (s settings) decode(value []byte, into any) error {
	if err := s.codec.Decode(value, into); err != nil {
		return fmt.Errorf("rhizodat: read step: decode its value: %w", err)
	}
	return nil
}

// IdempotencyKey is the same for every run of the effect of one step and differs
// from that of any other: whoever is asked twice under it can do the work once.
// A step that asks several times derives a key for each. ok is false where ctx
// is not that of a step's effect.
func IdempotencyKey(ctx context.Context) (key string, ok bool) {
	c, ok := ctx.Value(claimKey{}).(*claim)
	if !ok {
		return "", false
	}
	return idempotencyKey(c.key), true
}

// idempotencyKey: the parts hold no NUL. The text is format: another version of
// this package must derive the same.
func idempotencyKey(k journal.StepKey) string {
	hash := sha256.Sum256([]byte("rhizodat.step\x00" + k.Execution + "\x00" + k.Label + "\x00" + k.Input))
	return hex.EncodeToString(hash[:16])
}
