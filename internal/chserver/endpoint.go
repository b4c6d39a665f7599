package chserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// The schemes of a store's DSN, by protocol.
const (
	SchemeNative = "clickhouse"
	SchemeHTTP   = "clickhouse+http"
)

// Endpoint is how a server is reached, by both protocols, in the words of
// rhizodat's own DSN. It is safe for concurrent use.
type Endpoint struct{ native, http *url.URL }

// Endpoint of the server; it stays over restarts.
func (s *Server) Endpoint() Endpoint {
	return Endpoint{
		native: &url.URL{Scheme: SchemeNative, Host: s.Native()},
		http:   &url.URL{Scheme: SchemeHTTP, Host: s.HTTP()},
	}
}

// EnvEndpoint is the server that the environment names; found is false where it
// names none.
func EnvEndpoint() (e Endpoint, found bool, err error) {
	native, web := os.Getenv(EnvServer), os.Getenv(EnvServerHTTP)
	if native == "" {
		return e, false, nil
	}
	if e.native, err = url.Parse(native); err != nil || e.native.Scheme != SchemeNative {
		// Without err: it would print the URL and its password.
		return e, false, errors.New("rhizodat: read " + EnvServer + ": not a " + SchemeNative + ":// DSN")
	}
	if web == "" {
		e.http = &url.URL{Scheme: SchemeHTTP, User: e.native.User, Host: net.JoinHostPort(e.native.Hostname(), "8123")}
		return e, true, nil
	}
	if e.http, err = url.Parse(web); err != nil || e.http.Scheme != SchemeHTTP {
		return e, false, errors.New("rhizodat: read " + EnvServerHTTP + ": not a " + SchemeHTTP + ":// DSN")
	}
	return e, true, nil
}

// Native is the DSN of a database by the native protocol.
func (e Endpoint) Native(database string) string { return within(e.native, database) }

// HTTP is the DSN of a database by the HTTP protocol.
func (e Endpoint) HTTP(database string) string { return within(e.http, database) }

func within(u *url.URL, database string) string {
	dsn := *u
	dsn.Path = "/" + database
	return dsn.String()
}

// NativeAddr is the host:port of the native protocol.
func (e Endpoint) NativeAddr() string { return e.native.Host }

// HTTPAddr is the host:port of the HTTP protocol.
func (e Endpoint) HTTPAddr() string { return e.http.Host }

// Ask runs one statement, under a query id if that is not empty, and returns its
// answer as tab-separated text. It goes by plain HTTP and never through a client
// library that may be under test.
func (e Endpoint) Ask(ctx context.Context, id, query string) (string, error) {
	target := "http://" + e.http.Host + "/?async_insert=0"
	if id != "" {
		target += "&query_id=" + url.QueryEscape(id)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(query))
	if err != nil {
		return "", fmt.Errorf("make request: %w", err)
	}
	if user := e.http.User; user != nil {
		password, _ := user.Password()
		request.Header.Set("X-ClickHouse-User", user.Username())
		request.Header.Set("X-ClickHouse-Key", password)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("%s: %w", query, err)
	}
	defer func() { _ = response.Body.Close() }() // read to its end
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", query, err)
	case response.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s: %s", query, answer)
	}
	return strings.TrimSuffix(string(answer), "\n"), nil
}
