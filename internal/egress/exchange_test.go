package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/budget"
	"github.com/holdfast-dev/holdfast/internal/domain"
	"github.com/holdfast-dev/holdfast/kernel"
)

// send makes a request through the proxy port and reads the answer.
func (w *world) send(method, url, body string, fields ...string) *reply {
	w.t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	w.must(err)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := w.client().Do(r)
	w.must(err)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return &reply{resp, string(text)}
}

func (w *world) url(name string) string { return "https://" + w.at(name) + "/" }

func TestEgress_Accept01_AListedDomainPasses(t *testing.T) {
	w := newEgress(t, setup{})
	got := w.send("POST", w.url("good.test")+"v1/things?a=b", `{"a":1}`, "Content-Type", "application/json", "X-Other", "kept")
	w.passed(got)
	if got.Header.Get(headerCrossing) == "" {
		t.Error("the answer names no crossing")
	}
	seen := w.up.requests()
	if len(seen) != 1 || seen[0].Method != "POST" || seen[0].URI != "/v1/things?a=b" || seen[0].Body != `{"a":1}` || seen[0].Header.Get("X-Other") != "kept" {
		t.Errorf("the server saw %+v", seen)
	}
	e := w.entries(1)[0]
	if e.ErrorKind != "" || e.ID != got.Header.Get(headerCrossing) || e.Caller != "user:alice" || e.BeginSeq == nil {
		t.Errorf("the ledger says %+v", e)
	}
}

func TestEgress_Accept02_AnUnlistedDomainIsBlocked(t *testing.T) {
	w := newEgress(t, setup{})
	r := say(w.dial(w.explicit), "CONNECT random.example.com:443 HTTP/1.1\r\nHost: random.example.com:443\r\nAccept: application/json\r\n\r\n")
	w.refused(r, 403)
	var told refusalBody
	w.must(json.Unmarshal([]byte(r.Text), &told))
	if told.Error.Type != string(holdfast.KindDomainBlocked) || !strings.Contains(told.Error.Message, "random.example.com") || told.Error.Crossing != r.Header.Get(headerCrossing) {
		t.Errorf("the refusal is %+v", told)
	}
	w.last(1, "egress/random.example.com", holdfast.KindDomainBlocked)
	// As plain text where nobody asked for JSON.
	r = say(w.dial(w.explicit), "CONNECT random.example.com:443 HTTP/1.1\r\nHost: random.example.com:443\r\n\r\n")
	if !strings.HasPrefix(r.Text, "holdfast: ") || !strings.Contains(r.Text, "\ncrossing: ") {
		t.Errorf("the refusal is %q", r.Text)
	}
}

// Clients do not show what answers a CONNECT: where they trust the authority the
// refusal stands inside of TLS.
func TestEgress_Accept02_ARefusalIsSaidWhereTheClientShowsIt(t *testing.T) {
	w := newEgress(t, setup{trusts: true})
	c, err := w.tunnel("random.example.com:443", "random.example.com")
	w.must(err)
	r := say(c, get("random.example.com", "/a"))
	w.refused(r, 403)
	if !strings.Contains(r.Text, "random.example.com is not in the allowlist") {
		t.Errorf("the refusal is %q", r.Text)
	}
	w.last(1, "egress/random.example.com", holdfast.KindDomainBlocked)
	// A client that does not trust it, or says nothing, is recorded as well.
	if err := tls.Client(w.connect("random.example.com:443"), &tls.Config{ServerName: "random.example.com"}).Handshake(); err == nil {
		t.Error("an authority that nobody named was trusted")
	}
	w.last(2, "egress/random.example.com", holdfast.KindDomainBlocked)
	w.connect("random.example.com:22").Close()
	w.last(3, "egress/random.example.com", holdfast.KindDomainBlocked)
	if err := tls.Client(w.connect(w.at("good.test")), &tls.Config{ServerName: "good.test"}).Handshake(); err == nil {
		t.Error("an authority that nobody named was trusted")
	}
	w.last(4, "egress/good.test", holdfast.KindValidation)
	w.untouched()
	w.passed(w.send("GET", w.url("good.test"), ""))
}

