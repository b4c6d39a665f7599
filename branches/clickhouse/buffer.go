package clickhouse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/rhizodat/rhizodat-go/branches"
)

// buffer is what a branch has written so far: per table and list of columns the
// rows, in blocks that are sealed and one that is open. What is sealed does not
// change any more, so a mark is a number of blocks.
type buffer struct {
	store *Store
	lists []*rowList
	// Bytes of the sealed blocks: of those that are packed, and of those that are
	// not yet.
	packed, loose int64
}

// rowList is the rows of one table that were given with the same columns.
type rowList struct {
	store   *Store
	table   *table
	columns []tableColumn
	types   []typed
	varied  []int // the columns whose values are not all of one size
	blocks  []block

	open  []column.Interface // the block that still grows
	rows  int                // in it
	bytes int                // about, in it
}

// A block is sealed at one of these. Large blocks make few and large parts in the
// table; the bound keeps the memory of a unit near its packed size.
const (
	sealRows  = 1 << 18
	sealBytes = 8 << 20
	// keepLoose is how many bytes of sealed blocks a unit keeps as they are. What a
	// unit of one store sends at once need not be packed before: that is dearer than
	// all else that is done with a row.
	keepLoose = 8 << 20
)

// mark is a place to go back to.
type mark map[*rowList]int

// list finds the rows of a table and these columns. The columns are checked
// against the table as it was last seen.
func (b *buffer) list(t *table, columns []string) (*rowList, error) {
	wanted, err := t.choose(b.store.name, columns)
	if err != nil {
		return nil, err
	}
	for _, l := range b.lists {
		if l.table.name == t.name && equalNames(l.columns, wanted) {
			return l, nil
		}
	}
	l := &rowList{store: b.store, table: t, columns: wanted, types: make([]typed, len(wanted))}
	zone := zoned{t.server.Timezone}
	for i, c := range wanted {
		if l.types[i] = zone.of(c.typ); l.types[i].own == nil || strings.Contains(c.typ, "String") {
			l.varied = append(l.varied, i)
		}
	}
	if err := l.begin(); err != nil {
		return nil, err
	}
	b.lists = append(b.lists, l)
	return l, nil
}

func equalNames(a, b []tableColumn) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].name != b[i].name {
			return false
		}
	}
	return true
}

// choose gives the columns of an INSERT: those it names, or all that take a
// value without being named, ours excepted.
func (t *table) choose(store string, names []string) ([]tableColumn, error) {
	if names == nil {
		var all []tableColumn
		for _, c := range t.columns {
			if c.insertable() && c.kind != "EPHEMERAL" && !c.ours() {
				all = append(all, c)
			}
		}
		return all, nil
	}
	seen := map[string]bool{}
	chosen := make([]tableColumn, len(names))
	for i, name := range names {
		c, ok := t.column(name)
		reason := ""
		switch {
		case !ok:
			reason = "there is no column " + name
		case c.ours():
			reason = "column " + name + " is filled by the driver"
		case !c.insertable():
			reason = "column " + name + " takes no value (" + c.kind + ")"
		case seen[name]:
			reason = "column " + name + " is named twice"
		}
		if reason != "" {
			return nil, &branches.StatementError{Store: store, Reason: "insert into " + t.name.String() + ": " + reason}
		}
		seen[name], chosen[i] = true, c
	}
	return chosen, nil
}

// begin opens a block.
func (l *rowList) begin() error {
	l.open, l.rows, l.bytes = make([]column.Interface, len(l.columns)), 0, 0
	for i, c := range l.columns {
		made, err := newColumn(c, &l.table.server)
		if err != nil {
			return &branches.Error{
				Store: l.store.name, Doing: "insert into " + l.table.name.String(), Err: err,
				Cause: "column " + c.name + " has a type that clickhouse-go does not know",
				Asks:  branches.Permanent,
			}
		}
		l.open[i] = made
	}
	return nil
}

// check turns a row into what the columns take, in checked. Nothing is kept of it.
func (l *rowList) check(row, checked []any) error {
	if len(row) != len(l.columns) {
		return &branches.Error{
			Store: l.store.name, Doing: "insert into " + l.table.name.String(),
			Cause: fmt.Sprintf("%d values for %d columns", len(row), len(l.columns)),
			Asks:  branches.Permanent,
		}
	}
	for i, v := range row {
		if has := l.types[i].own; has != nil && has(v) {
			checked[i] = v
			continue
		}
		value, err := l.types[i].check(v)
		if err == nil && l.types[i].trial {
			err = l.try(i, value)
		}
		if err != nil {
			return &ValueError{Table: l.table.name.String(), Column: l.columns[i].name, Type: l.columns[i].typ, Value: v, Err: err}
		}
		checked[i] = value
	}
	return nil
}

// try appends a value to a column that is thrown away.
func (l *rowList) try(i int, value any) error {
	scratch, err := newColumn(l.columns[i], &l.table.server)
	if err != nil {
		return err
	}
	return scratch.AppendRow(value)
}

