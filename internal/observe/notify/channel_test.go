package notify

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/holdfast-dev/holdfast"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/pagerduty"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// The document's three channels, and the others, each against a server that takes
// what the service takes.
func Test001_Layer5_Response_eachServiceTakesIt(t *testing.T) {
	m := sample()
	k, host := serveHTTP(t)
	last := func() got { t.Helper(); all := k.took(); return all[len(all)-1] }
	send := func(kind Kind, address string) got {
		t.Helper()
		if err := channel(t, kind, address).Send(t.Context(), Item{Message: m}); err != nil {
			t.Fatal(err)
		}
		return last()
	}

	g := send(Chat, "slack+http://"+host+"/services/T0/B0/secret-of-the-hook")
	var slack struct {
		Text        string
		Attachments []struct{ Text string }
	}
	if err := json.Unmarshal([]byte(g.body), &slack); err != nil || g.path != "/services/T0/B0/secret-of-the-hook" || slack.Text != m.Title || len(slack.Attachments) != 2 || slack.Attachments[0].Text != "a loop: the same action 5 times" {
		t.Errorf("slack: %v %+v", err, g)
	}

	g = send(SMS, "twilio+http://AC0:the-token@"+host+"/15550001111/15552223333")
	form, err := url.ParseQuery(g.body)
	if err != nil || g.path != "/2010-04-01/Accounts/AC0/Messages.json" || g.auth != "Basic QUMwOnRoZS10b2tlbg==" || form.Get("From") != "15550001111" || form.Get("To") != "15552223333" ||
		form.Get("Body") != "HIGH: loop, agent bob a loop: the same action 5 times 2026-01-02 03:04:05 UTC" {
		t.Errorf("twilio: %v %+v", err, g)
	}

	g = send(Chat, "http://"+host+"/hook?token=of-mine")
	var whole Message
	if err := json.Unmarshal([]byte(g.body), &whole); err != nil || whole != m || g.path != "/hook?token=of-mine" || g.header.Get("Holdfast-Delivery") != m.ID {
		t.Errorf("webhook: %v %+v", err, g)
	}

	g = send(SMS, "generic+http://"+host+"/sms?v=2&@Authorization=AccessKey%20k&$originator=Holdfast&$recipients=15552223333&messagekey=body")
	var fields map[string]string
	if err := json.Unmarshal([]byte(g.body), &fields); err != nil || g.path != "/sms?v=2" || g.auth != "AccessKey k" || fields["originator"] != "Holdfast" || fields["recipients"] != "15552223333" || !strings.Contains(fields["body"], "loop") {
		t.Errorf("gateway: %v %+v", err, g)
	}
	g = send(SMS, "generic+http://user:password@"+host+"/sms?form=yes&$to=1&messagekey=text")
	if form, err := url.ParseQuery(g.body); err != nil || form.Get("to") != "1" || !strings.Contains(form.Get("text"), "loop") || g.auth != "Basic dXNlcjpwYXNzd29yZA==" {
		t.Errorf("gateway with a form: %v %+v", err, g)
	}

	g = send(Chat, "mattermost://"+host+"/token-of-it?disabletls=yes")
	if g.path != "/hooks/token-of-it" || !strings.Contains(g.body, "HIGH: loop, agent bob\\na loop") {
		t.Errorf("mattermost: %+v", g)
	}
	k.set(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	if g = send(Chat, "ntfy://user:password@"+host+"/topic?scheme=http"); g.path != "/topic" || g.header.Get("Title") != m.Title {
		t.Errorf("ntfy: %+v", g)
	}
	channel(t, SMS, "pagerduty:///0123456789abcdef0123456789abcdef")
	channel(t, Chat, "slack://hook:T00000000-B00000000-XXXXXXXXXXXXXXXXXXXXXXXX@webhook")
	channel(t, SMS, "twilio://AC0:token@+15550001111/+15552223333")
	if err := channel(t, SMS, "pushover://shoutrrr:token@user/").Send(cancelled(t), Item{Message: m}); err == nil {
		t.Error("pushover without a network")
	}
}

// What PagerDuty is told of a condition and of its end is one incident.
func TestIncident(t *testing.T) {
	m, s := sample(), &pagerduty.Service{}
	u, err := url.Parse("pagerduty:///0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	var body []byte
	s.SetHTTPClient(&http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
		body, err = io.ReadAll(r.Body)
		return &http.Response{StatusCode: 202, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, err
	})})
	if err := s.Initialize(u, nil); err != nil {
		t.Fatal(err)
	}
	var e struct {
		Action string `json:"event_action"`
		Key    string `json:"dedup_key"`
	}
	for _, want := range []string{"trigger", "resolve"} {
		m.Cleared = want == "resolve"
		p := types.Params{}
		incident(&m, p)
		if err := s.Send(m.plain(), &p); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &e); err != nil || e.Action != want || e.Key != "loop|local|bob" {
			t.Errorf("%s: %v %+v", body, err, e)
		}
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Mail goes out by a real dialogue, with a password, one letter for all receivers.
func Test001_Layer5_Response_mailGoesOut(t *testing.T) {
	b, host := serveMail(t)
	c := channel(t, Mail, "smtp://me:mail-password-77@"+host+"/?from=holdfast@example.com&to=ann@example.com,bob@example.com")
	if err := c.Send(t.Context(), Item{Message: sample()}); err != nil {
		t.Fatal(err)
	}
	all := b.took()
	if len(all) != 1 || all[0].path != "ann@example.com bob@example.com " || all[0].auth != "me" {
		t.Fatalf("%+v", all)
	}
	for _, want := range []string{"Subject: [holdfast] HIGH: loop, agent bob\r\n", "Message-ID: <id-1@holdfast>\r\n", "Auto-Submitted: auto-generated", "a loop: the same action 5 times\r\n"} {
		if !strings.Contains(all[0].body, want) {
			t.Errorf("%q is not in\n%s", want, all[0].body)
		}
	}
	if err := channel(t, Mail,
		"smtp://me:another@"+host+"/?from=a@example.com&to=b@example.com").Send(t.Context(),
		Item{Message: sample()}); err == nil || strings.Contains(err.Error(), "another") {
		t.Errorf("a wrong password: %v", err)
	}
	b.refuse = &smtp.SMTPError{Code: 550, Message: "no such ann@example.com"}
	if err := c.Send(t.Context(), Item{Message: sample()}); err == nil || err.Error() != "it answered 550" ||
		len(b.took()) != 1 {
		t.Errorf("%v", err)
	}
}

// A channel that does not answer, or answers what it should not, is a failure in
// our words, which holds no part of the address.
func Test001_Layer5_Response_aFailureHoldsNoAddress(t *testing.T) {
	k, host := serveHTTP(t)
	other, otherHost := serveHTTP(t)
	addresses := []string{"slack+http://" + host + "/services/T0/B0/secret-of-it-77", "http://" + host + "/hook?token=secret-of-it-77", "twilio+http://AC0:secret-of-it-77@" + host + "/1/2",
		"mattermost://" + host + "/secret-of-it-77?disabletls=yes", "ntfy://u:secret-of-it-77@" + host + "/topic?scheme=http"}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"500": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, "no: "+r.RequestURI+r.Header.Get("Authorization"))
		}, "it answered 500"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+otherHost+"/x", http.StatusTemporaryRedirect)
		}, "it answered 307, and redirects are not followed"},
		"close": {func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
		}, "the connection failed"},
	} {
		k.set(c.answer)
		for _, a := range addresses {
			err := channel(t, Chat, a).Send(t.Context(), Item{Message: sample()})
			if err == nil || err.Error() != c.want {
				t.Errorf("%s: %q", name, err)
			}
		}
	}
	if len(other.took()) != 0 {
		t.Error("a redirect was followed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	for _, a := range addresses {
		err := channel(t, Chat, strings.ReplaceAll(a, host, closed)).Send(t.Context(), Item{Message: sample()})
		var own *Failure
		if !errors.As(err, &own) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), closed) {
			t.Errorf("%v", err)
		}
	}
}

