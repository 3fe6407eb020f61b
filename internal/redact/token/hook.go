package token

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// hooks are the addresses of incoming webhooks: whoever knows the path may
// post. A text that begins with "." is the end of a host's name.
var hooks = [...]struct {
	text string
	rule rule.Rule
}{
	{"hooks.slack.com/", rule.Slack},
	{"discord.com/api/webhooks/", rule.Webhook},
	{"discordapp.com/api/webhooks/", rule.Webhook},
	{"ptb.discord.com/api/webhooks/", rule.Webhook},
	{"canary.discord.com/api/webhooks/", rule.Webhook},
	{".webhook.office.com/", rule.Webhook},
	{"outlook.office.com/webhook/", rule.Webhook},
	{"hooks.zapier.com/hooks/catch/", rule.Webhook},
	{"open.feishu.cn/open-apis/bot/v2/hook/", rule.Webhook},
	{"open.larksuite.com/open-apis/bot/v2/hook/", rule.Webhook},
	{"events.pagerduty.com/integration/", rule.Webhook},
	{"hook.eu1.make.com/", rule.Webhook},
	{"hook.eu2.make.com/", rule.Webhook},
	{"hook.us1.make.com/", rule.Webhook},
	{"hook.us2.make.com/", rule.Webhook},
	{"webhook.site/", rule.Webhook},
	{".tines.com/webhook/", rule.Webhook},
	{"qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", rule.Webhook},
}

// Hook returns the place of the path of the webhook whose host begins at i, and its rule.
// Without a webhook it reports false; of one without a path, end is start.
func Hook(x *cursor.Cursor, i int) (start, end int, r rule.Rule, ok bool) {
	label := x.End(i, 64, char.URL64)
	for k := range hooks {
		h, at := &hooks[k], i
		if h.text[0] == '.' {
			at = label
		}
		if at == len(x.S) || x.S[at] != h.text[0] {
			continue
		}
		if !x.Has(at, h.text) {
			continue
		}
		at += len(h.text)
		end := at
		for end < len(x.S) && end < at+512 && (char.Class[x.S[end]]&(char.URL64|char.Std64) != 0 || x.S[end] == '@' ||
			x.S[end] == '.') {
			end++
		}
		for end > at && x.S[end-1] == '.' {
			end--
		}
		return at, end, h.rule, true
	}
	return 0, 0, 0, false
}
