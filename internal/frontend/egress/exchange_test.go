package egress

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/counters"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/wire"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/ledger"
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
	if got.Header.Get(refusal.HeaderCrossing) == "" {
		t.Error("the answer names no crossing")
	}
	seen := w.up.requests()
	if len(seen) != 1 || seen[0].Method != "POST" || seen[0].URI != "/v1/things?a=b" || seen[0].Body != `{"a":1}` || seen[0].Header.Get("X-Other") != "kept" {
		t.Errorf("the server saw %+v", seen)
	}
	e := w.entries(1)[0]
	if e.ErrorKind != "" || e.ID != got.Header.Get(refusal.HeaderCrossing) || e.Caller != "user:alice" || e.BeginSeq == nil {
		t.Errorf("the ledger says %+v", e)
	}
}

func TestEgress_Accept02_AnUnlistedDomainIsBlocked(t *testing.T) {
	w := newEgress(t, setup{})
	r := say(w.dial(w.explicit), "CONNECT random.example.com:443 HTTP/1.1\r\nHost: random.example.com:443\r\nAccept: application/json\r\n\r\n")
	w.refused(r, 403)
	var told struct {
		Error struct{ Type, Message, Crossing string }
	}
	w.must(json.Unmarshal([]byte(r.Text), &told))
	if told.Error.Type != string(holdfast.KindDomainBlocked) || !strings.Contains(told.Error.Message, "random.example.com") || told.Error.Crossing != r.Header.Get(refusal.HeaderCrossing) {
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

// What people are shown of a refused request has its path, redacted as that of a
// request that is sent: whole, before it is cut.
func TestEgress_Accept02_ThePathOfARefusalIsRecordedRedacted(t *testing.T) {
	w := newEgress(t, setup{})
	noted := func(n int, target string) holdfast.Exchange {
		t.Helper()
		host := "random.example.com"
		w.refused(say(w.dial(w.explicit), fmt.Sprintf("GET http://%s%s HTTP/1.1\r\nHost: %s\r\n\r\n", host, target, host)), 403)
		w.last(n, "egress/random.example.com", holdfast.KindDomainBlocked)
		var x holdfast.Exchange
		w.must(w.store.View(t.Context(), func(tx kernel.Tx) error {
			return tx.Leaves(holdfast.Local, 0, 1<<40, func(l ledger.Stored) error {
				if l.Kind != ledger.KindEntry {
					return nil
				}
				b, err := ledger.PartContent(l.Part)
				if err == nil {
					x = holdfast.Exchange{}
					err = json.Unmarshal(b, &x)
				}
				return err
			})
		}))
		return x
	}
	if x := noted(1, "/a/b?c=d"); x.Method != "GET" || x.Host != "random.example.com" || x.Path != "/a/b?c=d" {
		t.Errorf("%+v", x)
	}
	if x := noted(2, "/v1/"+someKey+"?to="+someMail); !strings.HasPrefix(x.Path, "/v1/") || strings.Contains(x.Path, someKey) || strings.Contains(x.Path, someMail) {
		t.Errorf("%+v", x)
	}
	if x := noted(3, "/"+strings.Repeat("a", maxPath-10)+"/"+someKey); len(x.Path) != maxPath || strings.Contains(x.Path, someKey[:8]) {
		t.Errorf("%+v", x)
	}
	if x := noted(4, "/"+strings.Repeat("a", maxShown)); x.Path != "" || x.Host == "" {
		t.Errorf("%+v", x)
	}
	w.untouched()
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

func TestEgress_Error_UpstreamThatFails(t *testing.T) {
	w := newEgress(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}}, {Name: "other.test", Ports: []uint16{tls}, FirstByte: 500 * time.Millisecond}, {Name: "127.0.0.1", Ports: []uint16{1}, Plain: true}}
	}})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/500":
			http.Error(rw, "hello, it broke", http.StatusInternalServerError)
		case "/slow":
			<-r.Context().Done()
		}
	})
	got := w.send("GET", w.url("good.test")+"500", "")
	if got.StatusCode != 500 || !strings.HasPrefix(got.Text, "hello, it broke") {
		t.Errorf("a 500 came as %s %q", got.Status, got.Text)
	}
	w.last(1, "egress/good.test", holdfast.KindForward)
	w.refused(w.send("GET", w.url("other.test")+"slow", ""), 504)
	w.last(2, "egress/other.test", holdfast.KindTimeout)
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
	t.Parallel()
	w := newEgress(t, setup{config: func(c *Config) {
		c.Limits = Limits{Header: 500 * time.Millisecond, Idle: 500 * time.Millisecond, Body: 500 * time.Millisecond}
	}})
	head := "POST http://" + w.plainHost() + "/ HTTP/1.1\r\nHost: " + w.plainHost() + "\r\n"
	// A header that drips, an idle connection, a body that stalls.
	slow := w.dial(w.explicit)
	go func() {
		for _, b := range []byte(head) {
			if _, err := slow.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	if _, err := io.Copy(io.Discard, slow); isTimeout(err) {
		t.Error("a header that drips is awaited")
	}
	w.refused(say(w.dial(w.explicit), head+"Content-Length: 10\r\n\r\nabc"), 400)
	w.refused(say(w.dial(w.explicit), head+"X: "+strings.Repeat("a", wire.MaxHead)+"\r\n\r\n"), 413)
	w.dial(w.explicit)
	w.untouched()
	w.entries(2)
	w.until("no connection is open", func() bool { return w.p.Snapshot().Open == 0 })
}

func TestEgress_LimitsOnHowManyConnections(t *testing.T) {
	w := newEgress(t, setup{config: func(c *Config) { c.MaxConns = 3 }})
	var open []net.Conn
	for range 3 {
		open = append(open, w.dial(w.explicit))
	}
	w.until("three connections are open", func() bool { return w.p.Snapshot().Open == 3 })
	r := say(w.dial(w.explicit), get("x", "/"))
	if r == nil || r.StatusCode != 503 || !strings.Contains(r.Text, "hint: ") {
		t.Errorf("one connection too many got %+v", r)
	}
	for _, c := range open {
		c.Close()
	}
	w.until("no connection is open", func() bool { return w.p.Snapshot().Open == 0 })
	w.passed(say(w.dial(w.explicit), "GET http://"+w.plainHost()+"/ HTTP/1.1\r\nHost: "+w.plainHost()+"\r\n\r\n"))
	w.entries(1)
	answered := counters.Outcome{Domain: "plain.test", Kind: ""}
	w.until("the request is counted", func() bool { return w.p.Snapshot().Requests[answered] > 0 }) // after the entry
	if s := w.p.Snapshot(); s.Crowded != 1 || s.Requests[answered] != 1 || s.Stages[counters.Decide].Count == 0 || s.Stages[counters.Cross].Count != 1 {
		t.Errorf("counted %+v", s)
	}
}

func TestEgress_CloseWaitsForTheRecord(t *testing.T) {
	w := newEgress(t, setup{})
	w.passed(w.send("GET", w.url("good.test"), ""))
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	w.must(w.p.Close(ctx))
	if n := len(w.read()); n != 1 {
		t.Errorf("after Close the ledger holds %d crossings, want 1", n)
	}
	if w.p.Explicit(w.port(), Caller{Token: func() (holdfast.Secret, error) { return w.who("bob") }}) == nil {
		t.Error("a closed proxy listens")
	}
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
	// An entry may be written after that of the next request, which begins when the answer is there.
	hashes := map[string]int{}
	for _, e := range w.entries(4) {
		hashes[e.ExactHash]++
	}
	if counts := slices.Sorted(maps.Values(hashes)); !slices.Equal(counts, []int{1, 3}) || hashes[""] > 0 {
		t.Errorf("three requests are the same and one is another, got %v", hashes)
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
	w.until("the connection is let go", func() bool { return w.p.Snapshot().Open == 0 })
}
