package headerfield

import (
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// The fields by which hosts of coding agents say who asks within them, and in which
// of their sessions: Claude Code's, then Codex's.
var (
	subIDs      = [...]string{"X-Claude-Code-Agent-Id", "X-Openai-Subagent"}
	subParents  = [...]string{"X-Claude-Code-Parent-Agent-Id", "X-Codex-Parent-Thread-Id"}
	subSessions = [...]string{"X-Claude-Code-Session-Id", "Session_id", "Session-Id"}
)

// maxSubWord is how much of each of them is told, in bytes: more than any may have
// that the kernel takes.
const maxSubWord = 256

// SubAgent is what a request's header says of who asks; nil where it says nothing.
// What of it is taken, and how it is written down, the kernel says.
func SubAgent(h http.Header) *holdfast.SubAgent {
	s := holdfast.SubAgent{ID: word(h, subIDs[:]), Parent: word(h, subParents[:]), Session: word(h, subSessions[:])}
	if s == (holdfast.SubAgent{}) {
		return nil
	}
	return &s
}

// word is what the first of the fields says that is there. A field that is there more
// than once says all of it, which is no id.
func word(h http.Header, names []string) string {
	for _, name := range names {
		if said := strings.Join(h[name], ", "); said != "" {
			return said[:min(len(said), maxSubWord)]
		}
	}
	return ""
}
