// Package domain judges where a request may go: what a host, an authority and
// an URL are, which addresses are reachable, and what the allowlist says of
// them (spec 003 section 3.1, D22, D25a, D46). It is pure: it resolves no name
// and opens no connection.
//
// Every other part of the proxy uses the Host that this package made, and
// never the text that it was made from.
package domain

import (
	"net/netip"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// The types a domain may have; they set the default risk and unit (D25c).
const (
	LLM       = "llm"
	Email     = "email"
	Messaging = "messaging"
	API       = "api"
	Package   = "package"
	Git       = "git"
)

// Unit is what a domain's budget counts (D24). Empty means by type: token_count
// for llm, messages for email and messaging, calls for all others.
type Unit string

// The units, and the resource each is counted as: http_requests, messages,
// bytes_out, llm_tokens.
const (
	Calls    Unit = "calls"
	Messages Unit = "messages"
	Bytes    Unit = "bytes"
	Tokens   Unit = "token_count"
)

// Inspect says whether a domain's TLS is terminated and what is inside judged.
// Empty means Terminate.
type Inspect string

// The two classes of D25a. Of an opaque tunnel only the name, the port and the
// bytes are known, and its record says "not inspected".
const (
	Terminate Inspect = "terminate"
	Opaque    Inspect = "opaque"
)

// Redaction is what happens to what must not leave, or come in. An empty
// Request is Placeholder and an empty Response Restore in a row of type llm, else
// they are Refuse and Mask. An empty Personal is Mask.
type Redaction string

// Mask replaces what is found, Refuse refuses the whole message, Off looks for
// nothing, secrets or personal data, and is a weakening.
const (
	Mask   Redaction = "mask"
	Refuse Redaction = "refuse"
	Off    Redaction = "off"
	// Placeholder replaces what is found in the texts of a request to a model; Restore restores it in the
	// answer, and changes nothing else there (D13a).
	Placeholder Redaction = "placeholder"
	Restore     Redaction = "restore"
	// Pass lets personal data through; a weakening.
	Pass Redaction = "pass"
)

// The defaults of a Domain, in bytes and seconds (spec 003 section 3.1, D25),
// and the most that one may ask for.
const (
	DefaultMaxRequest  int64         = 10 << 20
	DefaultMaxResponse int64         = 100 << 20
	DefaultFirstByte   time.Duration = 30 * time.Second

	MostRequest   int64         = 256 << 20
	MostResponse  int64         = 16 << 30
	MostFirstByte time.Duration = 10 * time.Minute
	MostIdle      time.Duration = 24 * time.Hour
	MostRate                    = 100_000
	MostRows                    = 10_000
)

// Credential is the header that the proxy adds once a request has passed
// (D23). The value never stands here.
type Credential struct {
	// Header is the header's name, such as "Authorization" or "x-api-key".
	Header string
	// Prefix stands before the value, such as "Bearer "; it may be empty.
	Prefix string
	// Source names where the value comes from, opaque to this package.
	Source string
}

// Domain is one row of the allowlist. The zero value names no host and is
// refused by NewTable; a row of a Table has its defaults filled in and must not
// be changed.
type Domain struct {
	// Name is the host: "api.openai.com", "*.example.com" (one or more
	// labels, never example.com itself) or an IP literal, each with ":port"
	// where the row is for that port alone ("[v6]:port" for IPv6). A Table
	// holds the canonical form.
	Name string
	// Type is one of the constants; empty means "api".
	Type string
	// Ports are the ports besides a ":port" in Name, which forbids them.
	// Empty means 443, and 80 too with Plain.
	Ports []uint16
	// Plain permits http without TLS; a weakening.
	Plain bool
	// Methods are upper-case; empty means GET, HEAD, POST, PUT, PATCH, DELETE
	// and OPTIONS. CONNECT and TRACE cannot be listed.
	Methods []string
	// Paths are the paths that may be asked for; empty means all.
	Paths []PathPattern
	// Rate is the most requests in any 60 s per tenant; 0 means no rate of its
	// own. The daemon makes it a rate limit.
	Rate int
	Unit Unit
	// MaxRequest and MaxResponse bound bodies, in bytes after decoding; 0
	// means the default: DefaultPrompt of requests to models.
	MaxRequest, MaxResponse int64
	Inspect                 Inspect
	// Binary permits bodies that cannot be decoded or looked into: they are
	// hashed and capped only (D25a).
	Binary bool
	// Parts is of requests to models. Empty means AllowParts with Binary, and at a known host of models where
	// requests have placeholders; else RefuseParts.
	Parts Parts
	// WebSocket permits the upgrade, and no other upgrade is.
	WebSocket bool
	// Request and Response are of the secrets in each direction, Personal is of the personal data in both where they
	// mask or refuse. Personal is empty where neither does.
	Request, Response, Personal Redaction
	// Detector names the program that searches for names and addresses, opaque to this package; "" for none.
	Detector string
	// Addresses are dialled instead of what DNS says: the only way to a
	// private or loopback address. Link-local, metadata, multicast and
	// unspecified addresses are refused even here.
	Addresses []netip.Addr
	// Roots is a file of the upstream's own certificate authorities; opaque
	// here.
	Roots string
	// Credential is what the proxy adds; nil means nothing is added.
	Credential *Credential
	// AgentCredentials lets the agent's own credential headers pass; a
	// weakening (D23).
	AgentCredentials bool
	// FirstByte is how long the upstream may take to its first byte; 0 means
	// 30 s (D25), of models DefaultThinkTime.
	FirstByte time.Duration
	// Idle is how long the upstream may send nothing in the middle of an
	// answer, or both ends of a tunnel or a WebSocket; 0 means by what it is:
	// 5 min, 1 h for events and WebSockets, 10 min for tunnels.
	Idle time.Duration
	// Risk overrides the risk of D25c, for every method.
	Risk *holdfast.Risk
	// Models is of rows of type llm.
	Models Models
	// Source is where the row was read, "file:line".
	Source string

	covers string // a host of models that the row's star lets ask, unmetered
}

// Boundary is the name of the boundary that a request to d crosses:
// "egress/" + Name.
func (d *Domain) Boundary() string { return "egress/" + d.Name }
