package api

import (
	"context"
	"time"
)

// AlertAsk names the channel that a test goes through; empty names all.
type AlertAsk struct {
	Channel string `json:"channel"`
}

// AlertTried is what came of a test through one channel. Nothing in it is an
// address.
type AlertTried struct {
	Channel string `json:"channel"`
	Kind    string `json:"kind"` // sms, mail or chat
	// Service is what it speaks to, such as smtp; empty where its address cannot be
	// had.
	Service string `json:"service,omitempty"`
	Told    bool   `json:"told"`
	Why     string `json:"why,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Millis  int64  `json:"ms"`
}

// AlertChannel is how it stands with one channel.
type AlertChannel struct {
	Channel string `json:"channel"`
	Kind    string `json:"kind"`
	// For are the severities that go through it, the worst first, and daily_report
	// where the day's report does.
	For []string `json:"for,omitempty"`
	// Failing is since when each try fails, and Why why the last did.
	Failing time.Time `json:"failing_since,omitzero"`
	Why     string    `json:"why,omitempty"`
	Waiting int       `json:"waiting"`
	// Sent and Failed are tries since the start.
	Sent   int64 `json:"sent"`
	Failed int64 `json:"failed"`
}

// TestAlerts sends a marked test through a channel, or through all.
func (c *Client) TestAlerts(ctx context.Context, channel string) ([]AlertTried, error) {
	var out []AlertTried
	err := c.call(ctx, "POST", "/v1/alerts/test", AlertAsk{channel}, &out)
	return out, err
}

func (s *Server) testAlerts(ctx context.Context, a AlertAsk) ([]AlertTried, error) {
	return s.TestAlerts(ctx, a.Channel)
}
