package icesql

import "iter"

// walk yields e and everything inside it, parents first.
func walk(e Expr) iter.Seq[Expr] {
	return func(yield func(Expr) bool) { visit(e, yield) }
}

func visit(e Expr, yield func(Expr) bool) bool {
	if e == nil {
		return true
	}
	if !yield(e) {
		return false
	}
	for _, child := range children(e) {
		if !visit(child, yield) {
			return false
		}
	}
	return true
}

func children(e Expr) []Expr {
	switch e := e.(type) {
	case *And:
		return e.Terms
	case *Or:
		return e.Terms
	case *Not:
		return []Expr{e.X}
	case *Binary:
		return []Expr{e.Left, e.Right}
	case *Neg:
		return []Expr{e.X}
	case *IsNull:
		return []Expr{e.X}
	case *IsTruth:
		return []Expr{e.X}
	case *Between:
		return []Expr{e.X, e.Low, e.High}
	case *In:
		return append([]Expr{e.X}, e.List...)
	case *Like:
		return []Expr{e.X, e.Pattern, e.Escape}
	case *Aggregate:
		return []Expr{e.Arg}
	}
	return nil
}

// exprs are all expressions of s.
func (s *Select) exprs() []Expr {
	out := []Expr{s.Where, s.Limit, s.Offset}
	if s.AsOf != nil {
		out = append(out, s.AsOf.Version, s.AsOf.Timestamp)
	}
	for _, it := range s.Items {
		out = append(out, it.Expr)
	}
	out = append(out, s.GroupBy...)
	for _, o := range s.OrderBy {
		out = append(out, o.Expr)
	}
	return out
}

func statementExprs(s Statement) []Expr {
	switch s := s.(type) {
	case *Select:
		return s.exprs()
	case *Delete:
		return []Expr{s.Where}
	case *Update:
		out := []Expr{s.Where}
		for _, a := range s.Set {
			out = append(out, a.Value)
		}
		return out
	case *Insert:
		var out []Expr
		for _, row := range s.Rows {
			out = append(out, row...)
		}
		return out
	}
	return nil
}

// NumInput is the number of parameters that s takes, as driver.Stmt counts
// them; -1 where they have names.
func NumInput(s Statement) int {
	n := 0
	for _, e := range statementExprs(s) {
		for x := range walk(e) {
			if p, ok := x.(*Param); ok {
				if p.Name != "" {
					return -1
				}
				n = max(n, p.Ordinal)
			}
		}
	}
	return n
}
