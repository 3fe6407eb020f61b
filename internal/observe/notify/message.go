// Package notify tells people of what is wrong, by mail, short message and chat
// (spec 001, respond_to_anomaly; D41a). What waits to be told is kept in a file,
// so that neither a restart nor a crash loses it; each channel is tried by itself,
// so that one that hangs holds no other up.
//
// An address of a channel is a secret: no error, no log line and nothing that is
// kept holds it.
package notify

import (
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// The most that a message holds, in bytes.
const (
	MaxTitle = 200
	MaxText  = 1500
	maxShort = 300 // of a short message, title and text together
)

// Message is what people are told. Its texts are redacted by whoever makes it;
// Open's channels make of them what cannot mention, link or format anything.
type Message struct {
	// ID is the same at each try, so that a receiver can tell what it has.
	ID string    `json:"id"`
	At time.Time `json:"at"` // UTC
	// Runtime is the state's id.
	Runtime string `json:"runtime"`
	// Severity is LOW, MEDIUM, HIGH or CRITICAL (D41a).
	Severity  string `json:"severity"`
	Condition string `json:"condition"`
	// Title is one line, Text a few.
	Title    string `json:"title"`
	Text     string `json:"message"`
	Tenant   string `json:"tenant_id,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Crossing string `json:"crossing,omitempty"`
	// Cleared says that the condition holds no more, Test that nothing is wrong.
	Cleared bool `json:"cleared,omitempty"`
	Test    bool `json:"test,omitempty"`
	// More is how many other alerts this one stands for.
	More int `json:"more,omitempty"`
}

// Line is s as one line of at most so many bytes: without what ends a line, moves
// a cursor, turns the writing round or cannot be seen.
func Line(s string, most int) string {
	var b strings.Builder
	space := true // none at the beginning
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			r = ' '
		case unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Variation_Selector):
			continue
		}
		if r == ' ' && space {
			continue
		}
		space = r == ' '
		b.WriteRune(r)
		if b.Len() > most+utf8Max {
			break
		}
	}
	return excerpt.Of(strings.TrimRight(b.String(), " "), most)
}

const utf8Max = 4

// Lines is s as Line makes it, line by line.
func Lines(s string, most int) string {
	var out []string
	for line := range strings.SplitSeq(excerpt.Of(s, 2*most), "\n") {
		if line = Line(line, most); line != "" {
			out = append(out, line)
		}
	}
	return excerpt.Of(strings.Join(out, "\n"), most)
}

// bounded is m with its texts cleaned.
func (m *Message) bounded() Message {
	out := *m
	out.Title, out.Text = Line(m.Title, MaxTitle), Lines(m.Text, MaxText)
	out.Condition, out.Severity = Line(m.Condition, MaxTitle), Line(m.Severity, MaxTitle)
	out.Tenant, out.Agent, out.Crossing = Line(m.Tenant, MaxTitle), Line(m.Agent, MaxTitle), Line(m.Crossing, MaxTitle)
	return out
}

// inert is text that makes no link, mention or image in any of the markups that
// chats and mail readers know: an agent's words may stand in it.
func inert(s string) string {
	return strings.NewReplacer("://", "[:]//", "www.", "www[.]", "](", "] (", "@", "(at)", "<", "\u2039", ">", "\u203A", "`", "'").Replace(s)
}

// plain is the message as text: the title, and beneath it the rest.
func (m *Message) plain() string {
	if m.Text == "" {
		return inert(m.Title)
	}
	return inert(m.Title) + "\n" + inert(m.Text)
}

// short is the message in one line, as a telephone shows it.
func (m *Message) short() string { return Line(m.plain(), maxShort) }
