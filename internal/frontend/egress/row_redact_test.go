package egress

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/ledger"
)

// newRow is a world whose good.test has the words of redact.
func newRow(t *testing.T, row domain.Domain, change ...func(*Config)) *world {
	t.Helper()
	pass, err := redact.New(redact.Options{Masks: redact.Egress, PassPersonal: true,
		Literals: []holdfast.Secret{holdfast.NewSecret("hunter2-registered")}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := redact.New(redact.Options{Masks: redact.Egress,
		Literals: []holdfast.Secret{holdfast.NewSecret("hunter2-registered")}})
	if err != nil {
		t.Fatal(err)
	}
	return newEgress(t, setup{
		rows: func(tls, _ uint16) []domain.Domain {
			row.Name, row.Ports = "good.test", []uint16{tls}
			return []domain.Domain{row, {Name: "other.test", Ports: []uint16{tls}}}
		},
		config: func(c *Config) {
			c.Engine = func(d *domain.Domain) *redact.Engine {
				if d != nil && d.Personal == domain.Pass {
					return pass
				}
				return all
			}
			for _, f := range change {
				f(c)
			}
		}})
}

// TestSecretRefusesARequest: a secret refuses a request of a row that says nothing of it. The refusal names the place
// and the rule, how the row would mask it, and never the value.
func TestSecretRefusesARequest(t *testing.T) {
	w := newRow(t, domain.Domain{})
	const form = "application/x-www-form-urlencoded"
	n := 0
	for _, c := range []struct{ place, path, body, kind, header string }{
		{"the body's field /user/0/password", "", `{"a":1,"user":[{"password":"` + someKey + `"}]}`, "application/json", ""},
		{"the body's field /deep/text", "", `{"deep":{"text":"use ` + someKey + ` now"}}`, "application/json", ""},
		{"the body's field /[secret]", "", `{"` + someKey + `":1}`, "application/json", ""},
		{"the body's field /wrapped", "", `{"wrapped":"` + base64.StdEncoding.EncodeToString([]byte("is "+someKey)) + `"}`,
			"application/json", ""},
		{"the body's parameter client secret", "", "a=b&client+secret=" + someKey, form, ""},
		{"the body's part token", "", "--b\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\n" + someKey +
			"\r\n--b--\r\n", "multipart/form-data; boundary=b", ""},
		{"line 3 of the body", "", "one\ntwo\nis " + someKey + "\n", "text/plain", ""},
		{"the URL's parameter key", "x?a=1&key=" + someKey, "", "", ""},
		{"the URL's path", "v1/" + someKey, "", "", ""},
		{"the header X-Note", "", "", "", "use " + someKey},
	} {
		method, args := http.MethodPost, []string{"Content-Type", c.kind}
		if c.body == "" {
			method, args = http.MethodGet, nil
		}
		if c.header != "" {
			args = append(args, "X-Note", c.header)
		}
		r := w.send(method, w.url("good.test")+c.path, c.body, args...)
		w.refused(r, http.StatusForbidden)
		if n++; !strings.Contains(r.Text, c.place+" holds what good.test") || !strings.Contains(r.Text, "secret.") ||
			!strings.Contains(r.Text, "redact: {request: mask}") || strings.Contains(r.Text, someKey) {
			t.Errorf("%s: %s", c.place, r.Text)
		}
		w.last(n, "egress/good.test", holdfast.KindDomainBlocked)
	}
	w.untouched()
}

// TestRowsWordsDecide: each word of a row's redact does in each direction what it says.
func TestRowsWordsDecide(t *testing.T) {
	const sent = `{"card":4111111111111111,"key":"` + someKey + `","mail":"` + someMail + `","n":1}`
	const masked = `{"card":0,"key":"[secret]","mail":"[email]","n":1}`
	const passed = `{"card":4111111111111111,"key":"[secret]","mail":"` + someMail + `","n":1}`
	const personal = `{"mail":"` + someMail + `"}`
	for _, c := range []struct {
		name       string
		row        domain.Domain
		body       string
		status     int
		seen, told string
	}{
		{"mask", domain.Domain{Request: domain.Mask}, sent, 200, masked, "masked=3; kinds=card,email,secret"},
		{"mask and pass", domain.Domain{Request: domain.Mask, Personal: domain.Pass}, sent, 200, passed, "masked=1; kinds=secret"},
		{"mask and refuse", domain.Domain{Request: domain.Mask, Personal: domain.Refuse}, sent, 403, "", ""},
		{"refuse by default, with nothing but personal data", domain.Domain{}, personal, 200, `{"mail":"[email]"}`,
			"masked=1; kinds=email"},
		{"refuse personal data", domain.Domain{Personal: domain.Refuse}, personal, 403, "", ""},
		{"pass personal data", domain.Domain{Personal: domain.Pass}, personal, 200, personal, ""},
		{"pass personal data, and refuse", domain.Domain{Personal: domain.Pass}, sent, 403, "", ""},
		{"off", domain.Domain{Request: domain.Off}, sent, 200, sent, ""},
		{"nothing found", domain.Domain{}, `{"n":1}`, 200, `{"n":1}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRow(t, c.row)
			r := w.send("POST", w.url("good.test"), c.body, "Content-Type", "application/json")
			seen := w.up.requests()
			if c.status != 200 {
				w.refused(r, c.status)
				if strings.Contains(r.Text, someMail) || strings.Contains(r.Text, someKey) || len(seen) > 0 {
					t.Errorf("%s, %v", r.Text, seen)
				}
				if c.row.Personal == domain.Refuse && (!strings.Contains(r.Text, "email") ||
					!strings.Contains(r.Text, "redact: {personal: mask}")) {
					t.Errorf("the refusal says %s", r.Text)
				}
				return
			}
			w.passed(r)
			if len(seen) != 1 || seen[0].Body != c.seen || r.Header.Get(refusal.HeaderRedacted) != c.told {
				t.Errorf("%+v, %q", seen, r.Header.Get(refusal.HeaderRedacted))
			}
			w.entries(1)
			if x := story.Exchanged(w.lastPart()); c.told == "" != (x.Masked == nil) {
				t.Errorf("recorded as %+v", x.Masked)
			}
		})
	}
}

// TestAnswersFollowTheRowsWords: secrets in an answer are masked by default, personal data by its own word; the client
// learns of it, and no upstream can say so in its place.
func TestAnswersFollowTheRowsWords(t *testing.T) {
	const sent = `{"card":4111111111111111,"key":"` + someKey + `","mail":"` + someMail + `"}`
	for _, c := range []struct {
		name       string
		row        domain.Domain
		status     int
		text, told string
	}{
		{"by default", domain.Domain{}, 200, `{"card":0,"key":"[secret]","mail":"[email]"}`,
			"masked=4; kinds=card,email,secret; answer=3"},
		{"personal passes", domain.Domain{Personal: domain.Pass}, 200,
			`{"card":4111111111111111,"key":"[secret]","mail":"` + someMail + `"}`, "masked=1; kinds=secret; answer=1"},
		{"refuse", domain.Domain{Response: domain.Refuse}, 403, "", ""},
		{"personal refuses", domain.Domain{Response: domain.Mask, Personal: domain.Refuse}, 403, "", ""},
		{"off", domain.Domain{Response: domain.Off}, 200, sent, "masked=1; kinds=email"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRow(t, c.row)
			w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				rw.Header().Set(refusal.HeaderRedacted, "masked=0")
				io.WriteString(rw, sent)
			})
			asked := "ask " + someMail
			if c.row.Personal == domain.Refuse {
				asked = "ask"
			}
			r := w.send("POST", w.url("good.test"), asked, "Content-Type", "text/plain")
			if c.status != 200 {
				w.refused(r, c.status)
				if strings.Contains(r.Text, someMail) || strings.Contains(r.Text, someKey) {
					t.Error(r.Text)
				}
				return
			}
			if got := r.Header.Values(refusal.HeaderRedacted); r.Text != c.text || strings.Join(got, "|") != c.told {
				t.Errorf("%s, %q", r.Text, got)
			}
		})
	}
}

// TestStreamedAnswersTellOfTheRequest: what is found in an answer that comes in pieces is masked, and its header tells
// of the request.
func TestStreamedAnswersTellOfTheRequest(t *testing.T) {
	w := newRow(t, domain.Domain{})
	w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(rw, "data: {\"mail\":%q,\"card\":4111111111111111}\n\n", someMail)
	})
	r := w.send("POST", w.url("good.test"), "ask "+someMail, "Content-Type", "text/plain")
	if r.Text != "data: {\"mail\":\"[email]\",\"card\":0}\n\n" || r.Header.Get(refusal.HeaderRedacted) != "masked=1; kinds=email" {
		t.Errorf("%q, %v", r.Text, r.Header)
	}
}

// lastPart returns the erasable part that the ledger kept last.
func (w *world) lastPart() []byte {
	w.t.Helper()
	var last []byte
	w.must(w.store.View(context.Background(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		for _, h := range heads {
			err = errors.Join(err, tx.Leaves(h.Tenant, 0, h.Size, func(s ledger.Stored) error {
				if s.Kind == ledger.KindEntry {
					last = bytes.Clone(s.Part)
				}
				return nil
			}))
		}
		return err
	}))
	text, err := ledger.PartContent(last)
	w.must(err)
	return text
}

// ask sends a GET, follows no redirect, and returns status and Location of the answer.
func (w *world) ask(url string) (int, string) {
	w.t.Helper()
	c := w.client()
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := c.Get(url)
	w.must(err)
	resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Location")
}

const signedQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20261128%2Fus-east-1%2Fs3%2F" +
	"aws4_request&X-Amz-Date=20261128T000000Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature=" +
	"9bb1d7f5e4e8d0a5b7f8c3d2e1a0998877665544332211ffeeddccbbaa001122"

// TestSignedRedirectIsFollowed: a redirect to a signed URL reaches the client as it is, and the client may follow it,
// to another host too. No other URL with a signature passes, no other method, no other caller, and no registered
// secret.
func TestSignedRedirectIsFollowed(t *testing.T) {
	w := newRow(t, domain.Domain{})
	target := "https://" + w.at("other.test") + "/file.zip?" + signedQuery
	location := target
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "good.test") {
			rw.Header().Set("Location", location)
			rw.WriteHeader(http.StatusFound)
			return
		}
		io.WriteString(rw, "hello, a file")
	})
	w.refused(w.send("GET", target, ""), http.StatusForbidden) // no upstream sent it so far
	if status, to := w.ask(w.url("good.test") + "release"); status != http.StatusFound || to != target {
		t.Fatalf("the redirect became %d %s", status, to)
	}
	w.passed(w.send("GET", target, ""))
	w.passed(w.send("GET", target, "")) // once more, after a broken download
	seen := w.up.requests()
	if last := seen[len(seen)-1]; last.URI != "/file.zip?"+signedQuery {
		t.Errorf("the host saw %s", last.URI)
	}
	for _, e := range w.entries(4) {
		if b, _ := json.Marshal(e); strings.Contains(string(b), "9bb1d7f5e4e8") {
			t.Errorf("recorded: %s", b)
		}
	}
	before := len(seen)
	w.refused(w.send("POST", target, "x", "Content-Type", "text/plain"), http.StatusForbidden)
	w.refused(w.send("GET", target+"1", ""), http.StatusForbidden)
	w.refused(w.send("GET", strings.Replace(target, "file.zip", "other.zip", 1), ""), http.StatusForbidden)
	if n := len(w.up.requests()); n != before {
		t.Errorf("%d more requests reached the host", n-before)
	}
	for name, to := range map[string]string{
		"a registered secret":       "https://" + w.at("other.test") + "/f?token=hunter2-registered",
		"a secret in the path":      "https://" + w.at("other.test") + "/" + someKey + "?" + signedQuery,
		"a password in the address": "https://u:" + someKey + "@" + w.at("other.test") + "/?" + signedQuery,
	} {
		location = to
		if _, got := w.ask(w.url("good.test") + "release"); got == to || strings.Contains(got, "hunter2") || strings.Contains(got, someKey) {
			t.Errorf("%s: %s", name, got)
		}
		w.refused(w.send("GET", to, ""), http.StatusForbidden)
	}
}

// TestSignedRedirectIsOneCallers: another caller cannot follow a redirect.
func TestSignedRedirectIsOneCallers(t *testing.T) {
	w := newRow(t, domain.Domain{})
	target := "https://" + w.at("other.test") + "/file.zip?" + signedQuery
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, target, http.StatusFound) })
	w.ask(w.url("good.test"))
	w.explicit = w.listenFor("bob")
	w.refused(w.send("GET", target, ""), http.StatusForbidden)
}

// TestHonestClientsAreNotRefused: what package managers, git and programs send of themselves refuses no request, and
// credentials that are taken out are no finding.
func TestHonestClientsAreNotRefused(t *testing.T) {
	w := newRow(t, domain.Domain{Binary: true})
	const random = "dGhpc2lzYXJhbmRvbWtleTE5"
	n := 0
	for _, header := range [][]string{
		{"Authorization", "Bearer " + someKey, "Cookie", "sid=" + random, "X-Api-Key", someKey},
		{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+someKey)), "Git-Protocol", "version=2"},
		{"X-Csrf-Token", random, "X-Xsrf-Token", random, "Idempotency-Key", "8e03978e-40d5-43e8-bc93-6894a57f9324"},
		{"Npm-Session", "3f1c9a7b2d4e6f80", "Npm-Command", "install", "Pacote-Integrity", "sha512-" +
			"XI5MPzVNApjAyhQzphX8BkmKsKUxD4LdyK24iZeQGinBN9yTQT3bFlCBy/aVx2HrNcqQGsdot8ghrjyrvMCoEA=="},
		{"User-Agent", `pip/24.0 {"cpu":"x86_64","implementation":{"name":"CPython","version":"3.11.2"},"installer":` +
			`{"name":"pip","version":"24.0"},"openssl_version":"OpenSSL 3.0.15 3 Sep 2024"}`},
		{"If-None-Match", `W/"33a64df551425fcc55e4d42a148795d9f25f89d4aabbccddeeff001122334455"`, "Traceparent",
			"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		{"Baggage", "sentry-trace_id=771a43a4192642f0b136d5159a501700,sentry-public_key=49d0f7386ad645858ae85020e393bef3"},
		{"Referer", "https://good.test/?" + signedQuery},
		{"X-Amz-Content-Sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	} {
		w.passed(w.send("GET", w.url("good.test")+"@scope%2fname/-/name-1.2.3.tgz", "", header...))
		if n++; len(w.up.requests()) != n {
			t.Errorf("%v was not sent", header)
		}
		for name, values := range w.up.requests()[n-1].Header {
			if text := strings.Join(values, ""); strings.Contains(text, someKey) || strings.Contains(text, random) ||
				strings.Contains(text, "X-Amz-Signature") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
	for _, body := range [][]string{
		{`{"lodash":["4.17.20"],"left-pad":["1.3.0"]}`, "application/json"},
		{"0014command=ls-refs\n0015agent=git/2.39.5\n00010009peel\n0000", "application/x-git-upload-pack-request"},
		{"PACK\x00\x00\x00\x02\x00\x00\x00\x01\xff\xfe\x80", "application/x-git-receive-pack-request"},
	} {
		w.passed(w.send("POST", w.url("good.test"), body[0], "Content-Type", body[1]))
	}
}

// TestWebSocketRefusesASecret: a message with a secret ends the socket of a row that refuses; one with personal data
// goes on masked, and the handshake tells what was masked in it.
func TestWebSocketRefusesASecret(t *testing.T) {
	w := newRow(t, domain.Domain{WebSocket: true})
	seen := make(chan string, 4)
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(rw, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			_, b, err := c.Read(context.Background())
			if err != nil {
				close(seen)
				return
			}
			seen <- string(b)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	c, resp, err := websocket.Dial(ctx, strings.Replace(w.url("good.test"), "https:", "wss:", 1),
		&websocket.DialOptions{HTTPClient: w.client(), HTTPHeader: http.Header{"X-Note": {"ask " + someMail}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if got := resp.Header.Get(refusal.HeaderRedacted); got != "masked=1; kinds=email" {
		t.Errorf("the handshake tells %q", got)
	}
	w.must(c.Write(ctx, websocket.MessageText, []byte("mail "+someMail)))
	if got := <-seen; got != "mail [email]" {
		t.Errorf("the host saw %q", got)
	}
	w.must(c.Write(ctx, websocket.MessageText, []byte("key "+someKey)))
	if _, _, err := c.Read(ctx); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("the socket ended with %v", err)
	}
	for got := range seen {
		t.Errorf("the host saw %q", got)
	}
}
