package egress

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func TestEgress_Accept03_04_WhatLeavesAndWhatComesBackIsRedacted(t *testing.T) {
	w := newEgress(t, setup{})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, `{"key":"`+someKey+`","words":"kept"}`)
	})
	got := w.send("POST", w.url("good.test")+"?to="+someMail, `{"to":"`+someMail+`","text":"kept"}`, "Content-Type", "application/json", "X-Note", someMail)
	if got.StatusCode != 200 {
		t.Fatalf("status %s: %s", got.Status, got.Text)
	}
	seen := w.up.requests()[0]
	if all := seen.Body + seen.URI + fmt.Sprint(seen.Header); strings.Contains(all, someMail) {
		t.Errorf("the server saw the address: %s", all)
	}
	if !strings.Contains(seen.Body, "[email]") || !strings.Contains(seen.Body, "kept") {
		t.Errorf("the server got %s", seen.Body)
	}
	if strings.Contains(got.Text, someKey) || !strings.Contains(got.Text, "[secret]") || !strings.Contains(got.Text, "kept") {
		t.Errorf("the client got %s", got.Text)
	}
	w.entries(1)
	if s := w.p.Snapshot(); s.RedactedOut < 3 || s.RedactedIn < 1 {
		t.Errorf("redacted %d out and %d in", s.RedactedOut, s.RedactedIn)
	}
}

func TestEgress_Accept05_TheHundredAndFirstOfAMinute(t *testing.T) {
	w := newEgress(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, Rate: 100}}
	}})
	w.stopClock()
	client := w.client()
	for i := range 101 {
		r, err := client.Get(w.url("good.test"))
		w.must(err)
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if want := 200; i < 100 && r.StatusCode != want || i == 100 && r.StatusCode != 429 {
			t.Fatalf("request %d got %s", i+1, r.Status)
		}
	}
	if n := len(w.up.requests()); n != 100 {
		t.Errorf("the server saw %d requests", n)
	}
	refused := 0 // the entry of the hundredth may follow it
	for _, e := range w.entries(101) {
		if e.ErrorKind == holdfast.KindRateLimit {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d entries say that the rate was exceeded", refused)
	}
}

func TestEgress_Accept06_TokensBeyondTheBudget(t *testing.T) {
	w := newEgress(t, setup{
		rows: func(tls, plain uint16) []domain.Domain {
			return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, Unit: domain.Tokens}}
		},
		policy: func(p *kernel.Policy) {
			p.Limits = append(p.Limits, budget.Limit{Scope: budget.Tenant, Boundary: "egress/good.test", Resource: holdfast.LLMTokens, Amount: 1000, Source: "test"})
		},
	})
	words := func(tokens int) string { return strings.Repeat("a ", tokens/2) } // a token a byte
	w.passed(w.send("POST", w.url("good.test"), words(900), "Content-Type", "text/plain"))
	w.entries(1)
	w.refused(w.send("POST", w.url("good.test"), words(200), "Content-Type", "text/plain"), 402)
	w.last(2, "egress/good.test", holdfast.KindBudgetExceeded)
	w.passed(w.send("POST", w.url("good.test"), words(90), "Content-Type", "text/plain"))
}

func TestEgress_Accept08_NoAnswerInTime(t *testing.T) {
	if domain.DefaultFirstByte != 30*time.Second {
		t.Errorf("a server has %s for its first byte", domain.DefaultFirstByte)
	}
	w := newEgress(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, FirstByte: 500 * time.Millisecond}}
	}})
	held := make(chan struct{})
	defer close(held)
	w.up.answer(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-held:
		}
	})
	start := time.Now()
	w.refused(w.send("GET", w.url("good.test"), ""), 504)
	if d := time.Since(start); d < 500*time.Millisecond || d >= domain.DefaultFirstByte {
		t.Errorf("it was given up after %s", d)
	}
	w.last(1, "egress/good.test", holdfast.KindTimeout)
}

func TestEgress_Accept09_TenantsDoNotMeet(t *testing.T) {
	w := newEgress(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		return []domain.Domain{{Name: "plain.test", Ports: []uint16{plain}, Plain: true, Rate: 1}}
	}})
	at := fmt.Sprintf("plain.test:%d", w.plain.port)
	ask := func(tenant string) *reply {
		l := w.port()
		done := make(chan error, 1)
		go func() {
			done <- w.p.Explicit(l, Caller{Token: func() (holdfast.Secret, error) { return w.of(tenant) }})
		}()
		// Whatever the request says of who it is, the listener says it.
		got := say(w.dial(l.Addr().String()), "GET http://"+at+"/ HTTP/1.1\r\nHost: "+at+"\r\nX-Tenant: other\r\nProxy-Authorization: Bearer other\r\n\r\n")
		l.Close()
		w.must(<-done)
		return got
	}
	w.passed(ask("red"))
	w.refused(ask("red"), 429)
	w.passed(ask("blue"))
	w.refused(ask("blue"), 429)
	tenants := map[string]int{}
	for _, e := range w.entries(4) {
		tenants[e.TenantID]++
	}
	if tenants["red"] != 2 || tenants["blue"] != 2 {
		t.Errorf("the ledger holds %v", tenants)
	}
}

