package clickhouse

import (
	"bytes"
	"fmt"
	"sync"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
)

// columns keeps the columns of sealed blocks for the next ones, of the types that a
// program uses most and whose Reset leaves nothing behind. They have grown already,
// which is dear: a column doubles some 16 times on the way to its block.
var columns = func() map[string]*sync.Pool {
	kept := make(map[string]*sync.Pool, len(own))
	for typ := range own {
		kept[typ] = new(sync.Pool)
	}
	return kept
}()

// giveBack ends the use of a column.
func giveBack(c column.Interface) {
	if kept, ok := columns[string(c.Type())]; ok {
		c.Reset()
		kept.Put(c)
	}
}

// newColumn makes the client's column of a type, or hands out one that was given back:
// its name may then be another column's. Types that it cannot read make
// it panic here and there.
func newColumn(c tableColumn, server *column.ServerContext) (made column.Interface, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("read type %s: %v", c.typ, caught)
		}
	}()
	if kept, ok := columns[c.typ]; ok {
		if again, ok := kept.Get().(column.Interface); ok {
			return again, nil
		}
	}
	return column.Type(wire(c.typ)).Column(c.name, server)
}

// encodeColumn gives a column's bytes in the Native format, without its header.
func encodeColumn(c column.Interface) (encoding []byte, err error) {
	err = inBuffer(func(out *chproto.Buffer) error {
		if custom, ok := c.(column.CustomSerialization); ok {
			if err := custom.WriteStatePrefix(out); err != nil {
				return err
			}
		}
		c.Encode(out)
		return nil
	}, func(all []byte) (int, error) {
		encoding = bytes.Clone(all)
		return len(all), nil
	})
	return encoding, err
}

// inBuffer hands over what encode has written, in a buffer that is kept for the next
// time: texts make one grow many times over.
func inBuffer(encode func(*chproto.Buffer) error, to func([]byte) (int, error)) error {
	out, ok := encodings.Get().(*chproto.Buffer)
	if !ok {
		out = new(chproto.Buffer)
	}
	defer func() {
		if cap(out.Buf) <= maxEncoding {
			out.Reset()
			encodings.Put(out)
		}
	}()
	if err := encode(out); err != nil {
		return err
	}
	_, err := to(out.Buf)
	return err
}

var encodings sync.Pool

// maxEncoding is the size above which a buffer is not kept.
const maxEncoding = 2 * sealBytes
