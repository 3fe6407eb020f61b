package gateway

import "github.com/holdfast-dev/holdfast/internal/frontend/mcp"

// Names in a request's _meta. Since 2026-07-28 there is no handshake, and each
// request carries the first four.
const (
	metaProtocol     = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaProgress     = "progressToken"
	metaTraceparent  = "traceparent"
	metaTracestate   = "tracestate"
	metaBaggage      = "baggage"
	// metaSubscription names the request that opened a subscription.
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
	metaIdempotency  = ownPrefix + "idempotency-key"

	// ownPrefix marks the members that Holdfast writes.
	ownPrefix = "dev.holdfast/"
)

// statelessSince is the first protocol version without a handshake.
const statelessSince = "2026-07-28"

// Methods and notifications that have a meaning here.
const (
	callTool         = "tools/call"
	readResource     = "resources/read"
	subscribe        = "resources/subscribe"
	unsubscribe      = "resources/unsubscribe"
	getPrompt        = "prompts/get"
	complete         = "completion/complete"
	listen           = "subscriptions/listen"
	listTools        = "tools/list"
	listResources    = "resources/list"
	listTemplates    = "resources/templates/list"
	listPrompts      = "prompts/list"
	discover         = "server/discover"
	cancelledMessage = "notifications/cancelled"
	progressMessage  = "notifications/progress"
)

// Bounds of texts in a message that nothing evaluates, in bytes.
const (
	maxWord   = 256 // versions, names, titles and the W3C traceparent
	maxCursor = 1 << 10
)

// listShape returns, for the method of a list, the kind in its notification, the
// member of the result that holds the items and the member that names an item.
func listShape(method string) (kind, items, name string) {
	switch method {
	case listTools:
		return "tools", "tools", "name"
	case listPrompts:
		return "prompts", "prompts", "name"
	case listResources:
		return "resources", "resources", "uri"
	case listTemplates:
		return "resources", "resourceTemplates", "uriTemplate"
	}
	return "", "", ""
}

// cursor returns a result's nextCursor, "" at the end of the list.
func cursor(result []byte) string {
	c, _ := text(mcp.Get(result, "nextCursor"))
	return c
}
