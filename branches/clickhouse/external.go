package clickhouse

import (
	"reflect"
	"strconv"
	"strings"

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

// source is what an INSERT selects the rows of a list from: rows and condition
// have to be one statement (C1). load sends the rows along. Over the native
// protocol that is an external table. Over HTTP it is the request's own body: an
// external table would be a part of a form, which the server takes several times as
// long to read.
func (s *Store) source(list *payloadTable) string {
	if !s.http() {
		return externalName
	}
	columns := make([]string, len(list.columns))
	for i, c := range list.columns {
		columns[i] = externalColumn(i) + " " + c.typ
	}
	return "input(" + chsql.Text(strings.Join(columns, ",")) + ")"
}

// load gives a statement that selects from source its rows: the text to send, and
// the tables that go with it.
func (s *Store) load(statement string, list *payloadTable) (string, []*ext.Table, error) {
	if !s.http() {
		tables, err := s.external(list)
		return statement, tables, err
	}
	size := len(statement) + 64
	for _, b := range list.blocks {
		size += b.raw + 64*len(list.columns)
	}
	var text strings.Builder
	text.Grow(size)
	text.WriteString(statement)
	// The server takes for rows what stands behind this end of line.
	text.WriteString(" FORMAT Native\n")
	for _, packed := range list.blocks {
		b, err := rawBlock(list.columns, packed)
		if err != nil {
			return "", nil, err
		}
		// Without a revision, as the server reads a file. Of raw columns nothing can
		// fail.
		if err := inBuffer(func(out *chproto.Buffer) error { return b.Encode(out, 0) }, text.Write); err != nil {
			return "", nil, err
		}
	}
	return text.String(), nil, nil
}

// external makes the external tables of a list. Over the native protocol every
// block is a packet of its own; over HTTP all of them are one file.
func (s *Store) external(list *payloadTable) ([]*ext.Table, error) {
	blocks := make([]*proto.Block, len(list.blocks))
	for i, packed := range list.blocks {
		b, err := rawBlock(list.columns, packed)
		if err != nil {
			return nil, err
		}
		blocks[i] = b
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

func rawBlock(columns []payloadColumn, packed block) (*proto.Block, error) {
	parts, err := packed.unpack(len(columns))
	if err != nil {
		return nil, err
	}
	b := proto.NewBlock()
	for i, c := range columns {
		b.Columns = append(b.Columns, &rawColumn{name: externalColumn(i), typ: column.Type(c.typ), rows: packed.rows, bytes: parts[i]})
	}
	return b, nil
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