// The rows of the document's table of errors (003 section 3.1), each as the
// client and the ledger see it.
func TestEgress_Error_everyRow(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   holdfast.Kind
		status int
		url    string
		body   string
	}{
		{"DomainBlockedError", holdfast.KindDomainBlocked, 403, "/blocked", ""},
		{"RateLimitError", holdfast.KindRateLimit, 429, "/twice", ""},
		{"BudgetExceededError", holdfast.KindBudgetExceeded, 402, "/", strings.Repeat("a", 3000)},
		{"RedactionError", holdfast.KindRedaction, 500, "/", "hello"},
		{"LoggingError", holdfast.KindLogging, 500, "/", ""},
		{"ForwardError", holdfast.KindForward, 502, "/hangup", ""},
		{"TimeoutError", holdfast.KindTimeout, 504, "/slow", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newEgress(t, setup{
				config: func(config *Config) {
					if c.kind == holdfast.KindRedaction {
						config.Engine = func(*domain.Domain) *redact.Engine { return &redact.Engine{} }
					}
				},
				rows: func(tls, plain uint16) []domain.Domain {
					blocked, err := domain.ParsePath("/blocked")
					if err != nil {
						t.Fatal(err)
					}
					row := domain.Domain{Name: "good.test", Ports: []uint16{tls}, Rate: 1, Unit: domain.Bytes, Request: domain.Refuse}
					if c.kind == holdfast.KindTimeout {
						row.FirstByte = 500 * time.Millisecond
					}
					if c.url == "/blocked" {
						row.Methods, row.Paths = []string{"POST"}, []domain.PathPattern{blocked}
					}
					return []domain.Domain{row}
				},
				policy: func(p *kernel.Policy) {
					p.Limits = append(p.Limits, budget.Limit{Scope: budget.Tenant, Boundary: "egress/good.test", Resource: holdfast.BytesOut, Amount: 2000, Source: "test"})
				},
			})
			w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/hangup":
					panic(http.ErrAbortHandler)
				case "/slow":
					<-r.Context().Done()
				}
				io.WriteString(rw, "hello")
			})
			method, n := "GET", 1
			switch {
			case c.body != "":
				method = "POST"
			case c.url == "/twice":
				w.passed(w.send("GET", w.url("good.test")+"twice", ""))
				w.entries(1) // its entry may follow the answer
				n = 2
			case c.kind == holdfast.KindLogging:
				w.breakStore(func(string) error { return errors.New("the disk is gone") })
			}
			before := len(w.up.requests())
			got := w.send(method, w.url("good.test")+c.url[1:], c.body, "Accept", "application/json", "Content-Type", "application/json")
			w.refused(got, c.status)
			if !strings.Contains(got.Text, `"type":"`+string(c.kind)+`"`) || strings.Contains(got.Text, someMail) {
				t.Errorf("the client is told %s", got.Text)
			}
			if c.kind == holdfast.KindLogging {
				if len(w.up.requests()) != before {
					t.Error("it was sent without a record")
				}
				return
			}
			w.last(n, "egress/good.test", c.kind)
			if sent := len(w.up.requests()) > before; sent != (c.status == 502 || c.status == 504) {
				t.Errorf("whether it was sent: %v", sent)
			}
		})
	}
}

// echList is an ECHConfigList for one server with the given public name
// (draft-ietf-tls-esni, section 4).
func echList(t *testing.T, public string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	u16 := binary.BigEndian.AppendUint16
	with := func(b []byte) []byte { return append(u16(nil, uint16(len(b))), b...) }
	c := u16([]byte{7}, 0x0020)                     // config id, DHKEM(X25519)
	c = append(c, with(key.PublicKey().Bytes())...) // public key
	c = append(c, with([]byte{0, 1, 0, 1})...)      // HKDF-SHA256, AES-128-GCM
	c = append(c, 32, byte(len(public)))            // longest name, public name
	c = append(append(c, public...), 0, 0)          // no extensions
	return with(append(u16(nil, extensionECH), with(c)...))
}

func TestEgress_Bypass22_AnEncryptedNameIsRefusedWhereNobodyLooksInside(t *testing.T) {
	w := newEgress(t, setup{})
	hidden := func(connect, public string) (*tls.Conn, error) {
		c := tls.Client(w.connect(w.at(connect)), &tls.Config{ServerName: "evil.test", InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
			EncryptedClientHelloConfigList: echList(t, public), RootCAs: w.roots})
		return c, c.Handshake()
	}
	if _, err := hidden("blind.test", "blind.test"); err == nil {
		t.Error("a name that nobody can see went through an opaque tunnel")
	}
	w.last(1, "egress/blind.test", holdfast.KindMisdirected)
	w.untouched()
	// Where TLS is terminated nothing is hidden: the client is told so by a
	// handshake that did not accept it.
	_, err := hidden("good.test", "good.test")
	var rejected *tls.ECHRejectionError
	if !errors.As(err, &rejected) {
		t.Errorf("a terminated handshake gave %v", err)
	}
	w.untouched()
	s := tls.Client(w.connect(w.at("blind.test")), &tls.Config{ServerName: "blind.test", InsecureSkipVerify: true})
	w.passed(say(s, get(w.at("blind.test"), "/")))
}

// BenchmarkEgress is a POST of 7 KB with an answer of 2 KB on one connection
// that stays, through the whole proxy with a durable record.
func BenchmarkEgress(b *testing.B) {
	w := newEgress(b, setup{})
	answer := strings.Repeat("an ordinary answer ", 110)
	w.up.answer(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, answer) })
	body := `{"messages":[{"role":"user","content":"` + strings.Repeat("some ordinary words ", 350) + `"}]}`
	client := w.client()
	b.ResetTimer()
	for b.Loop() {
		r, err := client.Post(w.url("good.test"), "application/json", strings.NewReader(body))
		w.must(err)
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if r.StatusCode != 200 {
			b.Fatal(r.Status)
		}
	}
}
