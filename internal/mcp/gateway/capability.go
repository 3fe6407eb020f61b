package gateway

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/mcp"
)

// Names in a request's _meta. The first four belong to MCP since 2026-07-28,
// where there is no handshake and each request says what it needs.
const (
	metaProtocol     = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaProgress     = "progressToken"
	metaTraceparent  = "traceparent"
	metaTracestate   = "tracestate"
	metaBaggage      = "baggage"
	metaIdempotency  = ownPrefix + "idempotency-key"

	// ownPrefix marks what Holdfast itself says.
	ownPrefix = "dev.holdfast/"
)

// statelessSince is the first protocol version without a handshake.
const statelessSince = "2026-07-28"

// paramNames is every parameter to which a method that passes gives a meaning.
func paramNames() []string {
	return []string{"name", "arguments", "_meta", "cursor", "capabilities", "task",
		"inputResponses", "requestState", "requestId", "protocolVersion", "clientInfo", "level"}
}

// params is what a request says beside its method, looked through once.
type params struct {
	mcp.Object
	meta mcp.Object
	// stateless says that the request carries its protocol version itself.
	stateless bool
}

// readParams refuses names that a decoder which ignores case would take for
// others: such a server would do something else than was judged.
func readParams(m mcp.Message) (params, error) {
	if m.Params == nil {
		return params{}, nil
	}
	o, err := mcp.ReadObject(m.Params)
	if err != nil {
		return params{}, err
	}
	p := params{Object: o}
	if err := undisguised("params", o, paramNames()...); err != nil {
		return p, err
	}
	if meta := o.Get("_meta"); meta != nil {
		if p.meta, err = mcp.ReadObject(meta); err != nil {
			return p, errors.New("params._meta is not an object")
		}
		if err := undisguised("params._meta", p.meta, metaCapabilities, metaProtocol, metaClientInfo, metaLogLevel); err != nil {
			return p, err
		}
	}
	v, ok := text(p.meta.Get(metaProtocol))
	p.stateless = ok && v >= statelessSince
	return p, nil
}

func undisguised(place string, o mcp.Object, names ...string) error {
	for _, m := range o.Members {
		if real := mcp.Disguised(m.Name, names...); real != "" {
			return fmt.Errorf("%s member %q differs from %q only in case", place, m.Name, real)
		}
	}
	return nil
}

// muteServer takes out of the answer to a handshake every capability that the
// gateway does not pass. Since 2026-07-28 a client hears of changed tools over
// a subscription only, which is refused, so that is not promised either.
func muteServer(method string, result []byte) ([]byte, error) {
	caps := mcp.Get(result, "capabilities")
	if caps == nil {
		return result, nil
	}
	kept, err := mcp.Keep(caps, func(name string) bool { return name == "tools" || name == "logging" })
	if err != nil {
		return nil, fmt.Errorf("capabilities is not an object")
	}
	if tools := mcp.Get(kept, "tools"); method == "server/discover" && tools != nil {
		tools, err = mcp.Keep(tools, func(name string) bool { return name != "listChanged" })
		if err != nil {
			return nil, fmt.Errorf("capabilities.tools is not an object")
		}
		if kept, err = mcp.Set(kept, tools, "tools"); err != nil {
			return nil, err
		}
	}
	return mcp.Set(result, kept, "capabilities")
}
