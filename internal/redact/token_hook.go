package redact

// hooks are the addresses of incoming webhooks: whoever knows the path may
// post. A text that begins with "." is the end of a host's name.
var hooks = [...]struct {
	text string
	rule rule
}{
	{"hooks.slack.com/", ruleSlack},
	{"discord.com/api/webhooks/", ruleWebhook},
	{"discordapp.com/api/webhooks/", ruleWebhook},
	{"ptb.discord.com/api/webhooks/", ruleWebhook},
	{"canary.discord.com/api/webhooks/", ruleWebhook},
	{".webhook.office.com/", ruleWebhook},
	{"outlook.office.com/webhook/", ruleWebhook},
	{"hooks.zapier.com/hooks/catch/", ruleWebhook},
	{"open.feishu.cn/open-apis/bot/v2/hook/", ruleWebhook},
	{"open.larksuite.com/open-apis/bot/v2/hook/", ruleWebhook},
	{"events.pagerduty.com/integration/", ruleWebhook},
	{"hook.eu1.make.com/", ruleWebhook},
	{"hook.eu2.make.com/", ruleWebhook},
	{"hook.us1.make.com/", ruleWebhook},
	{"hook.us2.make.com/", ruleWebhook},
	{"webhook.site/", ruleWebhook},
}

// hook masks the path of a webhook whose host begins at i, and says whether
// it is one.
func (x *scanner) hook(i int) bool {
	label := x.end(i, 64, isURL64)
	for k := range hooks {
		h, at := &hooks[k], i
		if h.text[0] == '.' {
			at = label
		}
		if at == len(x.s) || x.s[at] != h.text[0] {
			continue
		}
		if !x.has(at, h.text) {
			continue
		}
		at += len(h.text)
		end := at
		for end < len(x.s) && end < at+512 && (class[x.s[end]]&(isURL64|isStd64) != 0 || x.s[end] == '@' || x.s[end] == '.') {
			end++
		}
		for end > at && x.s[end-1] == '.' {
			end--
		}
		if end > at {
			x.mask(at, end, h.rule)
		}
		return true
	}
	return false
}
