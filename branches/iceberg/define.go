package iceberg

import (
	"context"
	"errors"
	"maps"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
)

// Without merging, a commit of one row writes one more manifest for every later
// commit to list and every read to open: at 500 commits one took seven times as
// long as the first.
var tableDefaults = iceberg.Properties{
	table.ManifestMergeEnabledKey:  "true",
	table.ManifestMinMergeCountKey: "20",
}

// define carries a statement out that changes the catalog.
func (s *Store) define(ctx context.Context, parsed icesql.Statement) error {
	var err error
	switch q := parsed.(type) {
	case *icesql.CreateNamespace:
		err = s.createNamespace(ctx, q)
	case *icesql.DropNamespace:
		err = s.dropNamespace(ctx, q)
	case *icesql.CreateTable:
		err = s.createTable(ctx, q)
	case *icesql.DropTable:
		err = s.dropTable(ctx, q)
	}
	return s.fail("change catalog", err)
}

func (s *Store) createNamespace(ctx context.Context, q *icesql.CreateNamespace) error {
	opened, err := s.catalog.Create(ctx)
	if err == nil {
		err = opened.CreateNamespace(ctx, q.Name, nil)
	}
	if q.IfNotExists && errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
		return nil
	}
	return err
}

func (s *Store) dropNamespace(ctx context.Context, q *icesql.DropNamespace) error {
	opened, err := s.catalog.Get(ctx)
	if err == nil {
		err = opened.DropNamespace(ctx, q.Name)
	}
	if q.IfExists && errors.Is(err, catalog.ErrNoSuchNamespace) {
		return nil
	}
	return err
}

func (s *Store) createTable(ctx context.Context, q *icesql.CreateTable) error {
	schema := q.Schema()
	spec, err := q.PartitionSpec(schema)
	if err != nil {
		return err
	}
	props := maps.Clone(tableDefaults)
	maps.Copy(props, q.Properties)
	if q.Comment != "" {
		props["comment"] = q.Comment
	}
	options := []catalog.CreateTableOpt{catalog.WithProperties(props)}
	if spec != nil {
		options = append(options, catalog.WithPartitionSpec(spec))
	}
	err = s.catalog.CreateTable(ctx, s.ident(q.Table.Namespace, q.Table.Table), schema, options...)
	if q.IfNotExists && errors.Is(err, catalog.ErrTableAlreadyExists) {
		return nil
	}
	return err
}

// dropTable leaves the files of the table where they are.
func (s *Store) dropTable(ctx context.Context, q *icesql.DropTable) error {
	opened, err := s.catalog.Get(ctx)
	if err == nil {
		err = opened.DropTable(ctx, s.ident(q.Table.Namespace, q.Table.Table))
	}
	if q.IfExists && (errors.Is(err, catalog.ErrNoSuchTable) || errors.Is(err, catalog.ErrNoSuchNamespace)) {
		return nil
	}
	return err
}

// showTables lists the tables of a namespace, or of all.
func (s *Store) showTables(ctx context.Context, q *icesql.ShowTables) (*texts, error) {
	namespaces := []table.Identifier{q.Namespace}
	if len(q.Namespace) == 0 {
		var err error
		if namespaces, err = s.namespaces(ctx, nil, true); err != nil {
			return nil, err
		}
	}
	found := &texts{columns: []string{"namespace", "table"}}
	for _, namespace := range namespaces {
		tables, err := s.catalog.Tables(ctx, namespace)
		if err != nil {
			return nil, err
		}
		for _, ident := range tables {
			found.rows = append(found.rows, []string{name(ident[:len(ident)-1]), ident[len(ident)-1]})
		}
	}
	found.sort()
	return found, nil
}

func (s *Store) showNamespaces(ctx context.Context, q *icesql.ShowNamespaces) (*texts, error) {
	namespaces, err := s.namespaces(ctx, q.Parent, false)
	if err != nil {
		return nil, err
	}
	found := &texts{columns: []string{"namespace"}}
	for _, namespace := range namespaces {
		found.rows = append(found.rows, []string{name(namespace)})
	}
	found.sort()
	return found, nil
}

// namespaces lists those below a parent, and with deep those below them.
func (s *Store) namespaces(ctx context.Context, parent table.Identifier, deep bool) ([]table.Identifier, error) {
	opened, err := s.catalog.Get(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := opened.ListNamespaces(ctx, parent)
	if err != nil {
		return nil, err
	}
	var found []table.Identifier
	for _, namespace := range listed {
		// Some catalogs list the parent among its children.
		if len(namespace) != len(parent)+1 {
			continue
		}
		found = append(found, namespace)
		if !deep {
			continue
		}
		below, err := s.namespaces(ctx, namespace, true)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	return found, nil
}

// describe lists the columns of a table, then how it is partitioned, then what is
// set on it.
func (s *Session) describe(ctx context.Context, q *icesql.Describe) (*texts, error) {
	ident := s.store.ident(q.Table.Namespace, q.Table.Table)
	tbl, err := s.store.catalog.Load(ctx, ident)
	if err != nil {
		return nil, err
	}
	found := &texts{columns: []string{"part", "name", "type", "comment"}}
	for _, f := range tbl.Schema().Fields() {
		typ := f.Type.String()
		if f.Required {
			typ += " NOT NULL"
		}
		found.rows = append(found.rows, []string{"column", f.Name, typ, f.Doc})
	}
	spec := tbl.Spec()
	for _, f := range spec.Fields() {
		found.rows = append(found.rows, []string{"partition", f.Name, f.Transform.String(), ""})
	}
	found.rows = append(found.rows, []string{"table", "format version", strconv.Itoa(tbl.Metadata().Version()), ""}, []string{"table", "location", tbl.Location(), ""})
	for _, row := range sorted(tbl.Properties()) {
		found.rows = append(found.rows, []string{"property", row[0], row[1], ""})
	}
	return found, nil
}
