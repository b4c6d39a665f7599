package s3test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// Answer is what a Front does with a request. The zero Answer passes it on.
type Answer struct {
	Code string // of S3's error: the server is not asked
	HTTP int
	Lost bool // passes it on, and loses the reply: the connection breaks
}

// Kind names an Answer for tallies: its HTTP status, "lost", or empty.
func (a Answer) Kind() string {
	switch {
	case a.Lost:
		return "lost"
	case a.Code != "":
		return fmt.Sprint(a.HTTP)
	}
	return ""
}

// Weather are the faults that writers of one object have to live with, each
// between two requests that pass.
var Weather = []Answer{
	{},
	{Code: "PreconditionFailed", HTTP: http.StatusPreconditionFailed},
	{},
	{Lost: true},
	{},
	{Code: "ConditionalRequestConflict", HTTP: http.StatusConflict},
	{},
	{Code: "NoSuchKey", HTTP: http.StatusNotFound},
	{},
	{Code: "SlowDown", HTTP: http.StatusServiceUnavailable},
	{},
}

// Front stands before an S3 server and can answer conditional writes in its
// place. It ends with the test.
type Front struct {
	URL string // of the server, for its clients

	mu       sync.Mutex
	plan     func() Answer
	injected map[string]int
}

// NewFront stands before a server in this process.
func NewFront(tb testing.TB, server http.Handler) *Front {
	tb.Helper()
	f := &Front{injected: map[string]int{}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch a := f.next(r); {
		case a.Lost:
			server.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // the connection breaks
		case a.Code != "":
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(a.HTTP)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>injected</Message></Error>", a.Code) //nolint:errcheck // the client may be gone
		default:
			server.ServeHTTP(w, r)
		}
	}))
	tb.Cleanup(front.Close)
	f.URL = front.URL
	return f
}

// Front stands before the gateway.
func (g *Gateway) Front(tb testing.TB) *Front {
	tb.Helper()
	target, err := url.Parse(g.Endpoint())
	if err != nil {
		tb.Fatal(err)
	}
	return NewFront(tb, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}})
}

// Set makes every conditional write ask plan from now on, one at a time; nil
// passes all of them on.
func (f *Front) Set(plan func() Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = plan
}

// Injected counts the answers that were not to pass a request on, by Kind.
func (f *Front) Injected() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.injected
}

func (f *Front) next(r *http.Request) Answer {
	conditional := r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != ""
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan == nil || r.Method != http.MethodPut || !conditional {
		return Answer{}
	}
	a := f.plan()
	if kind := a.Kind(); kind != "" {
		f.injected[kind]++
	}
	return a
}

// Storm is a plan that goes round in Weather.
func Storm() func() Answer {
	n := 0
	return func() Answer {
		n++
		return Weather[n%len(Weather)]
	}
}