// add appends checked rows. An error leaves the open block unusable: the branch
// is doomed by it.
func (l *rowList) add(b *buffer, row []any) error {
	for i, value := range row {
		if err := l.open[i].AppendRow(value); err != nil {
			return fmt.Errorf("append to column %s of %s: %w", l.columns[i].name, l.table.name, err)
		}
	}
	l.bytes += usual * (len(row) - len(l.varied))
	for _, i := range l.varied {
		l.bytes += weight(row[i])
	}
	if l.rows++; l.rows < sealRows && l.bytes < sealBytes {
		return nil
	}
	return b.seal(l)
}

// usual is about how many bytes a value takes that is no text and no list.
const usual = 16

// weight is about how many bytes a value takes.
func weight(v any) int {
	switch x := v.(type) {
	case string:
		return len(x) + 8
	case []any:
		n := 8
		for _, e := range x {
			n += weight(e)
		}
		return n
	case *pairs:
		n := 8
		for _, e := range *x {
			n += weight(e.key) + weight(e.value)
		}
		return n
	}
	return usual
}

// seal ends the open block.
func (b *buffer) seal(l *rowList) error {
	if l.rows == 0 {
		return nil
	}
	parts := make([][]byte, len(l.open))
	for i, c := range l.open {
		part, err := encodeColumn(c)
		if err != nil {
			return fmt.Errorf("encode column %s of %s: %w", l.columns[i].name, l.table.name, err)
		}
		parts[i] = part
		giveBack(c)
	}
	sealed, err := newBlock(l.rows, parts)
	if err != nil {
		return err
	}
	l.blocks = append(l.blocks, sealed)
	b.loose += int64(sealed.raw)
	if err := b.fit(); err != nil {
		return err
	}
	return l.begin()
}

// fit packs the sealed blocks when they are many, and refuses a unit whose packed
// blocks are too many.
func (b *buffer) fit() error {
	limit := b.store.opts.MaxPayload
	if b.loose > keepLoose || limit > 0 && b.packed+b.loose > limit {
		if err := b.pack(); err != nil {
			return err
		}
	}
	if limit > 0 && b.packed > limit {
		return &branches.Error{
			Store: b.store.name, Doing: "buffer rows", Err: ErrTooLarge,
			Cause: fmt.Sprintf("%d bytes, packed, are above the bound of %d", b.packed, limit),
			Way:   "commit more often, or raise max_payload",
			Asks:  branches.Permanent,
		}
	}
	return nil
}

// pack packs every sealed block.
func (b *buffer) pack() error {
	for _, l := range b.lists {
		for i := range l.blocks {
			sealed := &l.blocks[i]
			if sealed.loose == nil {
				continue
			}
			if err := sealed.pack(); err != nil {
				return err
			}
			b.loose -= int64(sealed.raw)
			b.packed += int64(len(sealed.packed))
		}
	}
	return nil
}

// mark seals what is open and remembers how much there is.
func (b *buffer) mark() (mark, error) {
	m := mark{}
	for _, l := range b.lists {
		if err := b.seal(l); err != nil {
			return nil, err
		}
		m[l] = len(l.blocks)
	}
	return m, nil
}

// back drops what came after a mark.
func (b *buffer) back(m mark) error {
	for _, l := range b.lists {
		for _, dropped := range l.blocks[m[l]:] {
			if b.packed -= int64(len(dropped.packed)); dropped.loose != nil {
				b.loose -= int64(dropped.raw)
			}
		}
		l.blocks = l.blocks[:m[l]]
		if err := l.begin(); err != nil {
			return err
		}
	}
	return nil
}

// drop forgets the lists of a table that hold no row; it reports whether none
// does.
func (b *buffer) drop(name tableName) bool {
	for _, l := range b.lists {
		if l.table.name == name && (l.rows > 0 || len(l.blocks) > 0) {
			return false
		}
	}
	b.lists = slices.DeleteFunc(b.lists, func(l *rowList) bool { return l.table.name == name })
	return true
}

// empty reports whether nothing is kept.
func (b *buffer) empty() bool {
	for _, l := range b.lists {
		if l.rows > 0 || len(l.blocks) > 0 {
			return false
		}
	}
	return true
}

// tables lists the tables that have rows, each once.
func (b *buffer) tables() []*table {
	var all []*table
	seen := map[tableName]bool{}
	for _, l := range b.lists {
		if (l.rows > 0 || len(l.blocks) > 0) && !seen[l.table.name] {
			seen[l.table.name] = true
			all = append(all, l.table)
		}
	}
	return all
}

// payload seals everything and makes the payload of it.
func (b *buffer) payload() (*payload, error) {
	p := &payload{}
	for _, l := range b.lists {
		if err := b.seal(l); err != nil {
			return nil, err
		}
		if len(l.blocks) == 0 {
			continue
		}
		t := payloadTable{name: l.table.name, blocks: l.blocks}
		for _, c := range l.columns {
			t.columns = append(t.columns, payloadColumn{c.name, c.typ})
		}
		p.tables = append(p.tables, t)
	}
	return p, nil
}
