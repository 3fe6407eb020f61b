package gateway

import (
	"errors"

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
	err := c.maskCall()
	if err == nil {
		return
	}
	op := holdfast.Opinion{Gate: holdfast.K6, Verdict: holdfast.Deny, Kind: holdfast.KindRedaction,
		Rule: redaction.Rule,
		Why:  "what was to be sent cannot be searched"}
	if e, ok := errors.AsType[*holdfast.Error](err); ok {
		op.Gate, op.Kind, op.Rule, op.Why, op.Hint = e.Gate, e.Kind, e.Rule, e.Why, e.Hint
	} else {
		s.Log.Error("an MCP call cannot be searched", "mcp_server", s.Server, "err", err)
	}
	c.denials = append(c.denials, op)
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
	if c.beside != nil {
		if c.beside, err = c.search.Request("params", c.beside); err != nil {
			return err
		}
		if err := c.splitExtras(); err != nil {
			return err
		}
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
	ms, err := mcp.Members(c.beside)
	if err != nil {
		return err
	}
	c.extra, c.extraMeta = nil, nil
	for _, m := range ms {
		v := m.Value(c.beside)
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
