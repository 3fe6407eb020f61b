package notify

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
)

// twilioAPI is where Twilio takes messages.
const twilioAPI = "api.twilio.com"

// twilio is Twilio's Messages resource, or a service that speaks it.
type twilio struct {
	url, auth, from, to string
}

// openTwilio takes twilio://SID:TOKEN@FROM/TO, and twilio+https://SID:TOKEN@HOST/FROM/TO
// of another that speaks it. It has one receiver: of two, one that cannot be
// reached would have the other told again and again.
func openTwilio(u *url.URL) (sender, error) {
	token, _ := u.User.Password()
	host, parts := twilioAPI, strings.Split(strings.Trim(u.Path, "/"), "/")
	to := url.URL{Scheme: "https", Host: host}
	if at := bare(u); strings.Contains(u.Scheme, "+") {
		to.Scheme, to.Host = at.Scheme, at.Host
	} else {
		parts = append([]string{u.Host}, parts...)
	}
	if u.User.Username() == "" || token == "" || len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return nil, failed("write twilio://SID:TOKEN@FROM/TO")
	}
	if err := reachable(&to); err != nil {
		return nil, err
	}
	sid := u.User.Username()
	to.Path = "/2010-04-01/Accounts/" + sid + "/Messages.json"
	return &twilio{url: to.String(), auth: "Basic " + base64.StdEncoding.EncodeToString([]byte(sid+":"+token)), from: parts[0], to: parts[1]}, nil
}

func (t *twilio) send(ctx context.Context, m *Message, _ Kind) error {
	form := url.Values{"From": {t.from}, "To": {t.to}, "Body": {m.short()}}
	if strings.HasPrefix(t.from, "MG") { // a messaging service, not a number
		form.Del("From")
		form.Set("MessagingServiceSid", t.from)
	}
	_, err := post(ctx, t.url, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Authorization": {t.auth}}, []byte(form.Encode()))
	return err
}
