package gateway

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/mcp"
)

// Names in a request's _meta. The first three belong to MCP since 2026-07-28,
// where there is no handshake and each request says what it needs.
const (
	metaProtocol     = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaPrefix       = "io.modelcontextprotocol/"
	metaTraceparent  = "traceparent"
	metaTracestate   = "tracestate"
	metaIdempotency  = "dev.holdfast/idempotency-key"
)

// statelessSince is the first protocol version without a handshake.
const statelessSince = "2026-07-28"

// paramNames is every parameter to which a method that passes gives a meaning.
func paramNames() []string {
	return []string{"name", "arguments", "_meta", "cursor", "capabilities", "task",
		"inputResponses", "requestState", "requestId", "protocolVersion", "clientInfo", "level"}
}

// checkParams refuses names that a decoder which ignores case would take for
// others: such a server would do something else than was judged.
func checkParams(params []byte) error {
	if params == nil {
		return nil
	}
	ms, err := mcp.Members(params)
	if err != nil {
		return err
	}
	for _, m := range ms {
		if real := mcp.Disguised(m.Name, paramNames()...); real != "" {
			return fmt.Errorf("params member %q differs from %q only in case", m.Name, real)
		}
		if m.Name != "_meta" {
			continue
		}
		meta, err := mcp.Members(m.Value(params))
		if err != nil {
			return errors.New("params._meta is not an object")
		}
		for _, m := range meta {
			if real := mcp.Disguised(m.Name, metaCapabilities, metaProtocol); real != "" {
				return fmt.Errorf("params._meta member %q differs from %q only in case", m.Name, real)
			}
		}
	}
	return nil
}

// muteClient takes out of a request everything that would invite the server
// to ask the client something: the gateway refuses each such question. The
// members themselves stay, empty, because versions of MCP require them.
func muteClient(method string, params []byte) ([]byte, error) {
	var err error
	if method == "initialize" && mcp.Get(params, "capabilities") != nil {
		if params, err = empty(params, "capabilities"); err != nil {
			return nil, err
		}
	}
	if mcp.Get(params, "_meta", metaCapabilities) != nil {
		return empty(params, "_meta", metaCapabilities)
	}
	return params, nil
}

// empty makes the object at path an object without members.
func empty(params []byte, path ...string) ([]byte, error) {
	kept, err := mcp.Keep(mcp.Get(params, path...), func(string) bool { return false })
	if err != nil {
		return nil, fmt.Errorf("params.%s is not an object", strings.Join(path, "."))
	}
	return mcp.Set(params, kept, path...)
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

// stateless says whether a request carries its protocol version itself.
func stateless(params []byte) bool {
	v, ok := text(mcp.Get(params, "_meta", metaProtocol))
	return ok && v >= statelessSince
}
