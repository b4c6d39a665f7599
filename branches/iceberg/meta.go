package iceberg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/iceberg-go/catalog"
	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
)

var (
	_ branches.Keeper    = (*Store)(nil)
	_ branches.Installer = (*Store)(nil)
	_ branches.Prober    = (*Store)(nil)
	_ branches.Placer    = (*Store)(nil)
)

// metaProperty is the property of the store's namespace that ties it to its
// journal. Its name and its JSON are format.
const metaProperty = "dat.meta"

// metaLayout is the version of that JSON.
const metaLayout = 1

type metaJSON struct {
	Layout       int    `json:"layout"`
	StoreID      string `json:"store_id"`
	JournalID    string `json:"journal_id"`
	JournalPlace string `json:"journal_place"`
	Sweeps       int64  `json:"sweeps"`
}

var errMetaRaced = errors.New("the property is being changed by others: try again")

// rounds bounds the tries to change the property.
const rounds = 20

// Meta reads the property.
func (s *Store) Meta(ctx context.Context) (branches.Meta, error) {
	_, meta, err := s.readMeta(ctx)
	return meta, s.fail("read meta property", err)
}

// readMeta also returns the property's text, which a change starts from.
func (s *Store) readMeta(ctx context.Context) (string, branches.Meta, error) {
	text, err := s.catalog.Property(ctx, s.to.namespace, metaProperty)
	switch {
	case errors.Is(err, catalog.ErrNoSuchNamespace), err == nil && text == "":
		return "", branches.Meta{}, errors.Join(branches.ErrNotInstalled, err)
	case err != nil:
		return "", branches.Meta{}, err
	}
	var m metaJSON
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.StoreID == "" {
		return "", branches.Meta{}, s.refuse("read meta property", "property "+metaProperty+" of namespace "+name(s.to.namespace)+" is damaged", "")
	}
	if m.Layout > metaLayout {
		return "", branches.Meta{}, s.refuse("open store",
			fmt.Sprintf("its property %s has layout version %d, this program knows up to %d", metaProperty, m.Layout, metaLayout), "use a newer rhizodat")
	}
	return text, branches.Meta{StoreID: m.StoreID, JournalID: m.JournalID, JournalPlace: branches.Place(m.JournalPlace), Sweeps: m.Sweeps}, nil
}

func metaText(m branches.Meta) (string, error) {
	text, err := json.Marshal(metaJSON{metaLayout, m.StoreID, m.JournalID, string(m.JournalPlace), m.Sweeps})
	return string(text), err
}

// Bind ties the store to a journal, where the property still equals old. In a REST
// catalog, which has no conditional write of properties, two that bind at the same
// moment may both be told that they did.
func (s *Store) Bind(ctx context.Context, old, bound branches.Meta) (bool, error) {
	text, found, err := s.readMeta(ctx)
	if err != nil || found != old {
		return false, s.fail("bind store", err)
	}
	bound.StoreID, bound.Sweeps = found.StoreID, found.Sweeps
	changed, err := s.changeMeta(ctx, text, bound)
	return changed, s.fail("bind store", err)
}

// RaiseSweeps raises the counter to at least to.
func (s *Store) RaiseSweeps(ctx context.Context, to int64) error {
	for range rounds {
		text, meta, err := s.readMeta(ctx)
		if err != nil || meta.Sweeps >= to {
			return s.fail("raise sweeps", err)
		}
		meta.Sweeps = to
		if _, err := s.changeMeta(ctx, text, meta); err != nil {
			return s.fail("raise sweeps", err)
		}
	}
	return s.busy("raise sweeps", "", errMetaRaced)
}

func (s *Store) changeMeta(ctx context.Context, old string, meta branches.Meta) (bool, error) {
	text, err := metaText(meta)
	if err != nil {
		return false, err
	}
	return s.catalog.ChangeProperty(ctx, s.to.namespace, metaProperty, old, text)
}

// Install makes the catalog, the store's namespace and its property, where they are
// not there.
func (s *Store) Install(ctx context.Context) error {
	err := s.catalog.MakeNamespace(ctx, s.to.namespace)
	if err == nil {
		_, _, err = s.readMeta(ctx)
	}
	if errors.Is(err, branches.ErrNotInstalled) {
		// Of two that install at once one writes the property; both find it.
		_, err = s.changeMeta(ctx, "", branches.Meta{StoreID: uuid.NewString()})
	}
	return s.fail("install property", err)
}

// InstallSQL says what Install does, for a person to do instead: a catalog has no
// SQL of its own.
func (s *Store) InstallSQL() string {
	text, _ := metaText(branches.Meta{StoreID: uuid.NewString()}) // strings and numbers always marshal
	namespace := name(s.to.namespace)
	return "-- Iceberg, in the words of Spark SQL:\n" +
		"CREATE NAMESPACE IF NOT EXISTS " + namespace + ";\n" +
		"ALTER NAMESPACE " + namespace + " SET PROPERTIES ('" + metaProperty + "'='" + strings.ReplaceAll(text, "'", "''") + "');\n"
}

// Probe looks for what a unit of several stores will need here. A good answer is
// kept.
func (s *Store) Probe(ctx context.Context) error {
	if s.probed.Load() {
		return nil
	}
	if _, _, err := s.readMeta(ctx); err != nil {
		return s.fail("probe store", err)
	}
	s.probed.Store(true)
	return nil
}

// Place is ice:<catalog>/<namespace>. A SQL catalog is named by the words of its
// server or the real path of its file, a directory by its real path, a REST catalog
// by its URL, prefix and warehouse.
func (s *Store) Place(ctx context.Context) (branches.Place, error) {
	identity, err := s.catalog.Identity(ctx)
	if err != nil {
		return "", s.fail("find place", err)
	}
	return branches.Place("ice:" + identity + "/" + name(s.to.namespace)), nil
}
