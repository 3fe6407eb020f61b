package api

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/observe/alert"
)

// AlertAsk names the channel that a test goes through; empty names all.
type AlertAsk struct {
	Channel string `json:"channel"`
}

// AlertTried is the result of a test through one channel, and AlertChannel the status of one.
type (
	AlertTried   = alert.Tried
	AlertChannel = alert.Channel
)

// TestAlerts sends a marked test through a channel, or through all.
func (c *Client) TestAlerts(ctx context.Context, channel string) ([]AlertTried, error) {
	var out []AlertTried
	err := c.call(ctx, "POST", "/v1/alerts/test", AlertAsk{channel}, &out)
	return out, err
}

func (s *Server) testAlerts(ctx context.Context, a AlertAsk) ([]AlertTried, error) {
	return s.TestAlerts(ctx, a.Channel)
}
