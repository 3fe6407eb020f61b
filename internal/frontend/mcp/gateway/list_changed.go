package gateway

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

const toolsChanged = "toolsListChanged"

// relist tells the client to list the tools again, each time other things are
// configured: a tool that it was shown may be PROHIBITED to it now, and one that
// was may be no more (D37). swapped is closed the first time.
func (s *session) relist(ctx context.Context, swapped <-chan struct{}) {
	for {
		select {
		case <-swapped:
		case <-ctx.Done():
			return
		}
		swapped = s.Swapped()
		s.tools.changed()
		s.mu.Lock()
		handshaken := s.handshaken
		var subs []*flight
		for _, f := range s.listens {
			if slices.Contains(f.sub.flags, toolsChanged) {
				subs = append(subs, f)
			}
		}
		s.mu.Unlock()
		m := mcp.Message{Method: "notifications/tools/list_changed"}
		if handshaken {
			s.pass(ctx, "", m)
		}
		for _, f := range subs {
			var params mcp.Builder
			params.Add("_meta", s.subscriptionMeta(f))
			s.pass(ctx, f.key, mcp.Message{Method: m.Method, Params: params.Bytes()})
		}
	}
}
