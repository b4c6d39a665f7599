package clickhouse

import (
	"reflect"
	"strconv"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"

	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

// externalName is the name of the table that a statement brings along.
const externalName = "dat_payload"

func externalColumn(i int) string { return "c" + strconv.Itoa(i) }

func quoteName(name string) string { return chsql.Name(name) }

// external makes the external tables of a list. Over the native protocol every
// block is a packet of its own; over HTTP all of them are one file.
func (s *Store) external(list *payloadTable) ([]*ext.Table, error) {
	blocks := make([]*proto.Block, len(list.blocks))
	for i, b := range list.blocks {
		parts, err := b.unpack(len(list.columns))
		if err != nil {
			return nil, err
		}
		blocks[i] = rawBlock(list.columns, b.rows, parts)
	}
	if s.http() && len(blocks) > 1 {
		join(blocks)
		blocks = blocks[:1]
	}
	tables := make([]*ext.Table, len(blocks))
	for i, b := range blocks {
		made, err := ext.NewTable(externalName)
		if err != nil {
			return nil, err
		}
		*made.Block() = *b
		tables[i] = made
	}
	return tables, nil
}

func rawBlock(columns []payloadColumn, rows int, parts [][]byte) *proto.Block {
	b := proto.NewBlock()
	for i, c := range columns {
		b.Columns = append(b.Columns, &rawColumn{name: externalColumn(i), typ: column.Type(c.typ), rows: rows, bytes: parts[i]})
	}
	return b
}

// join makes one Native file of all blocks. A file is its blocks one behind the
// other, so the last column of each writes the block that follows.
func join(blocks []*proto.Block) {
	for i, b := range blocks[:len(blocks)-1] {
		last, ok := b.Columns[len(b.Columns)-1].(*rawColumn)
		if ok {
			last.next = blocks[i+1]
		}
	}
}

// rawColumn is a column whose bytes are known. It is written and never read: the
// client only encodes what it sends.
type rawColumn struct {
	name  string
	typ   column.Type
	rows  int
	bytes []byte
	next  *proto.Block // what follows in the file
}

var _ column.Interface = (*rawColumn)(nil)

// Name is the column's name.
func (c *rawColumn) Name() string { return c.name }

// Type is the column's type.
func (c *rawColumn) Type() column.Type { return c.typ }

// Rows is how many there are.
func (c *rawColumn) Rows() int { return c.rows }

// Encode writes the bytes.
func (c *rawColumn) Encode(out *chproto.Buffer) {
	out.PutRaw(c.bytes)
	if c.next != nil {
		// Without a revision a block is its two numbers and its columns; of raw
		// columns nothing can fail.
		_ = c.next.Encode(out, 0)
	}
}

// Row, ScanRow, Append, AppendRow, Decode, ScanType and Reset make up the
// interface.
func (c *rawColumn) Row(int, bool) any { return nil }

// ScanRow is never called.
func (c *rawColumn) ScanRow(any, int) error { return errRaw }

// Append is never called.
func (c *rawColumn) Append(any) ([]uint8, error) { return nil, errRaw }

// AppendRow is never called.
func (c *rawColumn) AppendRow(any) error { return errRaw }

// Decode is never called.
func (c *rawColumn) Decode(*chproto.Reader, int) error { return errRaw }

// ScanType is never called.
func (c *rawColumn) ScanType() reflect.Type { return reflect.TypeFor[any]() }

// Reset is never called.
func (c *rawColumn) Reset() {}
