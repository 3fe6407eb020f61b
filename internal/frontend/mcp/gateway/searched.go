package gateway

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/redaction"
)

// findRedact returns the redact of the contract that governs a boundary, the zero value for none.
func (s *session) findRedact(boundary string) holdfast.Redaction {
	if c, ok := s.Kernel.Listed(boundary); ok && c.Redact != nil {
		return *c.Redact
	}
	return holdfast.Redaction{}
}

// searchCall masks what the server gets by the call, as its contract says. What may not be sent becomes a denial of
// the crossing.
func (s *session) searchCall(c *call) {
	c.redact = s.findRedact(c.boundary)
	if c.redact == (holdfast.Redaction{}) {
		return
	}
	c.search = redaction.New(c.redact, s.Engine(), c.Method)
	if err := c.maskCall(); err != nil {
		s.Log.Info("MCP call refused by redact of its contract", "mcp_server", s.Server, "err", err)
		c.denials = append(c.denials, redaction.ToDenial(err))
	}
}

// maskCall masks the payload, the extra members and the client's answers.
func (c *call) maskCall() (err error) {
	place := "params"
	if c.tool != "" {
		place = "arguments"
	}
	payload, err := c.search.Request(place, c.payload)
	if err != nil {
		return err
	}
	if c.extras, err = c.search.Request("params", c.extras); err != nil {
		return err
	}
	if err := c.splitExtras(); err != nil {
		return err
	}
	for _, key := range sorted(c.answers) {
		if c.answers[key], err = c.search.Request("an answer", c.answers[key]); err != nil {
			return err
		}
	}
	c.payload = payload
	return nil
}

// splitExtras reads the extra members again from their document.
func (c *call) splitExtras() error {
	if c.extras == nil {
		return nil
	}
	ms, err := mcp.Members(c.extras)
	if err != nil {
		return err
	}
	c.extra, c.extraMeta = nil, nil
	for _, m := range ms {
		v := m.Value(c.extras)
		if m.Name != "_meta" {
			c.extra = append(c.extra, field{m.Name, v})
			continue
		}
		inner, err := mcp.Members(v)
		if err != nil {
			return err
		}
		for _, m := range inner {
			c.extraMeta = append(c.extraMeta, field{m.Name, m.Value(v)})
		}
	}
	return nil
}

// buildNotice returns the text about what was masked in a call, "" for nothing.
func (c *call) buildNotice() string {
	if c.search == nil || c.denials != nil {
		return ""
	}
	return c.search.Notice()
}

// searchAnswer returns the server's answer as the client may see it. The error withholds it. kept says that the answer
// was given before.
func (c *call) searchAnswer(m mcp.Message, kept bool) (mcp.Message, error) {
	if c.search == nil {
		return m, nil
	}
	var err error
	search := c.search
	if kept {
		search = search.Kept()
	}
	switch {
	case m.Error != nil:
		m.Error, err = search.Error(m.Error)
	case jsontext.Value(m.Result).Kind() == '{':
		m.Result, err = search.Result(m.Result)
	}
	return m, err
}
