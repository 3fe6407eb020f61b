package headerfield

import (
	"net/http"
	"strings"
)

// isVolatile reports whether a header field changes between two attempts at one
// thing. It is redacted and sent, and no part of what is judged.
func isVolatile(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Baggage", "Date", "Idempotency-Key", "Sec-Websocket-Key", "Sentry-Trace", "Traceparent", "Tracestate",
		"X-Amzn-Trace-Id",
		"X-Client-Request-Id", "X-Correlation-Id", "X-Request-Id", "X-Stainless-Read-Timeout",
		"X-Stainless-Retry-Count", "X-Stainless-Timeout":
		return true
	}
	return false
}

// SelectStable returns the fields of h that are equal in two attempts at one request, by names in small
// letters.
func SelectStable(h http.Header) map[string][]string {
	out := make(map[string][]string, len(h))
	for name, values := range h {
		if isVolatile(name) {
			continue
		}
		clean := make([]string, len(values))
		for i, v := range values {
			clean[i] = strings.ToValidUTF8(v, "\uFFFD")
		}
		out[strings.ToLower(name)] = clean
	}
	return out
}
