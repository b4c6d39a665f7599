package icesql

import (
	"database/sql/driver"
	"fmt"

	"github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// InsertPlan is an INSERT that is bound to a schema; its parameters are open, so
// that one plan serves many executions. It is not safe for use by several
// goroutines.
type InsertPlan struct {
	rows [][]cell // in the schema's order
	row  []any    // reused
}

// cell is where a value comes from: a constant of the statement, or a parameter.
type cell struct {
	v     any
	param *Param
}

// BindInsert checks the columns and the literals of an INSERT. A column that it
// does not name becomes NULL, or the table's write default.
func BindInsert(ins *Insert, sc *iceberg.Schema) (*InsertPlan, error) {
	b := newBinder(sc, nil)
	order, err := b.order(ins)
	if err != nil {
		return nil, err
	}
	out := &InsertPlan{row: make([]any, len(b.fields)), rows: make([][]cell, len(ins.Rows))}
	for i, values := range ins.Rows {
		out.rows[i] = make([]cell, len(b.fields))
		for j, f := range b.fields {
			out.rows[i][j].v = f.WriteDefault
		}
		for k, e := range values {
			if out.rows[i][order[k]], err = b.cell(b.fields[order[k]], e); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// order is the column of each value of a row.
func (b *binder) order(ins *Insert) ([]int, error) {
	names := ins.Columns
	if len(names) == 0 {
		for _, f := range b.fields {
			names = append(names, f.Name)
		}
		if len(ins.Rows[0]) != len(names) {
			return nil, &BindError{Cause: fmt.Sprintf("a row has %d values and the table %d columns", len(ins.Rows[0]), len(names))}
		}
	}
	out, seen := make([]int, len(names)), map[int]bool{}
	for k, name := range names {
		i := -1
		for j, f := range b.fields {
			if f.Name == name {
				i = j
			}
		}
		switch {
		case i < 0:
			return nil, noColumn([]string{name}, b.fields)
		case seen[i]:
			return nil, &BindError{Column: quoteIdent(name), Cause: "it stands twice"}
		}
		out[k], seen[i] = i, true
	}
	return out, nil
}

func (b *binder) cell(field iceberg.NestedField, e Expr) (cell, error) {
	if p, ok := e.(*Param); ok {
		return cell{param: p}, nil
	}
	c, ok, err := b.constant(e)
	if err != nil {
		return cell{}, err
	}
	if !ok {
		return cell{}, &BindError{Column: quoteIdent(field.Name), Value: shorten(e.String()), Cause: "VALUES takes literals and parameters"}
	}
	v, err := forColumn(field, c)
	return cell{v: v}, err
}

// AppendTo adds the rows with these arguments to rows, all or none, and returns
// their number.
func (p *InsertPlan) AppendTo(rows *icevalue.Rows, args []driver.NamedValue) (int64, error) {
	before := rows.Len()
	for _, row := range p.rows {
		if err := p.append(rows, row, args); err != nil {
			rows.Rollback(before)
			return 0, err
		}
	}
	return int64(len(p.rows)), nil
}

func (p *InsertPlan) append(rows *icevalue.Rows, row []cell, args []driver.NamedValue) error {
	for i := range row {
		p.row[i] = row[i].v
		if param := row[i].param; param != nil {
			v, ok := lookUp(args, param)
			if !ok {
				return missing(param, len(args))
			}
			p.row[i] = v
		}
	}
	return rows.Append(p.row)
}

// lookUp finds a parameter's argument, first where database/sql puts it.
func lookUp(args []driver.NamedValue, p *Param) (any, bool) {
	if p.Ordinal > 0 && p.Ordinal <= len(args) && args[p.Ordinal-1].Ordinal == p.Ordinal {
		return args[p.Ordinal-1].Value, true
	}
	for _, a := range args {
		if p.Name == "" && a.Ordinal == p.Ordinal || p.Name != "" && a.Name == p.Name {
			return a.Value, true
		}
	}
	return nil, false
}

func missing(p *Param, given int) error {
	return &BindError{Cause: fmt.Sprintf("there is no argument for %s: %d were given", p, given)}
}
