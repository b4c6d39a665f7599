package cutproxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// Messages that the proxy reads; all others pass unread.
const (
	msgQuery   = 'Q'
	msgParse   = 'P'
	msgBind    = 'B'
	msgExecute = 'E'
	msgClose   = 'C'
	msgSync    = 'S'
	msgFlush   = 'H'
	msgCall    = 'F'
	msgReady   = 'Z' // from the server
	msgKey     = 'K' // from the server
)

// Codes in place of a protocol version in the first message.
const (
	codeCancel = 80877102
	codeTLS    = 80877103
	codeGSS    = 80877104
)

const maxMessage = 1 << 30 // PostgreSQL's own limit

var errLength = errors.New("cutproxy: message length out of range")

// message is one message as it was read, head included.
type message struct {
	kind byte // 0 for the first messages of a connection, which have none
	raw  []byte
	body []byte // part of raw
}

func readMessage(from io.Reader) (message, error) {
	return readAfter(from, 1)
}

// readFirst reads a message of the start of a connection.
func readFirst(from io.Reader) (message, error) {
	return readAfter(from, 0)
}

func readAfter(from io.Reader, kindBytes int) (message, error) {
	const lengthBytes = 4
	head := make([]byte, kindBytes+lengthBytes)
	if _, err := io.ReadFull(from, head); err != nil {
		return message{}, err
	}
	length := binary.BigEndian.Uint32(head[kindBytes:])
	if length < lengthBytes || length > maxMessage {
		return message{}, errLength
	}
	raw := make([]byte, kindBytes+int(length))
	copy(raw, head)
	if _, err := io.ReadFull(from, raw[len(head):]); err != nil {
		return message{}, err
	}
	m := message{raw: raw, body: raw[len(head):]}
	if kindBytes == 1 {
		m.kind = head[0]
	}
	return m, nil
}

// code is the protocol version or request code of a first message.
func (m message) code() uint32 {
	if len(m.body) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(m.body)
}

// text cuts a zero-terminated string off body.
func text(body []byte) (value string, rest []byte) {
	head, rest, _ := bytes.Cut(body, []byte{0})
	return string(head), rest
}

// statements knows what the names of one connection stand for.
type statements struct {
	parsed map[string]string // statement name -> text
	bound  map[string]string // portal name -> text
}

// executes takes note of a client's message, and answers the text of the
// statement that it executes, if it executes one.
func (s *statements) executes(m message) (sql string, ok bool) {
	switch m.kind {
	case msgQuery:
		sql, _ = text(m.body)
		return sql, true
	case msgParse:
		name, rest := text(m.body)
		s.parsed[name], _ = text(rest)
	case msgBind:
		portal, rest := text(m.body)
		name, _ := text(rest)
		s.bound[portal] = s.parsed[name]
	case msgExecute:
		portal, _ := text(m.body)
		return s.bound[portal], true
	case msgClose:
		if len(m.body) > 0 && m.body[0] == 'S' {
			name, _ := text(m.body[1:])
			delete(s.parsed, name)
		}
	}
	return "", false
}
