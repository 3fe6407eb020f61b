package notify

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/holdfast-dev/holdfast"
)

// got is one request or mail as the other side took it.
type got struct {
	path, auth string
	header     http.Header
	body       string
}

// taker is the other side: it keeps what came and answers what the test wants.
type taker struct {
	mu     sync.Mutex
	all    []got
	answer func(w http.ResponseWriter, r *http.Request)
}

func (k *taker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	k.mu.Lock()
	answer := k.answer
	k.all = append(k.all, got{path: r.URL.RequestURI(), auth: r.Header.Get("Authorization"), header: r.Header, body: string(body)})
	k.mu.Unlock()
	if answer != nil {
		answer(w, r)
	}
}

func (k *taker) set(answer http.HandlerFunc) { k.mu.Lock(); k.answer = answer; k.mu.Unlock() }

func (k *taker) took() []got {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]got(nil), k.all...)
}

func serveHTTP(t *testing.T) (*taker, string) {
	t.Helper()
	k := &taker{}
	s := httptest.NewServer(k)
	t.Cleanup(s.Close)
	return k, strings.TrimPrefix(s.URL, "http://")
}

// mails is a mail server that keeps what it takes.
type mails struct {
	mu     sync.Mutex
	all    []got
	refuse error // what it says of a receiver
}

func (b *mails) NewSession(*smtp.Conn) (smtp.Session, error) { return &mailSession{b: b}, nil }

func (b *mails) took() []got {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]got(nil), b.all...)
}

type mailSession struct {
	b        *mails
	user, to string
}

func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != "mail-password-77" {
			return smtp.ErrAuthFailed
		}
		s.user = user
		return nil
	}), nil
}

func (s *mailSession) Reset()                               {}
func (s *mailSession) Logout() error                        { return nil }
func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to += to + " "
	return s.b.refuse
}

func (s *mailSession) Data(r io.Reader) error {
	body, err := io.ReadAll(r)
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.all = append(s.b.all, got{path: s.to, auth: s.user, body: string(body)})
	return err
}

func serveMail(t *testing.T, change ...func(*smtp.Server)) (*mails, string) {
	t.Helper()
	b := &mails{}
	s := smtp.NewServer(b)
	s.Domain, s.AllowInsecureAuth = "localhost", true
	for _, c := range change {
		c(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return b, l.Addr().String()
}

func channel(t *testing.T, kind Kind, address string) *Channel {
	t.Helper()
	c, err := Open(kind, holdfast.NewSecret(address))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

func sample() Message {
	return Message{ID: "id-1", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Runtime: "r", Severity: "HIGH", Condition: "loop", Title: "HIGH: loop, agent bob",
		Text: "a loop: the same action 5 times\n2026-01-02 03:04:05 UTC", Tenant: "local", Agent: "bob", Crossing: "c1"}
}