func TestEgress_Accept07_EveryRequestIsOneRecord(t *testing.T) {
	w := newEgress(t, setup{})
	client := w.client()
	const n = 25
	for i := range n {
		r, err := client.Get(w.url("good.test") + fmt.Sprint(i))
		w.must(err)
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	if got := len(w.up.requests()); got != n {
		t.Errorf("the server saw %d requests", got)
	}
	w.entries(n)
}

func TestEgress_Accept10_NoRecordNoRequest(t *testing.T) {
	w := newEgress(t, setup{})
	w.passed(w.send("GET", w.url("good.test"), ""))
	w.entries(1)
	w.breakStore(func(string) error { return errors.New("the disk is gone") })
	got := w.send("GET", w.url("good.test"), "")
	if got.StatusCode != 500 {
		t.Errorf("without a ledger: %s %s", got.Status, got.Text)
	}
	if n := len(w.up.requests()); n != 1 {
		t.Errorf("the server saw %d requests, want 1", n)
	}
}

func TestEgress_Invariant1_AnEmptyAllowlistDeniesEverything(t *testing.T) {
	for name, table := range map[string]*domain.Table{"nil": nil, "empty": {}} {
		w := newEgress(t, setup{config: func(c *Config) { c.Table = func() *domain.Table { return table } }})
		w.refused(say(w.dial(w.explicit), "CONNECT "+w.at("good.test")+" HTTP/1.1\r\nHost: "+w.at("good.test")+"\r\n\r\n"), 403)
		w.refused(say(tls.Client(w.dial(w.clear), &tls.Config{ServerName: "good.test", RootCAs: w.roots}), get(w.at("good.test"), "/")), 403)
		w.untouched()
		w.entries(2)
		_ = name
	}
}

func TestEgress_State_RateAndBudget(t *testing.T) {
	w := newEgress(t, setup{
		rows: func(tls, plain uint16) []domain.Domain {
			return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, Rate: 2}, {Name: "other.test", Ports: []uint16{tls}, Unit: domain.Bytes}}
		},
		policy: func(p *kernel.Policy) {
			p.Limits = append(p.Limits, budget.Limit{Scope: budget.Tenant, Boundary: "egress/other.test", Resource: holdfast.BytesOut, Amount: 3000, Source: "test"})
		},
	})
	for range 2 {
		w.passed(w.send("GET", w.url("good.test"), ""))
	}
	w.entries(2)
	got := w.send("GET", w.url("good.test"), "")
	w.refused(got, 429)
	if got.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.last(3, "egress/good.test", holdfast.KindRateLimit)
	w.passed(w.send("POST", w.url("other.test"), strings.Repeat("a", 1000)))
	w.entries(4)
	w.refused(w.send("POST", w.url("other.test"), strings.Repeat("a", 2500)), 402)
	w.last(5, "egress/other.test", holdfast.KindBudgetExceeded)
	if n := len(w.up.requests()); n != 3 {
		t.Errorf("the server saw %d requests, want 3", n)
	}
}

func TestEgress_State_HeldForAPersonAndHalted(t *testing.T) {
	high := holdfast.High
	w := newEgress(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}}, {Name: "other.test", Ports: []uint16{tls}, Risk: &high}}
	}})
	got := w.send("POST", w.url("other.test"), "send this", "Content-Type", "text/plain")
	w.refused(got, 428)
	if !strings.Contains(got.Text, "holdfast approve ") && !strings.Contains(got.Text, "review: ") {
		t.Errorf("the hold says %q", got.Text)
	}
	again := w.send("POST", w.url("other.test"), "send this", "Content-Type", "text/plain")
	handle := func(s string) string { _, s, _ = strings.Cut(s, "review: "); s, _, _ = strings.Cut(s, "\n"); return s }
	if a, b := handle(got.Text), handle(again.Text); a == "" || a != b {
		t.Errorf("the same request was held as %q and %q", a, b)
	}
	w.untouched()
	w.must(w.latch.Set("test", "stop", time.Now()))
	w.refused(w.send("GET", w.url("good.test"), ""), 503)
	w.untouched()
}

func TestEgress_Error_UpstreamThatFails(t *testing.T) {
	w := newEgress(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, FirstByte: 300 * time.Millisecond}, {Name: "127.0.0.1", Ports: []uint16{1}, Plain: true}}
	}})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/500":
			http.Error(rw, "hello, it broke", http.StatusInternalServerError)
		case "/slow":
			time.Sleep(time.Second)
		}
	})
	got := w.send("GET", w.url("good.test")+"500", "")
	if got.StatusCode != 500 || !strings.HasPrefix(got.Text, "hello, it broke") {
		t.Errorf("a 500 came as %s %q", got.Status, got.Text)
	}
	w.last(1, "egress/good.test", holdfast.KindForward)
	w.refused(w.send("GET", w.url("good.test")+"slow", ""), 504)
	w.last(2, "egress/good.test", holdfast.KindTimeout)
	w.refused(w.send("GET", "http://127.0.0.1:1/", ""), 502)
	w.last(3, "egress/127.0.0.1", holdfast.KindForward)
}

