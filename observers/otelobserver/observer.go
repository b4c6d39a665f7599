// Package otelobserver makes OpenTelemetry spans of the commits of rhizodat
// connectors: one for each step of the commit protocol, named S3 … S10, with one
// below it for each store, under the span of the context that the transaction was
// begun with.
//
//	cfg, err := rhizodat.ParseDSN(dsn)
//	…
//	cfg.Observer = otelobserver.New(otel.GetTracerProvider())
//
// It is a module of its own, so that the driver needs no tracing library for it.
// Statements are traced by what wraps the driver (otelsql) or by the store's
// client.
package otelobserver

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/coordinator"
)

// Observer is a rhizodat.Observer. It is safe for concurrent use, and for several
// connectors at once.
type Observer struct {
	tracer trace.Tracer
	open   sync.Map // step -> trace.Span
}

var _ rhizodat.Observer = (*Observer)(nil)

// step is one step of one unit in one store.
type step struct {
	txn   string
	step  coordinator.Step
	store string
}

// Attributes of the spans.
const (
	DatTxn  = attribute.Key("rhizodat.dat_txn")
	Store   = attribute.Key("rhizodat.store")
	Verdict = attribute.Key("rhizodat.verdict")
)

// New makes an observer whose spans go to provider.
func New(provider trace.TracerProvider) *Observer {
	return &Observer{tracer: provider.Tracer("github.com/rhizodat/rhizodat-go")}
}

// Step implements rhizodat.Observer.
func (o *Observer) Step(ctx context.Context, e rhizodat.StepEvent) {
	key := step{txn: e.Txn.String(), step: e.Step, store: e.Store}
	if e.Moment == coordinator.Before {
		o.begin(ctx, key, e)
		return
	}
	found, ok := o.open.LoadAndDelete(key)
	if !ok {
		return
	}
	span := found.(trace.Span)
	if e.Err != nil {
		span.RecordError(e.Err)
		span.SetStatus(codes.Error, e.Step.String()+" failed")
	}
	span.End()
}

// begin opens a store's span below that of its step.
func (o *Observer) begin(ctx context.Context, key step, e rhizodat.StepEvent) {
	name, attributes := e.Step.String(), []attribute.KeyValue{DatTxn.String(key.txn)}
	if e.Store != "" {
		name += " " + e.Store
		attributes = append(attributes, Store.String(e.Store))
		if whole, ok := o.open.Load(step{txn: key.txn, step: key.step}); ok {
			ctx = trace.ContextWithSpan(ctx, whole.(trace.Span))
		}
	}
	_, span := o.tracer.Start(ctx, name, trace.WithAttributes(attributes...), trace.WithSpanKind(trace.SpanKindClient))
	o.open.Store(key, span)
}

// Outcome implements rhizodat.Observer: the caller's own span learns how the unit
// ended.
func (o *Observer) Outcome(ctx context.Context, e rhizodat.OutcomeEvent) {
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(DatTxn.String(e.DatTxn.String()), Verdict.String(e.Verdict.String()))
	if e.Err != nil {
		span.RecordError(e.Err)
	}
}
