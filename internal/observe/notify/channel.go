package notify

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
)

// tryTime bounds one try, whatever the other side does.
const tryTime = 20 * time.Second

// Kind is what a channel is to people, in the document's words (respond_to_anomaly):
// it decides how long a message may be. The zero Kind is none.
type Kind string

// The kinds.
const (
	SMS  Kind = "sms"
	Mail Kind = "mail"
	Chat Kind = "chat"
)

// Channel is a way to people. It may be used by many goroutines.
type Channel struct {
	kind Kind
	name string // of the service, such as smtp
	send sender
}

// sender tells one message. Its error may hold anything.
type sender interface {
	send(ctx context.Context, m *Message, kind Kind) error
}

// openers make a channel of an address by its scheme.
func openers() map[string]func(*url.URL) (sender, error) {
	return map[string]func(*url.URL) (sender, error){
		"smtp": openMail, "smtps": openMail,
		"slack": openSlack, "slack+https": openSlack, "slack+http": openSlack,
		"twilio": openTwilio, "twilio+https": openTwilio, "twilio+http": openTwilio,
		"https": openWebhook, "http": openWebhook, "generic+https": openWebhook, "generic+http": openWebhook,
		"mattermost": openMattermost, "ntfy": openNtfy, "pagerduty": openPagerDuty, "pushover": openPushover,
	}
}

// Open makes a channel of its address; nothing is sent. The error, ErrAddress or
// one that names what the address lacks, holds no part of it.
func Open(kind Kind, address holdfast.Secret) (*Channel, error) {
	u, err := url.Parse(address.Reveal())
	if err != nil {
		return nil, ErrAddress
	}
	open := openers()[strings.ToLower(u.Scheme)]
	if open == nil {
		return nil, failed("its scheme is none of smtp, smtps, slack, slack+https, twilio, twilio+https, https, generic+https, mattermost, ntfy, pagerduty, pushover")
	}
	s, err := open(u)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(strings.ToLower(u.Scheme), "+")
	return &Channel{kind: kind, name: name, send: s}, nil
}

// Secrets are the parts of an address that nobody may be shown: the whole, its
// password, and what of its path and query is long enough to be a token.
func Secrets(address holdfast.Secret) []string {
	out := []string{address.Reveal()}
	u, err := url.Parse(address.Reveal())
	if err != nil {
		return out
	}
	password, _ := u.User.Password()
	parts := append(strings.Split(u.EscapedPath(), "/"), password)
	for name, values := range u.Query() {
		switch name {
		case "from", "to", "fromaddress", "toaddresses", "messagekey", "titlekey":
			continue
		}
		parts = append(parts, values...)
	}
	for _, p := range parts {
		if len(p) >= minToken {
			out = append(out, p)
		}
	}
	return out
}

// minToken is the least length of what is taken for a token, in bytes.
const minToken = 16

// Service is the name of what it speaks to, such as smtp or slack.
func (c *Channel) Service() string { return c.name }

// Send implements Transport for messages, within 20 s.
func (c *Channel) Send(ctx context.Context, i Item) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	m := i.Message.bounded()
	err := c.send.send(ctx, &m, c.kind)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // it is why, whatever broke then
	}
	return plainly(err)
}

// words is the message as a channel of that kind takes it.
func (k Kind) words(m *Message) string {
	if k == SMS {
		return m.short()
	}
	return m.plain()
}

// bare is an http address for what was written with a service's name before it.
func bare(u *url.URL) url.URL {
	out := *u
	if _, scheme, ok := strings.Cut(u.Scheme, "+"); ok {
		out.Scheme = scheme
	}
	return out
}

// reachable says whether an address over http is one that may be called: in clear
// only on this machine.
func reachable(u *url.URL) error {
	switch {
	case u.Hostname() == "" || u.Opaque != "" || u.Fragment != "":
		return failed("its address names no host")
	case u.Scheme == "https", u.Scheme == "http" && netaddr.IsLoopbackHost(u.Hostname()):
		return nil
	}
	return failed("it would cross the network unencrypted: only https, or http on this machine")
}