func TestEgress_Error_NobodyWhoseTokenFails(t *testing.T) {
	w := newEgress(t, setup{})
	l := w.port()
	done := make(chan error, 1)
	go func() {
		done <- w.p.Explicit(l, Caller{Token: func() (holdfast.Secret, error) { return holdfast.Secret{}, errors.New("no key") }})
	}()
	at := fmt.Sprintf("plain.test:%d", w.plain.port)
	got := say(w.dial(l.Addr().String()), "GET http://"+at+"/ HTTP/1.1\r\nHost: "+at+"\r\n\r\n")
	w.refused(got, 403)
	w.untouched()
	l.Close()
	w.must(<-done)
	if w.p.Explicit(w.port(), Caller{}) == nil {
		t.Error("a listener for nobody was served")
	}
}

func TestEgress_StreamsArriveAsTheyCome(t *testing.T) {
	w := newEgress(t, setup{})
	next := make(chan struct{})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(rw, "data: event %d\n\n", i)
			rw.(http.Flusher).Flush()
			<-next
		}
	})
	r, err := w.client().Get(w.url("good.test"))
	w.must(err)
	defer r.Body.Close()
	buf := make([]byte, 256)
	for i := range 3 {
		var got string
		for !strings.Contains(got, fmt.Sprintf("event %d", i)) {
			n, err := r.Body.Read(buf)
			got += string(buf[:n])
			if err != nil {
				t.Fatalf("event %d: %v after %q", i, err, got)
			}
		}
		next <- struct{}{}
	}
	w.entries(1)
}

func TestEgress_LimitsOnWhatAClientMayTake(t *testing.T) {
	w := newEgress(t, setup{config: func(c *Config) {
		c.MaxConns = 3
		c.Limits = Limits{Header: 500 * time.Millisecond, Idle: 500 * time.Millisecond, Body: 500 * time.Millisecond}
	}})
	at := fmt.Sprintf("plain.test:%d", w.plain.port)
	head := "POST http://" + at + "/ HTTP/1.1\r\nHost: " + at + "\r\n"
	// A header that drips, an idle connection, a body that stalls.
	slow := w.dial(w.explicit)
	start := time.Now()
	go func() {
		for _, b := range []byte(head) {
			if _, err := slow.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	io.Copy(io.Discard, slow)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("a header that drips was awaited for %s", d)
	}
	c := w.dial(w.explicit)
	w.refused(say(c, head+"Content-Length: 10\r\n\r\nabc"), 400)
	w.refused(say(w.dial(w.explicit), head+"X: "+strings.Repeat("a", maxHead)+"\r\n\r\n"), 413)
	w.untouched()
	w.entries(2)
	time.Sleep(time.Second)
	var open []net.Conn
	for range 3 {
		open = append(open, w.dial(w.explicit))
	}
	time.Sleep(100 * time.Millisecond)
	r := say(w.dial(w.explicit), get("x", "/"))
	if r == nil || r.StatusCode != 503 || !strings.Contains(r.Text, "hint: ") {
		t.Errorf("one connection too many got %+v", r)
	}
	for _, c := range open {
		c.Close()
	}
	for end := time.Now().Add(5 * time.Second); w.p.Snapshot().Open > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	w.passed(say(w.dial(w.explicit), "GET http://"+at+"/ HTTP/1.1\r\nHost: "+at+"\r\n\r\n"))
	w.entries(3)
	for end := time.Now().Add(5 * time.Second); w.p.Snapshot().Requests[Outcome{"plain.test", ""}] == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // it is counted after the entry
	}
	if s := w.p.Snapshot(); s.Crowded != 1 || s.Requests[Outcome{"plain.test", ""}] != 1 || s.Stages[Decide].Count == 0 || s.Stages[Cross].Count != 1 {
		t.Errorf("counted %+v", s)
	}
}

func TestEgress_CloseWaitsForTheRecord(t *testing.T) {
	w := newEgress(t, setup{})
	w.passed(w.send("GET", w.url("good.test"), ""))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	w.must(w.p.Close(ctx))
	if n := len(w.read()); n != 1 {
		t.Errorf("after Close the ledger holds %d crossings, want 1", n)
	}
	if w.p.Explicit(w.port(), Caller{Token: func() (holdfast.Secret, error) { return w.who("bob") }}) == nil {
		t.Error("a closed proxy listens")
	}
}

