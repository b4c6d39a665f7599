package clickhouse

import (
	"context"
	"slices"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

// plain is a commit without a marker: what the client itself would do. Where the
// table has the columns of ours they are filled in.
func (s *Store) plain(ctx context.Context, b *Branch) error {
	for i := range b.payload.tables {
		list := &b.payload.tables[i]
		if err := s.plainList(ctx, b, list); err != nil {
			if i > 0 || !answered(err) {
				// Lists before this one are in their tables.
				return branches.Unknown(err)
			}
			return err
		}
	}
	return nil
}

func (s *Store) plainList(ctx context.Context, b *Branch, list *payloadTable) error {
	o := options{settings: map[string]any{"async_insert": 0, "max_insert_threads": 1, "max_threads": 1}}
	var into, from []string
	for i, c := range list.columns {
		into, from = append(into, quoteName(c.name)), append(from, externalColumn(i))
	}
	t, err := s.table(ctx, list.name)
	if err != nil {
		return err
	}
	for _, ours := range []struct{ name, typ, value string }{
		{columnTxn, "UUID", literalTxn(b.txn)},
		{columnTime, "Int64", literalInt(int64(b.time()))},
	} {
		if c, ok := t.column(ours.name); ok && c.insertable() && slices.Contains([]string{ours.typ, "Nullable(" + ours.typ + ")"}, c.typ) {
			into, from = append(into, ours.name), append(from, ours.value)
		}
	}
	text, tables, err := s.load("INSERT INTO "+list.name.quoted()+" ("+strings.Join(into, ",")+") SELECT "+
		strings.Join(from, ",")+" FROM "+s.source(list), list)
	if err != nil {
		return err
	}
	o.external = tables
	return s.exec(ctx, text, o)
}
