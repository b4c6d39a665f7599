package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

// checkConstraints lets the server evaluate the CHECKs of the tables over the
// rows of a unit that will be decided elsewhere: a row that a CHECK refuses after
// the decision could never go in. With one branch the insert itself says so.
func (b *Branch) checkConstraints(ctx context.Context, tables map[tableName]*table) error {
	if b.unit.OnePhase {
		return nil
	}
	for i := range b.payload.tables {
		list := &b.payload.tables[i]
		t := tables[list.name]
		if checks := chsql.Constraints(t.create); len(checks) > 0 {
			if err := b.checkList(ctx, t, list, checks); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Branch) checkList(ctx context.Context, t *table, list *payloadTable, checks []chsql.Constraint) error {
	s := b.session.store
	external, err := s.external(list)
	if err != nil {
		return err
	}
	counts := make([]string, len(checks))
	for i, c := range checks {
		counts[i] = "countIf(NOT (" + c.Expression + "))"
	}
	query := "SELECT [" + strings.Join(counts, ",") + "] FROM (SELECT " + b.whole(t, list) + " FROM " + externalName + ")"
	var refused []uint64
	rows, err := s.control.Query(s.context(ctx, options{external: external}), query)
	if err == nil {
		for rows.Next() {
			if err = rows.Scan(&refused); err != nil {
				break
			}
		}
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
	}
	if answered(err) {
		// The expression needs something that only the insert has. It will tell.
		return nil
	}
	if err != nil {
		return s.fail("check constraints", ended(ctx, err))
	}
	for i, n := range refused {
		if n > 0 {
			return &branches.Error{
				Store: s.name, Doing: "stage branch",
				Cause: fmt.Sprintf("%d rows of table %s violate constraint %s CHECK %s", n, t.name, checks[i].Name, checks[i].Expression),
				Asks:  branches.Constraint,
			}
		}
	}
	return nil
}

// whole writes a row of the table as the insert will make it: what was given,
// what is ours, and the defaults of the rest.
func (b *Branch) whole(t *table, list *payloadTable) string {
	given := map[string]string{columnTxn: literalTxn(b.txn), columnTime: literalInt(int64(b.unit.TxTime))}
	for i, c := range list.columns {
		given[c.name] = externalColumn(i)
	}
	parts := make([]string, len(t.columns))
	for i, c := range t.columns {
		value, ok := given[c.name]
		switch {
		case ok:
		case c.expression != "":
			value = "CAST((" + c.expression + ")," + chsql.Text(c.typ) + ")"
		default:
			value = "defaultValueOfTypeName(" + chsql.Text(c.typ) + ")"
		}
		parts[i] = value + " AS " + chsql.Name(c.name)
	}
	return strings.Join(parts, ",")
}