func TestAuthority_IsMadeOnceAndKeptSafe(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenAuthority(dir)
	if err != nil || !bytes.Equal(a.PEM(), b.PEM()) {
		t.Fatalf("opened again: %v", err)
	}
	key := filepath.Join(dir, authorityKey)
	if s, _ := os.Stat(key); s.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %o", s.Mode().Perm())
	}
	refuses := func(what string) {
		t.Helper()
		before, _ := os.ReadFile(key)
		_, err := OpenAuthority(dir)
		var he *holdfast.Error
		if !errors.As(err, &he) || he.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
		if after, _ := os.ReadFile(key); !bytes.Equal(before, after) {
			t.Errorf("%s: the key was replaced", what)
		}
	}
	os.Chmod(key, 0o640)
	refuses("a key that a group can read")
	os.Chmod(key, 0o604)
	refuses("a key that everybody can read")
	os.Chmod(key, 0o600)
	good, _ := os.ReadFile(key)
	os.WriteFile(key, good[:len(good)/2], 0o600)
	refuses("half a key")
	other := t.TempDir()
	if _, err := OpenAuthority(other); err != nil {
		t.Fatal(err)
	}
	strange, _ := os.ReadFile(filepath.Join(other, authorityKey))
	os.WriteFile(key, strange, 0o600)
	refuses("another key")
	os.Remove(key)
	refuses("no key beside a certificate")
	os.WriteFile(key, good, 0o600)
	if _, err := OpenAuthority(dir); err != nil {
		t.Errorf("the good key again: %v", err)
	}
	os.Remove(filepath.Join(dir, authorityCert))
	refuses("no certificate beside a key")
}

func TestAuthority_LeavesAreForOneHostAndAFewAreKept(t *testing.T) {
	a, err := OpenAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h, _ := domain.ParseHost("good.test")
	one, err := a.Leaf(h)
	if err != nil {
		t.Fatal(err)
	}
	if two, _ := a.Leaf(h); two != one {
		t.Error("a leaf was made twice")
	}
	if one.Leaf.VerifyHostname("good.test") != nil || one.Leaf.VerifyHostname("x.good.test") == nil || one.Leaf.IsCA {
		t.Error("the leaf is for something else")
	}
	for i := range maxLeaves + 50 {
		h, _ := domain.ParseHost(fmt.Sprintf("n%d.test", i))
		if _, err := a.Leaf(h); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.used.Len(); n != maxLeaves || len(a.leaves) != n {
		t.Errorf("%d leaves are kept", n)
	}
	if _, err := a.Leaf(domain.Host{}); err == nil {
		t.Error("a certificate for no host")
	}
}

func TestResolve_EveryNameIsTheSentinel(t *testing.T) {
	w := newEgress(t, setup{})
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	w.must(err)
	l := w.port()
	done := make(chan error, 2)
	go func() { done <- w.p.Resolve(pc) }()
	go func() { done <- w.p.ResolveTCP(l) }()
	for _, network := range []string{"udp", "tcp"} {
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			addr := pc.LocalAddr().String()
			if network == "tcp" {
				addr = l.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}
		got, err := r.LookupHost(t.Context(), "some-secret.evil.test.")
		if err != nil || len(got) != 1 || got[0] != "198.18.0.1" {
			t.Errorf("%s: %v %v", network, got, err)
		}
		if txt, err := r.LookupTXT(t.Context(), "evil.test."); err == nil {
			t.Errorf("%s: TXT gave %v", network, txt)
		}
	}
	for _, typ := range []dnsmessage.Type{dnsmessage.TypeAAAA, dnsmessage.TypeTXT, dnsmessage.Type(65), dnsmessage.Type(64), dnsmessage.TypeMX, dnsmessage.TypeALL} {
		m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("a.test."), Type: typ, Class: dnsmessage.ClassINET}}}
		q, err := m.Pack()
		w.must(err)
		a, ok := answerName(q)
		var back dnsmessage.Message
		if !ok || back.Unpack(a) != nil || back.RCode != dnsmessage.RCodeSuccess || len(back.Answers) != 0 || !back.Response {
			t.Errorf("%v: %v %+v", typ, ok, back)
		}
	}
	two := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("a.test."), Type: 1, Class: 1}, {Name: dnsmessage.MustNewName("b.test."), Type: 1, Class: 1}}}
	q, _ := two.Pack()
	answer := dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Questions: two.Questions[:1]}
	r, _ := answer.Pack()
	for _, bad := range [][]byte{nil, {1}, q, r, bytes.Repeat([]byte{0xc0}, 40), q[:20]} {
		if _, ok := answerName(bad); ok {
			t.Errorf("%x was answered", bad)
		}
	}
	pc.Close()
	l.Close()
	w.must(<-done)
	w.must(<-done)
}

