package branches

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// TxnID is a dat_txn: the identity of one meta-transaction, a UUIDv7 (RFC 9562),
// so that it carries the millisecond of its birth. The zero TxnID is none.
type TxnID uuid.UUID

// NewTxnID makes an id that no other process has made or will make.
func NewTxnID() (TxnID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return TxnID{}, fmt.Errorf("rhizodat: make dat_txn: %w", err)
	}
	return TxnID(id), nil
}

// ParseTxnID reads the canonical form that String prints.
func ParseTxnID(s string) (TxnID, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return TxnID{}, errors.New("rhizodat: parse dat_txn: want a UUID of 36 characters")
	}
	return TxnID(id), nil
}

func (t TxnID) String() string { return uuid.UUID(t).String() }

// IsZero reports whether t names no meta-transaction.
func (t TxnID) IsZero() bool { return t == TxnID{} }

// Time is the wall clock at the id's birth, in milliseconds; the zero time for
// an id that is not a UUIDv7.
func (t TxnID) Time() time.Time {
	if uuid.UUID(t).Version() != 7 {
		return time.Time{}
	}
	ms := int64(t[0])<<40 | int64(t[1])<<32 | int64(t[2])<<24 | int64(t[3])<<16 | int64(t[4])<<8 | int64(t[5])
	return time.UnixMilli(ms)
}

// MarshalText and UnmarshalText make a TxnID a string in JSON and in flags.
func (t TxnID) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the canonical form.
func (t *TxnID) UnmarshalText(b []byte) error {
	id, err := ParseTxnID(string(b))
	if err != nil {
		return err
	}
	*t = id
	return nil
}

// Value passes a TxnID to a store as text.
func (t TxnID) Value() (driver.Value, error) { return t.String(), nil }

// GID is the name under which a store holds a prepared branch:
// dat:<dat_txn>:<store>. Recovery knows its own by that form.
type GID string

const gidPrefix = "dat:"

// NewGID names the branch of txn in store.
func NewGID(txn TxnID, store string) GID {
	return GID(gidPrefix + txn.String() + ":" + store)
}

// ParseGID reads a gid; anything that NewGID could not have made is an error.
func ParseGID(s string) (GID, error) {
	rest, ok := strings.CutPrefix(s, gidPrefix)
	if !ok || len(rest) < 38 || rest[36] != ':' {
		return "", errors.New("rhizodat: parse gid: want dat:<dat_txn>:<store>")
	}
	txn, err := ParseTxnID(rest[:36])
	if err != nil || txn.String() != rest[:36] || !ValidName(rest[37:]) {
		return "", errors.New("rhizodat: parse gid: want dat:<dat_txn>:<store>")
	}
	return GID(s), nil
}

func (g GID) String() string { return string(g) }

// Txn is the meta-transaction that g belongs to; zero for a gid not made by
// NewGID or ParseGID.
func (g GID) Txn() TxnID {
	if len(g) < 40 {
		return TxnID{}
	}
	txn, err := ParseTxnID(string(g[4:40]))
	if err != nil {
		return TxnID{}
	}
	return txn
}

// Store is the name of the store that g belongs to.
func (g GID) Store() string {
	if len(g) < 42 {
		return ""
	}
	return string(g[41:])
}

// ValidName reports whether s is a store's name: [a-z][a-z0-9_]{0,31}.
// The bound keeps every gid far below PostgreSQL's 200 bytes.
func ValidName(s string) bool {
	if s == "" || len(s) > 32 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}
