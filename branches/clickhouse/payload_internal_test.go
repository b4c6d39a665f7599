package clickhouse

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func payloads(t *rapid.T) *payload {
	p := &payload{}
	for range rapid.IntRange(0, 3).Draw(t, "tables") {
		table := payloadTable{name: tableName{rapid.String().Draw(t, "database"), rapid.String().Draw(t, "table")}}
		for range rapid.IntRange(1, 4).Draw(t, "columns") {
			table.columns = append(table.columns, payloadColumn{rapid.String().Draw(t, "name"), rapid.String().Draw(t, "type")})
		}
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			parts := make([][]byte, len(table.columns))
			for i := range parts {
				parts[i] = rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
			}
			b, err := newBlock(rapid.IntRange(1, 1000).Draw(t, "rows"), parts)
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "packed already") {
				if err := b.pack(); err != nil {
					t.Fatal(err)
				}
			}
			table.blocks = append(table.blocks, b)
		}
		p.tables = append(p.tables, table)
	}
	return p
}

// TestPayload: what is encoded is read again, byte by byte, and a payload with
// any byte changed or cut off is refused.
func TestPayload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := payloads(t)
		meant := contents(t, p)
		data := encoded(t, p)
		read, err := decodePayload(data)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encoded(t, read), data) {
			t.Fatal("encoded again it is other bytes")
		}
		if diff := cmp.Diff(meant, contents(t, read), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		for _, bad := range [][]byte{data[:at], flipped(data, at), append(bytes.Clone(data), 0)} {
			if _, err := decodePayload(bad); !errors.Is(err, ErrPayload) {
				t.Fatalf("damaged at %d: %v", at, err)
			}
		}
	})
}

// contents are the bytes of every column of every block.
func contents(t interface{ Fatal(...any) }, p *payload) (all [][][]byte) {
	for _, table := range p.tables {
		for _, b := range table.blocks {
			parts, err := b.unpack(len(table.columns))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, parts)
		}
	}
	return all
}

func encoded(t interface{ Fatal(...any) }, p *payload) []byte {
	data, err := p.encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func flipped(data []byte, at int) []byte {
	bad := bytes.Clone(data)
	bad[at] ^= 0x40
	return bad
}

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

// A payload of version 1 as it was first written: it is read for ever.
func TestPayloadVersion1(t *testing.T) {
	const file = "testdata/payload-v1.bin"
	parts := [][]byte{{1, 0, 0, 0, 2, 0, 0, 0}, {1, 'a', 1, 'b'}}
	if *rewrite {
		b, err := newBlock(2, parts)
		if err != nil {
			t.Fatal(err)
		}
		p := &payload{tables: []payloadTable{{
			name: tableName{"d", "t"}, columns: []payloadColumn{{"k", "UInt32"}, {"s", "String"}}, blocks: []block{b},
		}}}
		if err := os.WriteFile(file, encoded(t, p), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := decodePayload(data)
	if err != nil || len(p.tables) != 1 || len(p.tables[0].blocks) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	table := p.tables[0]
	if table.name.String() != "d.t" || table.rows() != 2 || table.columns[1] != (payloadColumn{"s", "String"}) {
		t.Errorf("table %+v", table)
	}
	got, err := table.blocks[0].unpack(2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parts, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecodePayload(f *testing.F) {
	b, err := newBlock(1, [][]byte{{1}})
	if err != nil {
		f.Fatal(err)
	}
	p := payload{tables: []payloadTable{{name: tableName{"d", "t"}, columns: []payloadColumn{{"k", "UInt8"}}, blocks: []block{b}}}}
	f.Add(encoded(f, &p))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := decodePayload(data)
		if err != nil {
			if !errors.Is(err, ErrPayload) {
				t.Fatal(err)
			}
			return
		}
		for _, table := range read.tables {
			for _, b := range table.blocks {
				if _, err := b.unpack(len(table.columns)); err != nil && !errors.Is(err, ErrPayload) {
					t.Fatal(err)
				}
			}
		}
	})
}
