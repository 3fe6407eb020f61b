package domain

import (
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Models is what requests to a row of type llm may ask of its models (D24). The
// zero value is what the row's host is known for.
type Models struct {
	// Provider is whose formats the host speaks: "anthropic" or "openai"; empty
	// means by the host's name, else by the request's path.
	Provider string
	// MaxOutput is the most tokens of output that a request may ask for, and what
	// is asked for where it says nothing; 0 means no limit of its own, and
	// DefaultOutput where the request says nothing.
	MaxOutput int64
	// Window is the most tokens that any of the models reads at once, and so the most
	// that a conversation's input is taken for; 0 refuses requests whose input does
	// not stand in them.
	Window int64
	// ServerCalls is how often a request may have the provider run tools of its
	// own; 0 refuses requests that offer such tools.
	ServerCalls int64
	// Dearer permits what has another price than the ordinary one, such as service
	// tiers.
	Dearer bool
	// Answers says how answers that rules judge go on; empty means JudgedWhole.
	Answers Answers
	// Unmetered permits what nobody can count where tokens or money are: an opaque
	// tunnel, a row of another type, a WebSocket, and requests of which no format is
	// known. A weakening; it may also stand in rows of other types.
	Unmetered bool
}

// Answers is how an answer in events goes on where rules on outputs are in force.
type Answers string

// JudgedWhole gives nothing of it before all of it is judged. JudgedCalls gives its
// text as it comes, and holds what calls a tool until that is judged: what the rules
// say of the text is then recorded, and no longer prevented.
const (
	JudgedWhole Answers = "whole"
	JudgedCalls Answers = "calls"
)

// The defaults of rows of type llm: a request's size in bytes, the output that is
// asked for, in tokens, and how long the first byte may take.
const (
	DefaultPrompt    int64         = 32 << 20
	DefaultOutput    int64         = 32_000
	DefaultThinkTime time.Duration = 10 * time.Minute

	// MostTokens bounds each amount of tokens, MostServerCalls the calls.
	MostTokens      int64 = 100_000_000
	MostServerCalls int64 = 1000
)

// checkModels holds what a row says of models to its bounds.
func checkModels(d *Domain, _ rowName) *holdfast.Error {
	m := &d.Models
	if d.Type != LLM {
		if own := (Models{Unmetered: m.Unmetered}); *m != own {
			return wrong("says what its models may be asked, and is none of type llm", "write type: llm")
		}
		return nil
	}
	most := "an amount of tokens is at most " + strconv.FormatInt(MostTokens, 10)
	switch {
	case !slices.Contains([]string{"", "anthropic", "openai"}, m.Provider):
		return wrong("speaks as "+quote(m.Provider), "a provider is anthropic or openai")
	case m.MaxOutput < 0 || m.MaxOutput > MostTokens:
		return wrong("bounds output at "+strconv.FormatInt(m.MaxOutput, 10)+" tokens", most)
	case m.Window < 0 || m.Window > MostTokens:
		return wrong("has a window of "+strconv.FormatInt(m.Window, 10)+" tokens", most)
	case m.ServerCalls < 0 || m.ServerCalls > MostServerCalls:
		return wrong("allows "+strconv.FormatInt(m.ServerCalls, 10)+" calls of the provider's own tools", "at most "+strconv.FormatInt(MostServerCalls, 10))
	case m.ServerCalls > 0 && m.Window == 0:
		return wrong("allows the provider's own tools, whose model reads its context once more for each", "say how large that is: window")
	case m.Answers != "" && m.Answers != JudgedWhole && m.Answers != JudgedCalls:
		return wrong("judges answers "+quote(string(m.Answers)), "write whole or calls")
	}
	return nil
}

// Speaking returns the row through which the gateway asks a provider's models, and
// where it leads: of the rows of type llm that are for one host and for that
// provider, that of the provider's own host, else the first by name; nil where
// there is none. It leads to the first of the row's ports, by TLS; where the row permits
// plain http, to the first that is not 443, without.
func (t *Table) Speaking(provider string, own func(host string) string) (*Domain, Origin) {
	var best *Domain
	var to Origin
	for _, d := range t.Domains() {
		n, err := readName(d.Name)
		if err != nil || n.wild || d.Type != LLM || d.Inspect == Opaque {
			continue
		}
		known := own(n.host.String())
		if d.Models.Provider != provider && (d.Models.Provider != "" || known != provider) {
			continue
		}
		if best == nil || known == provider && own(to.Host.String()) != provider {
			best, to = d, Origin{TLS: !d.Plain, Host: n.host, Port: gatewayPort(d)}
		}
	}
	return best, to
}

// gatewayPort is the port that the gateway asks a row of models at.
func gatewayPort(d *Domain) uint16 {
	if i := slices.IndexFunc(d.Ports, func(p uint16) bool { return p != 443 }); d.Plain && i >= 0 {
		return d.Ports[i]
	}
	return d.Ports[0]
}
