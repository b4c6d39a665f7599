package catalogs

import "context"

// Setting reads a setting of a PostgreSQL catalog's own session.
func (c *Catalog) Setting(ctx context.Context, name string) (value string, err error) {
	err = c.db.QueryRowContext(ctx, "SELECT current_setting($1)", name).Scan(&value)
	return value, err
}
