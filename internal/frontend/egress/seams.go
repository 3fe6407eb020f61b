package egress

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/memory"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// This file is where the inbound half (what a client may say) and the outbound
// half (what leaves, and what comes back) of the proxy meet. exchange.go calls
// the methods below in this order, for one request:
//
//	readBody     the client's body, decoded, redacted, capped        body.go
//	outgoing     the client's header, cleaned and redacted           credential.go
//	             ... kernel.Cross; the rest is inside the act ...
//	credential   the tenant's own credential                         credential.go
//	send         resolve, check, dial, TLS, first byte               upstream.go
//	relay        the redacted answer to the client                   relay.go
//	webSocket    instead of send and relay, for an upgrade           websocket.go
//	tunnel       instead of all of it, for an opaque domain          tunnel.go

// body is a request's body as it goes out: decoded, redacted, in one piece.
type body struct {
	// raw is the bytes; empty for a request without a body.
	raw []byte
	// size and sum are of raw.
	size int64
	sum  [32]byte
	// contentType is what the client said, "" for nothing.
	contentType string
	findings    []redact.Finding
	// masks redacts the body of a row with placeholders that has no texts of a known dialect; nil once it
	// was redacted.
	masks func() *holdfast.Error
	share *memory.Share
	// done gives back the memory that raw takes; never nil, may be called
	// more than once.
	done func()
}

// relayed is what was measured of an answer, complete or not.
type relayed struct {
	// status is the upstream's; 0 where none came.
	status int
	// bytes and sum are of the body that the client got, after redaction.
	bytes int64
	sum   [32]byte
	// sent is what went to the upstream, in bytes, where more did than the
	// request's body: frames of a WebSocket, bytes of a tunnel.
	sent        int64
	contentType string
	// text is the first 4 KB of a redacted text, for the record.
	text string
	// restored says that the client got the values of placeholders, which text does not have.
	restored bool
	findings []redact.Finding
	// began says that something was written to the client: a status can no
	// longer be chosen.
	began bool
}
