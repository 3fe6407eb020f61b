package mcp

// Names in a request's _meta. Since 2026-07-28 there is no handshake, and each
// request carries the first four.
const (
	MetaProtocol     = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo   = "io.modelcontextprotocol/clientInfo"
	MetaLogLevel     = "io.modelcontextprotocol/logLevel"
	MetaProgress     = "progressToken"
	MetaTraceparent  = "traceparent"
	MetaTracestate   = "tracestate"
	MetaBaggage      = "baggage"
	// MetaSubscription names the request that opened a subscription.
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
	MetaIdempotency  = OwnPrefix + "idempotency-key"

	// OwnPrefix marks the members that Holdfast writes.
	OwnPrefix = "dev.holdfast/"
)

// StatelessSince is the first protocol version without a handshake.
const StatelessSince = "2026-07-28"

// ListVersions returns the protocol versions that Holdfast speaks, newest first.
func ListVersions() []string {
	return []string{StatelessSince, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// Headers of the HTTP transport, in the canonical form of net/http.
const (
	HeaderVersion = "Mcp-Protocol-Version"
	HeaderSession = "Mcp-Session-Id"
	HeaderMethod  = "Mcp-Method"
	HeaderName    = "Mcp-Name"
	HeaderParam   = "Mcp-Param-"
)

// Methods and notifications that have a meaning here.
const (
	MethodCallTool      = "tools/call"
	MethodReadResource  = "resources/read"
	MethodSubscribe     = "resources/subscribe"
	MethodUnsubscribe   = "resources/unsubscribe"
	MethodGetPrompt     = "prompts/get"
	MethodComplete      = "completion/complete"
	MethodListen        = "subscriptions/listen"
	MethodListTools     = "tools/list"
	MethodListResources = "resources/list"
	MethodListTemplates = "resources/templates/list"
	MethodListPrompts   = "prompts/list"
	MethodDiscover      = "server/discover"
	MethodCancelled     = "notifications/cancelled"
	MethodProgress      = "notifications/progress"
)

// Bounds of texts in a message that nothing evaluates, in bytes.
const (
	MaxWord   = 256 // versions, names, titles and the W3C traceparent
	MaxCursor = 1 << 10
)

// ListShape returns, for the method of a list, the kind in its notification, the
// member of the result that holds the items and the member that names an item.
func ListShape(method string) (kind, items, name string) {
	switch method {
	case MethodListTools:
		return "tools", "tools", "name"
	case MethodListPrompts:
		return "prompts", "prompts", "name"
	case MethodListResources:
		return "resources", "resources", "uri"
	case MethodListTemplates:
		return "resources", "resourceTemplates", "uriTemplate"
	}
	return "", "", ""
}

// NextCursor returns a result's nextCursor, "" at the end of the list.
func NextCursor(result []byte) string {
	c, _ := Text(Get(result, "nextCursor"))
	return c
}
