package drevo_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// A wire is a Bolt connection by hand, for what no driver would send. It knows
// just enough of PackStream: small maps, strings and integers.
type wire struct {
	t *story
	c net.Conn
}

func (r *rig) dial(slots ...uint32) (*wire, []byte) {
	c, err := net.DialTimeout("tcp", r.addr(), 5*time.Second)
	r.t.must(err, "dial")
	r.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	hello := binary.BigEndian.AppendUint32(nil, 0x6060B017)
	for i := range 4 {
		var s uint32
		if i < len(slots) {
			s = slots[i]
		}
		hello = binary.BigEndian.AppendUint32(hello, s)
	}
	_, err = c.Write(hello)
	r.t.must(err, "handshake")
	reply := make([]byte, 4)
	_, err = io.ReadFull(c, reply)
	r.t.must(err, "handshake reply")
	return &wire{r.t, c}, reply
}

func pack(b []byte, v any) []byte {
	switch x := v.(type) {
	case int:
		return binary.BigEndian.AppendUint64(append(b, 0xCB), uint64(x))
	case string:
		b = binary.BigEndian.AppendUint16(append(b, 0xD1), uint16(len(x)))
		return append(b, x...)
	case map[string]any:
		b = append(b, 0xA0|byte(len(x)))
		for k, e := range x {
			b = pack(pack(b, k), e)
		}
		return b
	}
	panic(fmt.Sprintf("pack %T", v))
}

// send writes one request.
func (w *wire) send(tag byte, fields ...any) {
	m := []byte{0xB0 | byte(len(fields)), tag}
	for _, f := range fields {
		m = pack(m, f)
	}
	b := binary.BigEndian.AppendUint16(nil, uint16(len(m)))
	_, err := w.c.Write(append(append(b, m...), 0, 0))
	w.t.must(err, "send")
}

// recv reads one reply and returns its tag and raw bytes.
func (w *wire) recv() (byte, string) {
	var m []byte
	for {
		var n uint16
		w.t.must(binary.Read(w.c, binary.BigEndian, &n), "receive")
		if n == 0 {
			return m[1], string(m[2:])
		}
		b := make([]byte, n)
		_, err := io.ReadFull(w.c, b)
		w.t.must(err, "receive")
		m = append(m, b...)
	}
}

// ask sends and returns the tag of the one reply.
func (w *wire) ask(tag byte, fields ...any) (byte, string) {
	w.send(tag, fields...)
	return w.recv()
}

const (
	success = byte(0x70)
	record  = byte(0x71)
	ignored = byte(0x7E)
	failure = byte(0x7F)
)

type m = map[string]any
