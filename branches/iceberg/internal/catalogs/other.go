package catalogs

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"os"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog/hadoop"
	"github.com/apache/iceberg-go/catalog/rest"
)

// The properties of a REST catalog that are its client's, in the words of the
// Iceberg REST specification and of Java's and Python's clients.
const (
	Warehouse = "warehouse"
	token     = "token"
	secretKey = "credential"
	scope     = "scope"
	audience  = "audience"
	resource  = "resource"
	prefix    = "prefix"
	authURI   = "oauth2-server-uri"
)

// RESTKeys are what a DSN may say to a REST catalog's client.
var RESTKeys = []string{token, secretKey, scope, audience, resource, prefix, authURI}

// openREST asks the server for its configuration.
func (c *Catalog) openREST(ctx context.Context) error {
	p := c.cfg.Props
	io := iceberg.Properties{}
	maps.Copy(io, p)
	for _, key := range append(RESTKeys, Warehouse) {
		delete(io, key)
	}
	c.cfg.Files.Props(io)
	options := []rest.Option{
		rest.WithAdditionalProps(io),
		rest.WithWarehouseLocation(p[Warehouse]), rest.WithOAuthToken(p[token]), rest.WithCredential(p[secretKey]),
		rest.WithScope(p[scope]), rest.WithAudience(p[audience]), rest.WithResource(p[resource]), rest.WithPrefix(p[prefix]),
	}
	if p[authURI] != "" {
		u, err := url.Parse(p[authURI])
		if err != nil {
			return errors.New(authURI + "= is not a URL")
		}
		options = append(options, rest.WithAuthURI(u))
	}
	opened, err := rest.NewCatalog(ctx, c.cfg.Name, c.cfg.URI.String(), options...)
	if err != nil {
		return err
	}
	c.opened = opened
	return nil
}

func (c *Catalog) openDir(create bool) error {
	if _, err := os.Stat(c.cfg.Path); errors.Is(err, os.ErrNotExist) {
		if !create {
			return ErrMissing
		}
		if err := c.cfg.Files.MkdirAll(c.cfg.Path); err != nil {
			return err
		}
	}
	opened, err := hadoop.NewCatalog(c.cfg.Name, c.cfg.Path, c.cfg.props())
	if err != nil {
		return err
	}
	c.opened = opened
	return nil
}

// Identity names the catalog so that two spellings of it compare equal: what its
// server says of itself, or the real path. A REST catalog says nothing of itself;
// its URL, prefix and warehouse stand for it.
func (c *Catalog) Identity(ctx context.Context) (string, error) {
	if _, err := c.Get(ctx); err != nil {
		return "", err
	}
	switch c.cfg.Kind {
	case SQLite, Postgres:
		return c.sqlIdentity(ctx)
	case Dir:
		return "dir:" + realPath(c.cfg.Path), nil
	case REST:
		u := *c.cfg.URI
		return "rest:" + strings.ToLower(u.Host) + strings.TrimRight(u.Path, "/") + "/" + c.cfg.Props[prefix] + "/" + c.cfg.Props[Warehouse], nil
	}
	return "", errors.New("unknown kind of catalog")
}
