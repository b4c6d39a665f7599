package otelobserver_test

import (
	"database/sql"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/observers/otelobserver"
)

// One commit over two stores is one trace: its steps under the caller's span,
// and each store's part under its step.
func TestObserver(t *testing.T) {
	cluster := pgtest.Server(t)
	a, b := cluster.Database(t, "a"), cluster.Database(t, "b")
	for _, url := range []string{a, b} {
		cluster.Exec(t, pgtest.Name(url), `CREATE TABLE item (id int)`)
	}
	cfg, err := rhizodat.ParseDSN("a=" + a + " b=" + b + " journal=" + cluster.Database(t, "j"))
	if err != nil {
		t.Fatal(err)
	}
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	cfg.Observer = otelobserver.New(provider)
	connector, err := rhizodat.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := connector.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	ctx, request := provider.Tracer("test").Start(t.Context(), "request")
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{"a", "b"} {
		if _, err := tx.ExecContext(ctx, "store:"+store+" INSERT INTO item VALUES (1)"); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	request.End()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	parents := map[string]string{}
	for _, span := range recorder.Ended() {
		name := "?"
		for _, other := range recorder.Ended() {
			if other.SpanContext().SpanID() == span.Parent().SpanID() {
				name = other.Name()
			}
		}
		parents[span.Name()] = name
		if span.Status().Code == codes.Error {
			t.Errorf("%s is marked as failed", span.Name())
		}
	}
	for name, want := range map[string]string{"S4": "request", "S5": "request", "S5 a": "S5", "S5 b": "S5", "S7": "request", "S8 a": "S8"} {
		if parents[name] != want {
			t.Errorf("the parent of %s is %q, want %q (of %v)", name, parents[name], want, parents)
		}
	}
	outer := recorder.Ended()[slices.IndexFunc(recorder.Ended(), func(s sdk.ReadOnlySpan) bool { return s.Name() == "request" })]
	if !slices.ContainsFunc(outer.Attributes(), func(kv attribute.KeyValue) bool {
		return kv.Key == otelobserver.Verdict && kv.Value.AsString() == "committed"
	}) {
		t.Errorf("the caller's span has %v, want the verdict", outer.Attributes())
	}
	if left := len(recorder.Started()) - len(recorder.Ended()); left != 0 {
		t.Errorf("%d spans were never ended", left)
	}
}