// One that hangs is left when its time is over, and holds nothing open.
func Test001_Layer5_Response_oneThatHangsIsLeft(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	left := make(chan error, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // it takes what comes and says nothing
				_, err := io.Copy(io.Discard, c)
				left <- err
			}()
		}
	}()
	host := l.Addr().String()
	for _, a := range []string{"smtp://" + host + "/?from=a@example.com&to=b@example.com", "http://" + host + "/", "mattermost://" + host + "/token?disabletls=yes"} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := channel(t, Mail, a).Send(ctx, Item{Message: sample()})
		cancel()
		if err == nil || err.Error() != "it did not answer in time" {
			t.Errorf("%v", err)
		}
		select {
		case <-left:
		case <-time.After(time.Minute):
			t.Error("the connection is still there")
		}
	}
}

// A server that says without end is left.
func Test001_Layer5_Response_oneThatSaysTooMuchIsLeft(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for err == nil {
					_, err = c.Write([]byte(strings.Repeat("220-", 1<<14)))
				}
			}()
		}
	}()
	err = channel(t, Mail, "smtp://"+l.Addr().String()+"/?from=a@example.com&to=b@example.com").Send(t.Context(),
		Item{Message: sample()})
	if err == nil || err.Error() != "it says too much" {
		t.Errorf("%v", err)
	}
	k, host := serveHTTP(t)
	k.set(func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for err == nil {
			_, err = w.Write(make([]byte, 1<<16))
		}
	})
	if err := channel(t, Chat, "http://"+host).Send(t.Context(), Item{Message: sample()}); err != nil {
		t.Errorf("it took the message, whatever else it says: %v", err)
	}
}

