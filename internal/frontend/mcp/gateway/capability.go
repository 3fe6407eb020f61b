package gateway

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// paramNames is every parameter to which a method that passes gives a meaning.
func paramNames() []string {
	return []string{"name", "arguments", "_meta", "cursor", "capabilities", "task",
		"inputResponses", "requestState", "requestId", "protocolVersion", "clientInfo", "level",
		"uri", "ref", "argument", "context", "notifications"}
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
		if err := undisguised("params._meta", p.meta, mcp.MetaCapabilities, mcp.MetaProtocol, mcp.MetaClientInfo,
			mcp.MetaLogLevel, mcp.MetaProgress); err != nil {
			return p, err
		}
	}
	v, ok := mcp.Text(p.meta.Get(mcp.MetaProtocol))
	p.stateless = ok && v >= mcp.StatelessSince
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

// muteServer takes out of the answer to a handshake every capability of which
// nothing is known here. That tools change is promised where what is shown of
// them may, whatever the server does.
func (s *session) muteServer(result []byte) ([]byte, error) {
	caps := mcp.Get(result, "capabilities")
	if caps == nil {
		return result, nil
	}
	kept, err := mcp.Keep(caps, func(name string) bool {
		switch name {
		case "tools", "resources", "prompts", "completions", "logging":
			return true
		}
		return false
	})
	if err != nil {
		return nil, errors.New("capabilities is not an object")
	}
	if s.Swapped != nil && jsontext.Value(mcp.Get(kept, "tools")).Kind() == '{' && string(mcp.Get(kept, "tools", "listChanged")) != "true" {
		if kept, err = mcp.Set(kept, []byte("true"), "tools", "listChanged"); err != nil {
			return nil, fmt.Errorf("capabilities: %w", err)
		}
	}
	return mcp.Set(result, kept, "capabilities")
}

// The questions that the protocol lets a server ask of a client.
const (
	askRoots    = "roots/list"
	askSampling = "sampling/createMessage"
	askElicit   = "elicitation/create"
)

// capabilityOf is the capability without which a client is not asked.
func capabilityOf(method string) string {
	switch method {
	case askRoots:
		return "roots"
	case askSampling:
		return "sampling"
	case askElicit:
		return "elicitation"
	}
	return ""
}

// shownCapabilities returns what a server learns of what a client can: only
// the questions that a contract lets it ask, each an invitation to ask it.
func (s *session) shownCapabilities(v []byte) ([]byte, error) {
	o, err := readObject(v)
	if err != nil {
		return nil, err
	}
	var out mcp.Builder
	for _, c := range []struct {
		method string
		parts  []string
	}{{askRoots, nil}, {askSampling, []string{"context", "tools"}}, {askElicit, []string{"form", "url"}}} {
		name := capabilityOf(c.method)
		can := mcp.Fields(o.Get(name))
		if jsontext.Value(o.Get(name)).Kind() != '{' || !s.mayAsk(c.method) {
			continue
		}
		var shown mcp.Builder
		for _, part := range c.parts {
			if jsontext.Value(can[part]).Kind() == '{' {
				shown.Add(part, []byte("{}"))
			}
		}
		if changes := string(can["listChanged"]); name == "roots" && (changes == "true" || changes == "false") {
			shown.Add("listChanged", []byte(changes))
		}
		out.Add(name, shown.Bytes())
	}
	return out.Bytes(), nil
}

// abilities is what a client said it can be asked.
type abilities struct {
	named     map[string]bool // its capabilities that are objects
	form, url bool            // of elicitation
}

// readAbilities reads a client's capabilities; what is none counts as nothing.
func readAbilities(v []byte) abilities {
	a := abilities{named: map[string]bool{}}
	for name, c := range mcp.Fields(v) {
		a.named[name] = jsontext.Value(c).Kind() == '{'
	}
	if !a.named["elicitation"] {
		return a
	}
	modes := mcp.Fields(mcp.Get(v, "elicitation"))
	a.url = jsontext.Value(modes["url"]).Kind() == '{'
	a.form = jsontext.Value(modes["form"]).Kind() == '{' || modes["form"] == nil && !a.url
	return a
}

// can says whether the client lets itself be asked a method.
func (a abilities) can(method string) bool {
	name := capabilityOf(method)
	return name == "" || a.named[name]
}
