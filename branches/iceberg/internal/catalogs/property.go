package catalogs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// Property reads a property of a namespace; "" where there is none. A namespace
// that does not exist is catalog.ErrNoSuchNamespace.
func (c *Catalog) Property(ctx context.Context, namespace table.Identifier, key string) (string, error) {
	opened, err := c.Get(ctx)
	if err != nil {
		return "", err
	}
	props, err := opened.LoadNamespaceProperties(ctx, namespace)
	if err != nil {
		return "", err
	}
	if c.cfg.Kind == Dir {
		value, _, err := c.dirProperty(namespace, key)
		return value, err
	}
	return props[key], nil
}

// ChangeProperty sets a property of a namespace where it still equals old ("": is
// not there), and reports whether it did.
//
// In a SQL catalog this is one conditional statement, in a directory one link that
// fails where the name is taken: of two at once one wins. The REST protocol has no
// such call: there the property is read, written and read again, and two that
// write within the same moment may both have been told that they won.
func (c *Catalog) ChangeProperty(ctx context.Context, namespace table.Identifier, key, old, value string) (bool, error) {
	found, err := c.Property(ctx, namespace, key)
	if err != nil || found != old {
		return false, err
	}
	switch c.cfg.Kind {
	case SQLite, Postgres:
		return c.changeRow(ctx, namespace, key, old, value)
	case Dir:
		return c.changeFile(namespace, key, old, value)
	case REST:
	}
	opened, err := c.Get(ctx)
	if err != nil {
		return false, err
	}
	if _, err := opened.UpdateNamespaceProperties(ctx, namespace, nil, iceberg.Properties{key: value}); err != nil {
		return false, err
	}
	found, err = c.Property(ctx, namespace, key)
	return found == value, err
}

// changeRow: the library's own update of properties is not conditional. Table and
// columns are those of the JDBC catalog's specification.
func (c *Catalog) changeRow(ctx context.Context, namespace table.Identifier, key, old, value string) (bool, error) {
	text, args := "UPDATE iceberg_namespace_properties SET property_value=$1 WHERE catalog_name=$2 AND namespace=$3 AND property_key=$4 AND property_value=$5",
		[]any{value, c.cfg.Name, strings.Join(namespace, "."), key, old}
	if old == "" {
		text, args = "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value) VALUES ($1,$2,$3,$4) ON CONFLICT DO NOTHING",
			[]any{c.cfg.Name, strings.Join(namespace, "."), key, value}
	}
	done, err := c.db.ExecContext(ctx, text, args...)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n == 1, err
}

// A Hadoop catalog has no properties. In their place stand files of the namespace,
// <key>-<version>, of which the newest holds; their names are format.

func (c *Catalog) propertyFile(namespace table.Identifier, key string, version int) string {
	return filepath.Join(append([]string{c.cfg.Path}, append(slices.Clone(namespace), fmt.Sprintf("%s-%08d", key, version))...)...)
}

func (c *Catalog) dirProperty(namespace table.Identifier, key string) (value string, version int, err error) {
	entries, err := c.cfg.Files.ReadDir(filepath.Join(append([]string{c.cfg.Path}, namespace...)...))
	if err != nil {
		return "", 0, err
	}
	for _, e := range entries {
		digits, ours := strings.CutPrefix(e.Name(), key+"-")
		if n, err := strconv.Atoi(digits); ours && err == nil && len(digits) == 8 {
			version = max(version, n)
		}
	}
	if version == 0 {
		return "", 0, nil
	}
	content, err := c.cfg.Files.ReadFile(c.propertyFile(namespace, key, version))
	return string(content), version, err
}

func (c *Catalog) changeFile(namespace table.Identifier, key, old, value string) (bool, error) {
	found, version, err := c.dirProperty(namespace, key)
	if err != nil || found != old {
		return false, err
	}
	next := c.propertyFile(namespace, key, version+1)
	draft := path.Join(path.Dir(next), key+"."+uuid.NewString())
	if err := c.cfg.Files.WriteFile(draft, []byte(value)); err != nil {
		return false, errors.Join(err, ignoreMissing(c.cfg.Files.Remove(draft)))
	}
	err = c.cfg.Files.RenameNoReplace(draft, next)
	if errors.Is(err, fs.ErrExist) {
		return false, c.cfg.Files.Remove(draft)
	}
	return err == nil, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// MakeNamespace makes a namespace where there is none.
func (c *Catalog) MakeNamespace(ctx context.Context, namespace table.Identifier) error {
	opened, err := c.Create(ctx)
	if err != nil {
		return err
	}
	for i := range namespace {
		part := namespace[:i+1]
		exists, err := opened.CheckNamespaceExists(ctx, part)
		if err == nil && !exists {
			err = opened.CreateNamespace(ctx, part, nil)
		}
		if err != nil && !errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
			return err
		}
	}
	return nil
}
