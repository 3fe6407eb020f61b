package notify

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
)

// serveTLS starts a web server with a certificate that nothing trusts.
func serveTLS(t *testing.T) (*taker, *httptest.Server) {
	t.Helper()
	k := &taker{}
	s := httptest.NewUnstartedServer(k)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return k, s
}

// serveMailTLS starts a mail server with TLS from the first byte.
func serveMailTLS(t *testing.T, c *tls.Config) (*mails, string) {
	t.Helper()
	b := &mails{}
	s := smtp.NewServer(b)
	s.Domain, s.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	l, err := tls.Listen("tcp", "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return b, l.Addr().String()
}

const mailTo = "/?from=holdfast@example.com&to=ann@example.com"

// TestUntrustedCertificateIsRefused: a server whose certificate nothing trusts gets
// neither a message nor a password.
func TestUntrustedCertificateIsRefused(t *testing.T) {
	k, s := serveTLS(t)
	host := strings.TrimPrefix(s.URL, "https://")
	for _, a := range []string{s.URL + "/hook", "mattermost://" + host + "/token"} {
		if err := channel(t, Chat, a).Send(t.Context(), Item{Message: sample()}); err == nil {
			t.Errorf("%s: the message was sent", a)
		}
	}
	b, at := serveMailTLS(t, &tls.Config{Certificates: s.TLS.Certificates})
	c := channel(t, Mail, "smtps://me:mail-password-77@"+at+mailTo)
	if err := c.Send(t.Context(), Item{Message: sample()}); err == nil {
		t.Error("the mail was sent")
	}
	if len(k.took())+len(b.took()) > 0 {
		t.Errorf("they got %+v %+v", k.took(), b.took())
	}
}

// TestMailNeedsTLS12: a mail server that speaks nothing newer than TLS 1.1 gets no
// mail.
func TestMailNeedsTLS12(t *testing.T) {
	_, s := serveTLS(t)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for newest, want := range map[uint16]int{tls.VersionTLS11: 0, tls.VersionTLS12: 1} {
		b, at := serveMailTLS(t, &tls.Config{Certificates: s.TLS.Certificates,
			MinVersion: tls.VersionTLS10, MaxVersion: newest})
		u, err := url.Parse("smtps://me:mail-password-77@" + at + mailTo)
		if err != nil {
			t.Fatal(err)
		}
		to, err := openMail(u)
		if err != nil {
			t.Fatal(err)
		}
		to.(*mailbox).roots = roots
		m := sample()
		if err := to.send(t.Context(), &m, Mail); (err == nil) != (want == 1) || len(b.took()) != want {
			t.Errorf("%s: %v, %d mails", tls.VersionName(newest), err, len(b.took()))
		}
	}
}
