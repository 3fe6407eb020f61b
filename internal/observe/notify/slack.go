package notify

import (
	"context"
	"net/url"
	"strings"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/slack"
)

// slackHook is an incoming webhook of Slack, or of a service that takes its form.
type slackHook struct {
	url    string
	config slack.Config
}

// openSlack takes slack://hook:A-B-C@webhook as shoutrrr has it, and
// slack+https://hooks.slack.com/services/A/B/C: the address as Slack gives it,
// with slack+ before it.
func openSlack(u *url.URL) (sender, error) {
	h := &slackHook{}
	if strings.Contains(u.Scheme, "+") {
		to := bare(u)
		h.url, h.config.Channel = to.String(), "webhook"
		return h, reachable(&to)
	}
	if err := h.config.SetURL(u); err != nil || h.config.Token.IsAPIToken() {
		return nil, failed("write slack+ before the address of an incoming webhook, as Slack gives it")
	}
	h.url = h.config.Token.WebhookURL()
	return h, nil
}

func (h *slackHook) send(ctx context.Context, m *Message, kind Kind) error {
	config := h.config
	config.Title = slackText(inert(m.Title))
	text := slackText(inert(m.Text))
	if kind == SMS {
		text = ""
	}
	answer, err := postJSON(ctx, h.url, slack.CreateJSONPayload(&config, text))
	if err == nil && len(answer) > 0 && strings.TrimSpace(string(answer)) != "ok" && !strings.HasPrefix(strings.TrimSpace(string(answer)), "{") {
		return failed("it did not take the message")
	}
	return err
}

// slackText escapes what Slack gives a meaning to (its "Formatting text").
func slackText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "*", "\u2217", "~", "\u223C").Replace(s)
}
