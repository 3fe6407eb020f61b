package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// sendError says in words what kept an answer from coming. What the upstream
// wrote is not repeated: it was not redacted.
func sendError(o domain.Origin, limit time.Duration, cause, err error) error {
	var known *holdfast.Error
	switch {
	case errors.As(err, &known) && errors.Is(err, holdfast.ErrNotStarted): // else it is why the wait was ended
		e := *known
		if known.Err != nil {
			e.Err = errors.Join(known.Err, holdfast.ErrNotStarted)
		} else {
			e.Err = holdfast.ErrNotStarted
		}
		return &e
	case errors.Is(err, errFirstByte), errors.Is(cause, errFirstByte):
		return &holdfast.Error{
			Kind: holdfast.KindTimeout, Rule: "egress/first-byte", Err: err,
			Why:  fmt.Sprintf("%s did not begin to answer within %s", o.Host, limit),
			Hint: "whether it did what was asked is not known; the domain's `first_byte` sets another limit",
		}
	case cause != nil:
		return &holdfast.Error{
			Kind: holdfast.KindForward, Rule: "egress/ended", Err: err,
			Why: "the request to " + o.Host.String() + " was ended before its answer came", Hint: "the client left, or the run was stopped",
		}
	}
	why, hint := forwardWhy(o, err)
	return &holdfast.Error{Kind: holdfast.KindForward, Rule: "egress/forward", Err: err, Why: why, Hint: hint}
}

// forwardWhy tells the common reasons apart.
func forwardWhy(o domain.Origin, err error) (why, hint string) {
	host := o.Host.String()
	var (
		name    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		timeout net.Error
	)
	switch {
	case errors.As(err, &name):
		return host + " showed a certificate for another name", "somebody may stand between; nothing was sent"
	case errors.As(err, &unknown):
		return host + " showed a certificate of an authority that is not trusted", "where it has its own, the domain's `roots` names its file; nothing was sent"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return host + " showed a certificate that has expired or does not hold yet", "see its clock and this machine's; nothing was sent"
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return host + " showed a certificate for another use than a server's", "nothing was sent"
	case errors.As(err, &invalid):
		return host + " showed a certificate that is not valid", "nothing was sent"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return noTLS(host)
	case errors.As(err, &alert):
		return "the TLS handshake with " + host + " failed: " + alert.Error(), "TLS 1.2 or later is spoken; nothing was sent"
	case errors.Is(err, syscall.ECONNREFUSED):
		return host + " refused the connection", "nothing listens at this port there"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return host + " cannot be reached from here", "this machine has no route to it"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return host + " broke the connection off", "whether it did what was asked is not known"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return host + " did not answer to the connection", "it may be down, or a filter lies between"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return closedWithoutAnswer(host)
	}
	switch readTransportFault(err.Error()) {
	case headerTooLong:
		return host + " answered with a header that is too long", "more than 256 KiB are not taken"
	case closedIdle:
		return closedWithoutAnswer(host)
	}
	return host + " answered with something that is not HTTP", "whether it did what was asked is not known"
}

func closedWithoutAnswer(host string) (why, hint string) {
	return host + " closed the connection without an answer", "whether it did what was asked is not known"
}

func noTLS(host string) (why, hint string) {
	return host + " does not speak TLS at this port", "see the row's `ports`; where it is meant, `plain_http: true` in the row permits HTTP without TLS"
}

// transportFault is a fault of an answer for which net/http has no error value.
type transportFault int

const (
	otherFault    transportFault = iota
	closedIdle                   // the server closed a connection that a request was to be sent on
	headerTooLong                // the answer's header has more than MaxResponseHeaderBytes
)

// readTransportFault finds a fault in the words of net/http, of Go 1.26. A server in
// TestBad_AnUpstreamThatIsDown makes headerTooLong; closedIdle takes a race.
func readTransportFault(words string) transportFault {
	switch {
	case strings.Contains(words, "server response headers exceeded"):
		return headerTooLong
	case strings.Contains(words, "server closed idle connection"):
		return closedIdle
	}
	return otherFault
}

// dnsWhy tells the reasons of a failed look-up apart.
func dnsWhy(err error) string {
	var d *net.DNSError
	switch {
	case errors.As(err, &d) && d.IsNotFound:
		return "there is no such name, or it has no address"
	case errors.As(err, &d) && d.IsTimeout:
		return "the name servers did not answer in time"
	}
	return "the name servers gave no answer"
}
