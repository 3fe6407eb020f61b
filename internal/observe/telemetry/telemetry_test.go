package telemetry

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func TestTelemetryIsOffUnlessConfigured(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1/")
	tel, err := New(t.Context(), Options{Version: "v", Runtime: "r", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tel.Tracer().Start(t.Context(), "x")
	if span.IsRecording() || span.SpanContext().IsValid() {
		t.Error("a span is recorded")
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTelemetrySends(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1/")
	got := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- r.URL.Path + " " + r.Header.Get("Authorization") + " " + string(b)
	}))
	defer s.Close()
	tel, err := New(t.Context(), Options{Endpoint: s.URL + "/v1/traces",
		Headers: map[string]holdfast.Secret{"Authorization": holdfast.NewSecret("Bearer x")},
		Version: "v", Runtime: "r", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tel.Tracer().Start(t.Context(), "a crossing")
	span.End()
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case out := <-got:
		if !strings.HasPrefix(out, "/v1/traces Bearer x ") || !strings.Contains(out, "a crossing") || !strings.Contains(out, "holdfast") {
			t.Errorf("got %q", out)
		}
	default:
		t.Error("nothing was sent")
	}
}

// A collector that never answers holds nothing up.
func TestTelemetryEndsInTime(t *testing.T) {
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-stop
	}))
	defer s.Close()
	defer close(stop)
	tel, err := New(t.Context(), Options{Endpoint: s.URL, Version: "v", Runtime: "r",
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for range 10_000 {
		_, span := tel.Tracer().Start(t.Context(), "x")
		span.End()
	}
	if d := time.Since(start); d > 4*telemetrySend { // twenty sendings' worth of spans
		t.Errorf("spans waited %v", d)
	}
	start = time.Now()
	_ = tel.Close(t.Context())
	if d := time.Since(start); d >= telemetrySend {
		t.Errorf("ending took %v", d)
	}
}
