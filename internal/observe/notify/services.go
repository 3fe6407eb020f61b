package notify

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/mattermost"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/pagerduty"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/ntfy"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/pushover"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// service is one of shoutrrr's that lets its client be given: only such a one can
// be held to a deadline and kept from following redirects. It is made anew for
// each try, for it keeps what it is told.
type service struct {
	address *url.URL
	make    func(*url.URL, *http.Client) (types.Service, error)
	// title says that it shows one by itself.
	title bool
	// more adds what only this service knows; nil adds nothing.
	more func(*Message, types.Params)
}

func openService(u *url.URL, s service) (sender, error) {
	s.address = u
	if _, err := s.make(u, http.DefaultClient); err != nil {
		return nil, failed("it is not what shoutrrr's service %s takes", u.Scheme)
	}
	return &s, nil
}

func (s *service) send(ctx context.Context, m *Message, kind Kind) error {
	client, g, done := guarded(ctx)
	defer done()
	to, err := s.make(s.address, client)
	if err != nil {
		return ErrAddress
	}
	params, text := types.Params{}, kind.words(m)
	if s.title {
		params.SetTitle(inert(m.Title))
		if text = inert(m.Text); text == "" {
			text = inert(m.Title)
		}
	}
	if s.more != nil {
		s.more(m, params)
	}
	if err := to.Send(text, &params); err != nil {
		if g.last != nil {
			return g.last // shoutrrr's own error holds the address
		}
		return failed("it did not take the message")
	}
	return nil
}

func openMattermost(u *url.URL) (sender, error) {
	return openService(u, service{make: func(u *url.URL, c *http.Client) (types.Service, error) {
		s := &mattermost.Service{}
		if err := s.Initialize(u, nil); err != nil {
			return nil, err
		}
		*s.GetHTTPClient() = *c
		return s, nil
	}})
}

func openNtfy(u *url.URL) (sender, error) {
	return openService(u, service{title: true, make: func(u *url.URL, c *http.Client) (types.Service, error) {
		s := &ntfy.Service{}
		if err := s.Initialize(u, nil); err != nil {
			return nil, err
		}
		s.SetHTTPClient(c)
		return s, nil
	}})
}

func openPagerDuty(u *url.URL) (sender, error) {
	return openService(u, service{more: incident, make: func(u *url.URL, c *http.Client) (types.Service, error) {
		s := &pagerduty.Service{}
		s.SetHTTPClient(c)
		return s, s.Initialize(u, nil)
	}})
}

// incident makes one incident of a condition and its end.
func incident(m *Message, p types.Params) {
	p["dedup_key"] = strings.Join([]string{m.Condition, m.Tenant, m.Agent}, "|")
	p["severity"] = map[string]string{"CRITICAL": "critical", "HIGH": "error", "MEDIUM": "warning"}[m.Severity]
	if p["severity"] == "" {
		p["severity"] = "info"
	}
	if m.Cleared {
		p["action"] = "resolve"
	}
}

func openPushover(u *url.URL) (sender, error) {
	return openService(u, service{title: true, make: func(u *url.URL, c *http.Client) (types.Service, error) {
		s := &pushover.Service{}
		if err := s.Initialize(u, nil); err != nil {
			return nil, err
		}
		s.Client = c
		return s, nil
	}})
}
