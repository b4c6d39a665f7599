// Package icetest gives tests what an Iceberg store needs: catalogs, an object
// store, a REST catalog whose answers can be made to fail.
package icetest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// REST is a small Iceberg REST catalog in front of another catalog.
type REST struct {
	URL     string
	Catalog catalog.Catalog
	// fail may replace the answer of a commit.
	fail atomic.Pointer[func(after bool) int]
}

// NewREST starts a REST catalog that ends with the test.
func NewREST(tb testing.TB, behind catalog.Catalog) *REST {
	tb.Helper()
	s := &REST{Catalog: behind}
	server := httptest.NewServer(s.handler())
	tb.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Fail makes commits answer with a status, before or after they were applied; 0 lets
// them be.
func (s *REST) Fail(fail func(after bool) int) { s.fail.Store(&fail) }

func (s *REST) failing(after bool) int {
	if fail := s.fail.Load(); fail != nil && *fail != nil {
		return (*fail)(after)
	}
	return 0
}

// unitSeparator parts the levels of a namespace in a path.
const unitSeparator = "\x1f"

func namespaceOf(r *http.Request) table.Identifier {
	return strings.Split(r.PathValue("ns"), unitSeparator)
}

func tableOf(r *http.Request) table.Identifier {
	return append(namespaceOf(r), r.PathValue("table"))
}

func put(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // the client sees what is missing
}

func refuse(w http.ResponseWriter, status int, typ, message string) {
	put(w, status, map[string]any{"error": map[string]any{"code": status, "type": typ, "message": message}})
}

// answer sends v, or the status that the specification gives to err.
func answer(w http.ResponseWriter, v any, err error) {
	switch {
	case err == nil && v == nil:
		w.WriteHeader(http.StatusNoContent)
	case err == nil:
		put(w, http.StatusOK, v)
	case errors.Is(err, catalog.ErrNoSuchTable):
		refuse(w, http.StatusNotFound, "NoSuchTableException", err.Error())
	case errors.Is(err, catalog.ErrNoSuchNamespace):
		refuse(w, http.StatusNotFound, "NoSuchNamespaceException", err.Error())
	case errors.Is(err, catalog.ErrTableAlreadyExists), errors.Is(err, catalog.ErrNamespaceAlreadyExists), errors.Is(err, catalog.ErrNamespaceNotEmpty):
		refuse(w, http.StatusConflict, "AlreadyExistsException", err.Error())
	case errors.Is(err, table.ErrCommitFailed), strings.Contains(strings.ToLower(err.Error()), "requirement failed"):
		refuse(w, http.StatusConflict, "CommitFailedException", err.Error())
	default:
		refuse(w, http.StatusInternalServerError, "InternalServerError", err.Error())
	}
}

func loaded(md table.Metadata, location string) any {
	return map[string]any{"metadata-location": location, "metadata": md, "config": map[string]string{}}
}

// read decodes a request, or answers that it cannot.
func read(w http.ResponseWriter, r *http.Request, to any) bool {
	if err := json.NewDecoder(r.Body).Decode(to); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequestException", err.Error())
		return false
	}
	return true
}

func (s *REST) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/config", func(w http.ResponseWriter, _ *http.Request) {
		put(w, http.StatusOK, map[string]any{"defaults": map[string]string{}, "overrides": map[string]string{}})
	})
	s.namespaces(m)
	s.tables(m)
	return m
}

func (s *REST) namespaces(m *http.ServeMux) {
	m.HandleFunc("GET /v1/namespaces", func(w http.ResponseWriter, r *http.Request) {
		var parent table.Identifier
		if text := r.URL.Query().Get("parent"); text != "" {
			parent = strings.Split(text, unitSeparator)
		}
		found, err := s.Catalog.ListNamespaces(r.Context(), parent)
		if found == nil {
			found = []table.Identifier{}
		}
		answer(w, map[string]any{"namespaces": found}, err)
	})
	m.HandleFunc("POST /v1/namespaces", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Namespace  []string           `json:"namespace"`
			Properties iceberg.Properties `json:"properties"`
		}
		if read(w, r, &in) {
			answer(w, in, s.Catalog.CreateNamespace(r.Context(), in.Namespace, in.Properties))
		}
	})
	m.HandleFunc("GET /v1/namespaces/{ns}", func(w http.ResponseWriter, r *http.Request) {
		props, err := s.Catalog.LoadNamespaceProperties(r.Context(), namespaceOf(r))
		answer(w, map[string]any{"namespace": namespaceOf(r), "properties": props}, err)
	})
	m.HandleFunc("DELETE /v1/namespaces/{ns}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, s.Catalog.DropNamespace(r.Context(), namespaceOf(r)))
	})
	m.HandleFunc("POST /v1/namespaces/{ns}/properties", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Removals []string           `json:"removals"`
			Updates  iceberg.Properties `json:"updates"`
		}
		if read(w, r, &in) {
			done, err := s.Catalog.UpdateNamespaceProperties(r.Context(), namespaceOf(r), in.Removals, in.Updates)
			answer(w, done, err)
		}
	})
}

func (s *REST) tables(m *http.ServeMux) {
	m.HandleFunc("GET /v1/namespaces/{ns}/tables", func(w http.ResponseWriter, r *http.Request) {
		found := []map[string]any{}
		for ident, err := range s.Catalog.ListTables(r.Context(), namespaceOf(r)) {
			if err != nil {
				answer(w, nil, err)
				return
			}
			found = append(found, map[string]any{"namespace": ident[:len(ident)-1], "name": ident[len(ident)-1]})
		}
		answer(w, map[string]any{"identifiers": found}, nil)
	})
	m.HandleFunc("POST /v1/namespaces/{ns}/tables", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Name   string                 `json:"name"`
			Schema *iceberg.Schema        `json:"schema"`
			Spec   *iceberg.PartitionSpec `json:"partition-spec"`
			Props  iceberg.Properties     `json:"properties"`
		}
		if !read(w, r, &in) {
			return
		}
		options := []catalog.CreateTableOpt{catalog.WithProperties(in.Props)}
		if in.Spec != nil {
			options = append(options, catalog.WithPartitionSpec(in.Spec))
		}
		made, err := s.Catalog.CreateTable(r.Context(), append(namespaceOf(r), in.Name), in.Schema, options...)
		if err != nil {
			answer(w, nil, err)
			return
		}
		answer(w, loaded(made.Metadata(), made.MetadataLocation()), nil)
	})
	m.HandleFunc("GET /v1/namespaces/{ns}/tables/{table}", func(w http.ResponseWriter, r *http.Request) {
		found, err := s.Catalog.LoadTable(r.Context(), tableOf(r))
		if err != nil {
			answer(w, nil, err)
			return
		}
		answer(w, loaded(found.Metadata(), found.MetadataLocation()), nil)
	})
	m.HandleFunc("DELETE /v1/namespaces/{ns}/tables/{table}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, s.Catalog.DropTable(r.Context(), tableOf(r)))
	})
	m.HandleFunc("POST /v1/namespaces/{ns}/tables/{table}", s.commit)
}

func (s *REST) commit(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Requirements table.Requirements `json:"requirements"`
		Updates      table.Updates      `json:"updates"`
	}
	if !read(w, r, &in) {
		return
	}
	if status := s.failing(false); status != 0 {
		refuse(w, status, "Injected", "before the commit")
		return
	}
	md, location, err := s.Catalog.CommitTable(r.Context(), tableOf(r), in.Requirements, in.Updates)
	if status := s.failing(true); err == nil && status != 0 {
		refuse(w, status, "Injected", "after the commit")
		return
	}
	answer(w, loaded(md, location), err)
}
