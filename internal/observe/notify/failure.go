package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"syscall"

	"github.com/wneessen/go-mail"
)

// ReportCondition is what a daily report is called among the alerts.
const ReportCondition = "daily_report"

// ErrAddress is that of an address that makes no channel.
var ErrAddress = errors.New("that is no address of a channel")

// Failure is why a message was not told. It holds neither the channel's address
// nor what the other side answered, which may quote it.
type Failure struct{ Why string }

func (f *Failure) Error() string { return f.Why }

func failed(format string, args ...any) error { return &Failure{fmt.Sprintf(format, args...)} }

// plainly says an error in our own words.
func plainly(err error) error {
	var own *Failure
	var dns *net.DNSError
	var errno syscall.Errno
	var proto *textproto.Error
	var sent *mail.SendError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.Is(err, context.Canceled):
		return failed("it was ended")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return failed("it did not answer in time")
	case errors.As(err, &dns):
		return failed("its name could not be looked up")
	case untrusted(err):
		return failed("its certificate is not to be trusted")
	case errors.As(err, &sent) && sent.ErrorCode() != 0:
		return failed("it answered %d", sent.ErrorCode())
	case errors.As(err, &proto):
		return failed("it answered %d", proto.Code)
	case errors.As(err, &errno):
		return failed("%s", errno.Error())
	}
	return failed("the connection failed")
}

func untrusted(err error) bool {
	var verify *tls.CertificateVerificationError
	var host x509.HostnameError
	var unknown x509.UnknownAuthorityError
	return errors.As(err, &verify) || errors.As(err, &host) || errors.As(err, &unknown)
}