func TestEgress_State_AnswersAreWithheldUntilTheyAreJudged(t *testing.T) {
	w := newEgress(t, setup{policy: func(p *kernel.Policy) {
		for i := range p.Contracts {
			if p.Contracts[i].Boundary == "egress/good.test" {
				p.Contracts[i].OutputSchema = json.RawMessage(`{"type":"object","properties":{"text":{"not":{"pattern":"forbidden"}}}}`)
				p.Contracts[i].Predicates = []string{"output_schema_conformance"}
			}
		}
	}})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, "hello, "+r.URL.Path) })
	got := w.send("GET", w.url("good.test")+"fine", "")
	w.passed(got)
	if got.Text != "hello, /fine" {
		t.Errorf("the answer is %q", got.Text)
	}
	w.entries(1)
	got = w.send("GET", w.url("good.test")+"forbidden", "")
	w.refused(got, 403)
	if strings.Contains(got.Text, "hello") {
		t.Errorf("what is withheld was given: %q", got.Text)
	}
	w.last(2, "egress/good.test", holdfast.KindEvalFailure)
}

func TestEgress_State_AClientThatGoesAwayEndsTheExchange(t *testing.T) {
	w := newEgress(t, setup{})
	gone := make(chan struct{})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, "data: one\n\n")
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", w.url("good.test"), nil)
	w.must(err)
	resp, err := w.client().Do(r)
	w.must(err)
	resp.Body.Read(make([]byte, 1))
	cancel()
	resp.Body.Close()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the server was not told that nobody listens any more")
	}
	w.last(1, "egress/good.test", holdfast.KindCanceled)
}

func TestEgress_ManyAtOnce(t *testing.T) {
	w := newEgress(t, setup{})
	client := w.client()
	const workers, each = 16, 8
	errs := make(chan error, workers)
	for i := range workers {
		go func() {
			for j := range each {
				name := "good.test"
				if (i+j)%2 == 0 {
					name = "other.test"
				}
				body := fmt.Sprintf("body %d of %d", j, i)
				r, err := client.Post(w.url(name), "text/plain", strings.NewReader(body))
				if err != nil {
					errs <- err
					return
				}
				b, err := io.ReadAll(r.Body)
				r.Body.Close()
				if err != nil || r.StatusCode != 200 || string(b) != "hello from "+w.at(name) {
					errs <- fmt.Errorf("%v %s %q", err, r.Status, b)
					return
				}
			}
			errs <- nil
		}()
	}
	for range workers {
		w.must(<-errs)
	}
	ids := map[string]bool{}
	for _, e := range w.entries(workers * each) {
		ids[e.ID] = true
	}
	if len(ids) != workers*each {
		t.Errorf("%d crossings have %d ids", workers*each, len(ids))
	}
}

func TestEgress_TheSameRequestHasTheSamePayload(t *testing.T) {
	w := newEgress(t, setup{})
	for i := range 3 {
		w.passed(w.send("POST", w.url("good.test")+"a?b=c", "body", "X-Request-Id", fmt.Sprint(i), "Traceparent", fmt.Sprintf("00-%032x-%016x-01", i+1, i+1), "X-Other", "same"))
	}
	w.passed(w.send("POST", w.url("good.test")+"a?b=c", "body", "X-Other", "another"))
	es := w.entries(4)
	if es[0].ExactHash == "" || es[0].ExactHash != es[1].ExactHash || es[1].ExactHash != es[2].ExactHash {
		t.Errorf("the same request has the hashes %s %s %s", es[0].ExactHash, es[1].ExactHash, es[2].ExactHash)
	}
	if es[3].ExactHash == es[0].ExactHash {
		t.Error("another request has the same hash")
	}
}

func TestEgress_AClientThatDoesNotReadIsLetGo(t *testing.T) {
	w := newEgress(t, setup{config: func(c *Config) { c.Limits.Idle = 500 * time.Millisecond }})
	w.plain.answer(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		line := strings.Repeat("ordinary words ", 1000)
		for range 2000 {
			if _, err := io.WriteString(rw, line); err != nil {
				return
			}
		}
	})
	at := fmt.Sprintf("plain.test:%d", w.plain.port)
	c := w.dial(w.explicit)
	io.WriteString(c, "GET http://"+at+"/ HTTP/1.1\r\nHost: "+at+"\r\n\r\n")
	if e := w.entries(1)[0]; e.ErrorKind == "" {
		t.Error("an answer that nobody read is recorded as given")
	}
	for end := time.Now().Add(10 * time.Second); w.p.Snapshot().Open > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the connection is kept")
		}
	}
}
