// Package telemetry sends OpenTelemetry traces, and nothing without an endpoint.
package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Bounds on telemetry, which must never hold up what it watches: spans wait in
// a queue that drops the rest, and ending waits no longer than this.
const (
	telemetryEnd   = 2 * time.Second
	telemetrySend  = 5 * time.Second
	telemetryQueue = 2048
)

// Options say where spans go, and of what they are.
type Options struct {
	Endpoint string // OTLP over HTTP; empty sends none
	Headers  map[string]holdfast.Secret
	Version  string // the program's
	Runtime  string // the state directory's id
	Log      *slog.Logger
}

// Telemetry is where spans go.
type Telemetry struct {
	provider trace.TracerProvider
	end      func(context.Context) error
}

// New returns a provider that does nothing unless an endpoint is
// configured, whatever OTEL_ environment variables say; then spans are sent there
// in batches, by OTLP over HTTP. A collector that fails is logged, once until it works
// again.
func New(ctx context.Context, c Options) (*Telemetry, error) {
	if c.Endpoint == "" {
		return &Telemetry{provider: noop.NewTracerProvider(), end: func(context.Context) error { return nil }}, nil
	}
	headers := make(map[string]string, len(c.Headers))
	for name, value := range c.Headers {
		headers[name] = value.Reveal()
	}
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(c.Endpoint),
		otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithTimeout(telemetrySend))
	if err != nil {
		return nil, usage.Errorf("telemetry.endpoint: %v", err)
	}
	p := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&spanSender{SpanExporter: exporter, log: c.Log}, sdktrace.WithMaxQueueSize(telemetryQueue),
			sdktrace.WithExportTimeout(telemetrySend)),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "holdfast"),
			attribute.String("service.version", c.Version),
			attribute.String("service.instance.id", c.Runtime))))
	return &Telemetry{provider: p, end: p.Shutdown}, nil
}

// spanSender keeps failures from the library's global error handler, which
// would print each of them. The batcher calls it from one goroutine at a time.
type spanSender struct {
	sdktrace.SpanExporter
	log    *slog.Logger
	failed atomic.Bool
}

// ExportSpans sends spans; those that cannot be sent are lost.
func (s *spanSender) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	if was := s.failed.Swap(err != nil); err != nil && !was {
		s.log.Warn("traces cannot be sent and are lost", "err", err)
	}
	return nil
}

// Tracer returns the tracer for everything in Holdfast.
func (t *Telemetry) Tracer() trace.Tracer {
	return t.provider.Tracer("github.com/holdfast-dev/holdfast")
}

// Close sends what waits and ends within 2 s, whatever the collector does. It
// does so when ctx has ended too.
func (t *Telemetry) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), telemetryEnd)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- t.end(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
