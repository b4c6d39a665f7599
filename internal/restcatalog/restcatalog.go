// Package restcatalog is a small Iceberg REST catalog for tests and test beds, in
// front of another catalog, whose answers to a commit can be made to fail.
package restcatalog

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// Server is a REST catalog. It is safe for concurrent use.
type Server struct {
	URL     string
	Catalog catalog.Catalog // the one behind it

	server http.Server
	open   atomic.Int64 // requests
	fail   atomic.Pointer[Fault]
}

// Fault gives the status that a commit is answered with, before or after it was
// applied; 0 lets it be. It may keep the commit waiting.
type Fault func(after bool) int

// NoAnswer is the status of a commit whose connection is closed instead.
const NoAnswer = -1

// Start starts a REST catalog on a free loopback port. It ends with Close.
func Start(ctx context.Context, behind catalog.Catalog) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + listener.Addr().String(), Catalog: behind}
	handler := s.handler()
	s.server.ReadHeaderTimeout = time.Minute
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.open.Add(1)
		defer s.open.Add(-1)
		// What a client that is gone has asked for is carried out all the same.
		handler.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	})
	go func() { _ = s.server.Serve(listener) }() // until Close
	return s, nil
}

// Close ends the server and its connections.
func (s *Server) Close() error { return s.server.Close() }

// Busy reports whether it works on a request.
func (s *Server) Busy() bool { return s.open.Load() > 0 }

// Fail makes commits fail from now on; nil lets them be.
func (s *Server) Fail(fault Fault) { s.fail.Store(&fault) }

func (s *Server) failing(after bool) int {
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

func (s *Server) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/config", func(w http.ResponseWriter, _ *http.Request) {
		put(w, http.StatusOK, map[string]any{"defaults": map[string]string{}, "overrides": map[string]string{}})
	})
	s.namespaces(m)
	s.tables(m)
	return m
}

func (s *Server) namespaces(m *http.ServeMux) {
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

func (s *Server) tables(m *http.ServeMux) {
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

func (s *Server) commit(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Requirements table.Requirements `json:"requirements"`
		Updates      table.Updates      `json:"updates"`
	}
	if !read(w, r, &in) {
		return
	}
	if status := s.failing(false); status != 0 {
		inject(w, status, "before the commit")
		return
	}
	md, location, err := s.Catalog.CommitTable(r.Context(), tableOf(r), in.Requirements, in.Updates)
	if err == nil {
		if status := s.failing(true); status != 0 {
			inject(w, status, "after the commit")
			return
		}
	}
	answer(w, loaded(md, location), err)
}

func inject(w http.ResponseWriter, status int, message string) {
	if status == NoAnswer {
		panic(http.ErrAbortHandler) // which closes the connection, and is not logged
	}
	refuse(w, status, "Injected", message)
}
