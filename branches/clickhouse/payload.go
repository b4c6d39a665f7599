package clickhouse

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A payload is what a unit inserts, complete: recovery has nothing else. Its
// layout is format; payloadVersion is its first byte, and a version once
// released is read for ever.
//
//	version        1 byte
//	tables         number, then each:
//	  database     text
//	  table        text
//	  columns      number, then each: name text, type text
//	  blocks       number, then each:
//	    rows       number
//	    raw        number: the bytes below, unpacked
//	    packed     text: zstd of, for each column, its length and its bytes in
//	               ClickHouse's Native format (state prefix and data)
//	check          CRC-32C of all before, 4 bytes, little endian
//
// Numbers are unsigned varints; a text is its length and its bytes. The bytes of
// a column are what the client made of the values at S3 and are not read again:
// the server gets them as they are. There is no dat_txn and no dat_tx_time in
// it: those are the record's.
type payload struct{ tables []payloadTable }

type payloadTable struct {
	name    tableName
	columns []payloadColumn
	blocks  []block
}

type payloadColumn struct{ name, typ string }

// block is some rows: loose, as the bytes of each column, or packed.
type block struct {
	rows   int
	raw    int      // bytes before packing
	loose  [][]byte // nil once it is packed
	packed []byte
}

func (t *payloadTable) rows() int {
	n := 0
	for _, b := range t.blocks {
		n += b.rows
	}
	return n
}

const (
	payloadVersion = 1
	// maxRaw bounds what one block may unpack to. Blocks are sealed far below it;
	// one row may be large.
	maxRaw = 1 << 30
)

// ErrPayload says that a payload is damaged, or of a later version than this program
// knows.
var ErrPayload = errors.New("rhizodat: read payload: damaged, or made by a newer rhizodat")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode packs what is loose.
func (p *payload) encode() ([]byte, error) {
	size := 64
	for _, t := range p.tables {
		for i := range t.blocks {
			b := &t.blocks[i]
			if err := b.pack(); err != nil {
				return nil, err
			}
			size += len(b.packed) + 32
		}
	}
	out := append(make([]byte, 0, size), payloadVersion)
	out = binary.AppendUvarint(out, uint64(len(p.tables)))
	for _, t := range p.tables {
		out = appendText(appendText(out, t.name.database), t.name.table)
		out = binary.AppendUvarint(out, uint64(len(t.columns)))
		for _, c := range t.columns {
			out = appendText(appendText(out, c.name), c.typ)
		}
		out = binary.AppendUvarint(out, uint64(len(t.blocks)))
		for _, b := range t.blocks {
			out = binary.AppendUvarint(out, uint64(b.rows)) //nolint:gosec // counts
			out = binary.AppendUvarint(out, uint64(b.raw))  //nolint:gosec // counts
			out = binary.AppendUvarint(out, uint64(len(b.packed)))
			out = append(out, b.packed...)
		}
	}
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli)), nil
}

func appendText(out []byte, text string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

// decodePayload reads a payload. Its blocks stay packed.
func decodePayload(data []byte) (*payload, error) {
	if len(data) < 5 || data[0] != payloadVersion {
		return nil, ErrPayload
	}
	body, sum := data[:len(data)-4], data[len(data)-4:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return nil, ErrPayload
	}
	r := &payloadReader{rest: body[1:]}
	p := &payload{tables: make([]payloadTable, r.count())}
	for i := range p.tables {
		t := &p.tables[i]
		t.name = tableName{r.text(), r.text()}
		t.columns = make([]payloadColumn, r.count())
		for j := range t.columns {
			t.columns[j] = payloadColumn{r.text(), r.text()}
		}
		t.blocks = make([]block, r.count())
		for j := range t.blocks {
			t.blocks[j] = block{rows: r.number(), raw: r.number(), packed: r.bytes()}
		}
	}
	if r.failed || len(r.rest) > 0 {
		return nil, ErrPayload
	}
	return p, nil
}

// payloadReader reads numbers and texts; after a failure all of them are zero.
type payloadReader struct {
	rest   []byte
	failed bool
}

func (r *payloadReader) number() int {
	n, width := binary.Uvarint(r.rest)
	if width <= 0 || n > maxRaw {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[width:]
	return int(n)
}

// count is a number of things that take at least a byte each.
func (r *payloadReader) count() int {
	n := r.number()
	if n > len(r.rest) {
		r.failed, r.rest = true, nil
		return 0
	}
	return n
}

func (r *payloadReader) bytes() []byte {
	n := r.count()
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *payloadReader) text() string { return string(r.bytes()) }

// The packers are for all stores; both may be used by many at once.
var (
	packer = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	})
	unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxRaw))
	})
)

// newBlock is a loose block of the bytes of its columns.
func newBlock(rows int, columns [][]byte) (block, error) {
	b := block{rows: rows, loose: columns}
	for _, c := range columns {
		b.raw += len(binary.AppendUvarint(nil, uint64(len(c)))) + len(c)
	}
	if b.raw > maxRaw {
		return block{}, ErrTooLarge
	}
	return b, nil
}

// pack makes a loose block a packed one.
func (b *block) pack() error {
	if b.loose == nil {
		return nil
	}
	raw := make([]byte, 0, b.raw)
	for _, c := range b.loose {
		raw = append(binary.AppendUvarint(raw, uint64(len(c))), c...)
	}
	z, err := packer()
	if err != nil {
		return err
	}
	b.loose, b.packed = nil, z.EncodeAll(raw, nil)
	return nil
}

// unpack gives the bytes of each column.
func (b block) unpack(columns int) ([][]byte, error) {
	if b.loose != nil {
		return b.loose, nil
	}
	z, err := unpacker()
	if err != nil {
		return nil, err
	}
	raw, err := z.DecodeAll(b.packed, make([]byte, 0, min(b.raw, 1<<20)))
	if err != nil || len(raw) != b.raw {
		return nil, ErrPayload
	}
	r := &payloadReader{rest: raw}
	parts := make([][]byte, columns)
	for i := range parts {
		parts[i] = r.bytes()
	}
	if r.failed || len(r.rest) > 0 {
		return nil, ErrPayload
	}
	return parts, nil
}