// Who took a message has taken it, though its answer breaks off or never ends: told as
// one that failed, people would be told again and again for days.
func Test001_Layer5_Response_oneWhoseAnswerBreaksOffTookIt(t *testing.T) {
	k, host := serveHTTP(t)
	for name, answer := range map[string]http.HandlerFunc{
		"breaks off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("ok"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"never ends": func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		k.set(answer)
		for _, a := range []string{"http://", "slack+http://", "twilio+http://SID:TOKEN@"} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			if err := channel(t, Chat, a+host+"/a/b").Send(ctx, Item{Message: sample()}); err != nil {
				t.Errorf("an answer that %s, %s: %v", name, a, err)
			}
			cancel()
		}
	}
}

// What crosses the network goes encrypted, and an address that is none is said to
// be so without its words.
func TestOpen_refusesWhatIsNoAddress(t *testing.T) {
	for _, a := range []string{"", "hunter2", "http://example.com/hunter2", "slack+http://hooks.example.com/hunter2", "slack://hunter2@webhook", "slack://xoxb:123456789012-123456789012-abcdefghijklmnopqrstuvwx@C0",
		"twilio://hunter2", "twilio://a:hunter2@1", "twilio+http://a:hunter2@example.com/1/2", "smtp://hunter2@example.com", "smtp://u:hunter2@example.com/?from=a@b.c&to=nobody%0d%0aX:%20y",
		"smtp://u:hunter2@example.com/?from=a@b.c&to=b@b.c&skiptlsverify=yes", "smtp://u:hunter2@example.com:99999/?from=a@b.c&to=b@b.c", "gopher://hunter2", "file:///hunter2", "https://example.com/?@X%20Y=hunter2",
		"https://example.com/?@X=hunter2%0a", "https:///hunter2", "\x00hunter2", "ntfy://", "mattermost://", "https://example.com/#hunter2", "smtp://u:hunter2@example.com/?from=a@b.c&to=b@b.c&auth=none"} {
		c, err := Open(Chat, holdfast.NewSecret(a))
		if err == nil {
			t.Errorf("%q makes a channel: %s", a, c.Service())
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q", err)
		}
	}
	err := channel(t, Chat, "mattermost://example.com/hunter2?disabletls=yes").Send(t.Context(),
		Item{Message: sample()})
	if err == nil || !strings.Contains(err.Error(), "unencrypted") {
		t.Errorf("mattermost in clear: %v", err)
	}
}

// An agent's words mention nobody, link nowhere, and begin no header.
func Test001_Layer5_Response_wordsAreInert(t *testing.T) {
	m := sample()
	m.Title = "HIGH: loop, agent <!channel>\r\nBcc: eve@example.com\n.\r\nRCPT TO:<eve@example.com>"
	m.Text = "@everyone @here <!here> <https://evil.example|click> [x](https://evil.example) ![i](http://evil.example/a.png) www.evil.example \x1b]8;;http://evil\x07x \u202Eabc\u202C *b* `c`\r\n.\r\nMAIL FROM:<x>"
	k, host := serveHTTP(t)
	b, mailHost := serveMail(t)
	for _, a := range []string{"slack+http://" + host + "/x", "mattermost://" + host + "/x?disabletls=yes", "twilio+http://a:b@" + host + "/1/2", "ntfy://" + host + "/topic?scheme=http"} {
		_ = channel(t, Chat, a).Send(t.Context(), Item{Message: m})
	}
	if err := channel(t, Mail, "smtp://"+mailHost+"/?from=a@example.com&to=b@example.com").Send(t.Context(),
		Item{Message: m}); err != nil {
		t.Fatal(err)
	}
	all := append(k.took(), b.took()...)
	if len(all) != 5 {
		t.Fatalf("%d came", len(all))
	}
	for _, g := range all {
		text := g.body
		if _, err := url.ParseQuery(text); err == nil && strings.HasPrefix(text, "Body=") {
			text, _ = url.QueryUnescape(text)
		}
		if g.auth == "" && strings.Contains(text, "Message-ID") { // mail: the header is the server's to read
			head, body, _ := strings.Cut(text, "\r\n\r\n")
			if strings.Contains(head, "\r\nBcc:") || strings.Contains(head, "\nRCPT") || len(strings.Fields(g.path)) != 1 {
				t.Errorf("%s", head)
			}
			text = body
		}
		for _, bad := range []string{"<!", "<http", "](", "://", "@everyone", "@here", "\x1b", "\u202E", "www.evil", "`"} {
			if strings.Contains(text, bad) || strings.Contains(g.header.Get("Title"), bad) {
				t.Errorf("%q in %s", bad, text)
			}
		}
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		in   string
		most int
		want string
	}{{"", 5, ""}, {" a \r\n\tb ", 9, "a b"}, {"a\x00b\x1b[2J", 20, "a b [2J"}, {"a\u200bb\u2066c", 20, "abc"}, {"\xff", 9, "\uFFFD"}, {strings.Repeat("é", 100), 10, "ééééé..."}} {
		if got := Line(c.in, c.most); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
	if got := Lines("a\r\n\n b\x1b\n\n", 99); got != "a\nb" {
		t.Errorf("%q", got)
	}
}
