package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// way is what becomes of a request of the client.
type way int

const (
	refused way = iota
	passes      // as a part of the protocol
	crosses     // as a crossing of its own
	listens     // as a subscription
)

// wayOf says what becomes of a method. One that is not in the table crosses
// only where a contract names exactly it.
func (s *session) wayOf(method string) way {
	switch method {
	case "initialize", mcp.MethodDiscover, "ping", "logging/setLevel", mcp.MethodListTools,
		mcp.MethodListResources, mcp.MethodListTemplates, mcp.MethodListPrompts:
		return passes
	case mcp.MethodCallTool, mcp.MethodReadResource, mcp.MethodSubscribe, mcp.MethodUnsubscribe,
		mcp.MethodGetPrompt, mcp.MethodComplete:
		return crosses
	case mcp.MethodListen:
		return listens
	}
	if s.named(method) {
		return crosses
	}
	return refused
}

// asks says whether the answer to a method may be questions to the client.
func asks(method string) bool {
	return method == mcp.MethodCallTool || method == mcp.MethodReadResource || method == mcp.MethodGetPrompt
}

// methodBoundary is the name under which a method other than a tool's call is
// crossed: mcp/<server>/<method> for the client's, client/<server>/<method>
// for what a server asks of its client.
func methodBoundary(root, server, method string) string {
	name := root + "/" + Segment(server)
	for part := range strings.SplitSeq(method, "/") {
		name += "/" + Segment(part)
	}
	return name
}

func (s *session) boundaryOf(method string) string { return methodBoundary("mcp", s.Server, method) }

// named says whether a contract names exactly this method of the client. A
// method of one word would share its name with a tool and is none.
func (s *session) named(method string) bool {
	if !strings.Contains(method, "/") {
		return false
	}
	b := s.boundaryOf(method)
	c, ok := s.Kernel.Listed(b)
	return ok && c.Boundary == b
}

// opening says what would let a method pass, "" where nothing would.
func (s *session) opening(method string) string {
	if !strings.Contains(method, "/") {
		return ""
	}
	return "a contract for exactly " + s.boundaryOf(method) + " would let it pass"
}

// mayAsk says whether a contract lets the server ask the client a method: one
// that names it exactly, or all questions of this server.
func (s *session) mayAsk(method string) bool {
	b := methodBoundary("client", s.Server, method)
	c, ok := s.Kernel.Listed(b)
	return ok && c.Risk != holdfast.Prohibited && (c.Boundary == b || c.Boundary == "client/"+Segment(s.Server)+"/*")
}

// defaults tells the kernel of the methods that every server has, as it is told
// of tools: MEDIUM, unless configuration says otherwise. It returns which are
// PROHIBITED.
func (s *session) defaults(ctx context.Context) (map[string]bool, error) {
	var cs []holdfast.Contract
	for _, method := range []string{mcp.MethodReadResource, mcp.MethodSubscribe, mcp.MethodUnsubscribe,
		mcp.MethodGetPrompt, mcp.MethodComplete} {
		sum := sha256.Sum256([]byte("a method of the protocol: " + method))
		cs = append(cs, holdfast.Contract{Boundary: s.boundaryOf(method), Risk: holdfast.Medium,
			Permissions: []string{PermissionCall}, Pin: hex.EncodeToString(sum[:]), Source: "mcp/" + Segment(s.Server)})
	}
	hidden, err := s.prohibited(ctx, cs)
	if err != nil {
		return nil, fmt.Errorf("tell of the MCP server's methods: %w", err)
	}
	s.introduced.Store(true)
	return hidden, nil
}

// introduce tells the kernel of the methods, once in a session.
func (s *session) introduce(ctx context.Context) error {
	if s.introduced.Load() {
		return nil
	}
	_, err := s.defaults(ctx)
	return err
}
