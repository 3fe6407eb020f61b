package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"

	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
)

// mailbox is a mail server and who gets mail through it.
type mailbox struct {
	host, user, password string
	port                 int
	implicit             bool // TLS from the first byte
	auth                 mail.SMTPAuthType
	from                 string
	to                   []string
	roots                *x509.CertPool // nil: the system's
}

// openMail takes smtp://user:password@host:587/?from=A&to=B,C with STARTTLS, and
// smtps:// with TLS from the first byte. Without TLS mail goes only to this
// machine.
func openMail(u *url.URL) (sender, error) {
	b := &mailbox{host: u.Hostname(), user: u.User.Username(), implicit: strings.EqualFold(u.Scheme, "smtps"), auth: mail.SMTPAuthPlain}
	b.password, _ = u.User.Password()
	b.port = 587
	if b.implicit {
		b.port = 465
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return nil, ErrAddress
		}
		b.port = int(n)
	}
	q := u.Query()
	for key := range q {
		switch key {
		case "from", "fromaddress":
			b.from = q.Get(key)
		case "to", "toaddresses":
			b.to = strings.Split(q.Get(key), ",")
		case "auth":
			switch strings.ToLower(q.Get(key)) {
			case "plain":
			case "login":
				b.auth = mail.SMTPAuthLogin
			case "cram-md5", "crammd5":
				b.auth = mail.SMTPAuthCramMD5
			default:
				return nil, failed("its auth is none of plain, login and cram-md5")
			}
		default:
			return nil, failed("its query holds something else than from, to and auth")
		}
	}
	if b.host == "" || b.from == "" || len(b.to) == 0 {
		return nil, failed("write smtp://USER:PASSWORD@HOST:587/?from=ADDRESS&to=ADDRESS")
	}
	if _, err := b.letter(&Message{}); err != nil {
		return nil, failed("from or to is no mail address")
	}
	return b, nil
}

// letter is the mail. Its id follows from the message's, so that a reader shows
// one that came twice once.
func (b *mailbox) letter(m *Message) (*mail.Msg, error) {
	letter := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := letter.From(b.from); err != nil {
		return nil, err
	}
	if err := letter.To(b.to...); err != nil {
		return nil, err
	}
	letter.SetMessageIDWithValue(m.ID + "@holdfast")
	letter.SetDateWithValue(m.At)
	letter.SetGenHeader("Auto-Submitted", "auto-generated")
	letter.Subject("[holdfast] " + inert(m.Title))
	letter.SetBodyString(mail.TypeTextPlain, m.plain()+"\n")
	return letter, nil
}

func (b *mailbox) send(ctx context.Context, m *Message, _ Kind) error {
	letter, err := b.letter(m)
	if err != nil {
		return failed("the mail could not be written")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // closes the connection, however it went
	policy := mail.TLSMandatory
	if netaddr.IsLoopbackHost(b.host) {
		policy = mail.TLSOpportunistic
	}
	opts := []mail.Option{mail.WithPort(b.port), mail.WithTimeout(tryTime), mail.WithTLSPolicy(policy), mail.WithTLSConfig(b.tls()),
		mail.WithDialContextFunc(b.dial(ctx)), mail.WithHELO("localhost")}
	if b.implicit {
		opts = append(opts, mail.WithSSL())
	}
	if b.user != "" {
		opts = append(opts, mail.WithSMTPAuth(b.auth), mail.WithUsername(b.user), mail.WithPassword(b.password))
	}
	client, err := mail.NewClient(b.host, opts...)
	if err != nil {
		return failed("the mail server's address cannot be used")
	}
	if err := client.DialWithContext(ctx); err != nil {
		return err
	}
	err = client.Send(letter)
	if letter.IsDelivered() {
		err = nil // what went wrong afterwards sends no mail twice
	}
	_ = client.Close() // likewise
	return err
}

func (b *mailbox) tls() *tls.Config {
	return &tls.Config{ServerName: b.host, MinVersion: tls.VersionTLS12, RootCAs: b.roots}
}

// dial connects, and hangs up when ctx ends.
func (b *mailbox) dial(ctx context.Context) mail.DialContextFunc {
	return func(dialing context.Context, network, address string) (net.Conn, error) {
		raw, err := (&net.Dialer{}).DialContext(dialing, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = raw.Close() })
		conn := &talk{Conn: raw, left: maxTalk}
		if !b.implicit {
			return conn, nil
		}
		safe := tls.Client(conn, b.tls())
		return safe, safe.HandshakeContext(dialing)
	}
}

// maxTalk bounds what a mail server says in one try, in bytes.
const maxTalk = 1 << 20

// talk is a connection whose other side says so much and no more.
type talk struct {
	net.Conn
	left int
}

// Read implements net.Conn.
func (t *talk) Read(p []byte) (int, error) {
	if t.left <= 0 {
		return 0, failed("it says too much")
	}
	n, err := t.Conn.Read(p[:min(len(p), t.left)])
	t.left -= n
	return n, err
}
