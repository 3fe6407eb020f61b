package gateway

import (
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// maxSeen bounds what is remembered of what the client was shown. Anything more
// counts as not shown.
const maxSeen = 8192

// errMuted is why an answer that the server gave outside a crossing stays here.
var errMuted = errors.New("the MCP server's answer is not passed: a result of it was withheld in this session, and it could say the same")

// familiar says whether the client may be shown v: whatever it is, while
// nothing was withheld, and after that what it was shown before.
func (s *session) familiar(v []byte) bool {
	closed, sum := s.withholds(), sha256.Sum256(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.muted {
		return s.seen[sum]
	}
	if !closed && len(s.seen) < maxSeen {
		s.seen[sum] = true
	}
	return true
}

// guarded is the server's answer to a request that is no crossing: as it is
// while nothing was withheld, and after that without what is new in it. Of a
// list the items stay that the client was shown before.
func (s *session) guarded(method string, result []byte) ([]byte, error) {
	_, items, name := mcp.ListShape(method)
	if items == "" {
		if !s.familiar(result) && string(result) != "{}" {
			return nil, errMuted
		}
		return result, nil
	}
	all, err := mcp.Elements(mcp.Get(result, items))
	if err != nil {
		all = nil
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(item []byte) bool {
		if s.familiar(item) {
			return false
		}
		was, _ := mcp.Text(mcp.Get(item, name))
		s.odd("what the MCP server lists anew was left out, since a result of it was withheld", "method", method, "item", was[:min(len(was), maxName)])
		return true
	})
	next := mcp.Get(result, "nextCursor")
	whole := next == nil || s.familiar(next)
	s.mu.Lock()
	muted := s.muted
	s.mu.Unlock()
	if !muted {
		return result, nil
	}
	var out mcp.Builder
	if mcp.Get(result, "resultType") != nil {
		out.Add("resultType", []byte(`"complete"`))
	}
	out.Add(items, listOf(kept))
	if next != nil && whole {
		out.Add("nextCursor", next)
	}
	if mcp.Get(result, "ttlMs") != nil {
		out.Add("ttlMs", []byte("0"))
	}
	return out.Bytes(), nil
}
