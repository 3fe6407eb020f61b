package egress

import (
	"context"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
)

// hopByHop are the fields that speak about one connection (RFC 9110 section
// 7.6.1), or to a proxy, and those that the new message says by itself.
var hopByHop = names(
	"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Alt-Used", "Alt-Svc",
	"Content-Length", "Content-Encoding", "Accept-Encoding", "Host", "Expect",
	// What they say of the bytes does not hold of other bytes.
	"Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "Want-Digest", "Want-Content-Digest", "Want-Repr-Digest",
)

// misleading are request fields by which some servers answer for another
// method, path or client than the request's own, so that what was judged would
// not be what is done; and those that split an answer.
var misleading = names(
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Original-Url", "X-Original-Uri", "X-Rewrite-Url", "X-Original-Host", "X-Host",
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip",
	"Range", "If-Range", "X-Ms-Range",
)

// credentialParts are what the names of credential fields hold that
// fieldname.IsCredential does not know. They stand here and not there: what is
// taken out of a request for its name alone may be more than what is masked in
// answers, such as Access-Control-Allow-Credentials.
var credentialParts = [...]string{
	"api-key", "apikey", "access-key", "subscription-key", "auth-key", "auth-token", "access-token", "api-token", "security-token",
	"session-token", "id-token", "bearer", "secret", "password", "passwd", "credential", "authorization",
}

// passingTokens end as a credential does and are none: where a list goes on, and
// what a server gave against forged requests, which counts only beside a cookie.
var passingTokens = map[string]bool{
	"continuation-token": true, "x-continuation-token": true, "x-ms-continuation-token": true, "next-token": true, "x-next-token": true,
	"page-token": true, "x-page-token": true, "csrf-token": true, "x-csrf-token": true, "xsrf-token": true, "x-xsrf-token": true,
}

func names(list ...string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, n := range list {
		m[textproto.CanonicalMIMEHeaderKey(n)] = true
	}
	return m
}

// isCredential says whether a request field of that name carries a credential.
func isCredential(name string) bool {
	if fieldname.IsCredential(name) {
		return true
	}
	low := strings.ToLower(plainName(name))
	if strings.HasSuffix(low, "token") && !passingTokens[low] {
		return true
	}
	for _, part := range credentialParts {
		if strings.Contains(low, part) {
			return true
		}
	}
	return false
}

// plainName is a field's name as those servers read it that take "_" and "-"
// for one sign (RFC 3875 section 4.1.18).
func plainName(name string) string {
	return textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// connectionOnly says whether a field ends at this connection; named are those
// that the Connection field lists.
func connectionOnly(name string, named map[string]bool) bool {
	key := textproto.CanonicalMIMEHeaderKey(name)
	return hopByHop[key] || named[key] || strings.HasPrefix(key, "Proxy-")
}

// namedBy returns the fields that the Connection fields of h name.
func namedBy(h http.Header) map[string]bool {
	var named map[string]bool
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if named == nil {
				named = map[string]bool{}
			}
			named[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	return named
}

// outgoing is what of the client's header h goes to d. Left out are what belongs
// to this connection or speaks to a proxy; what would have the upstream do
// something else than what was judged (another method, another path); Range, so
// that an answer is read whole; and the agent's own credentials (D23):
// Authorization, Cookie, x-api-key, api-key, x-goog-api-key, private-token and
// every field whose name says so, but where d lets them pass, and then unread.
// The header in which d's own credential will stand never passes. The rest is
// redacted. h is not changed. The error is a RedactionError, or a
// DomainBlockedError where d refuses what would be masked.
func (p *Proxy) outgoing(d *domain.Domain, h http.Header) (http.Header, []redact.Finding, *holdfast.Error) {
	named := namedBy(h)
	out, own := make(http.Header, len(h)), http.Header{}
	for name, values := range h {
		key := plainName(name)
		switch {
		case connectionOnly(name, named), connectionOnly(key, named), misleading[key], strings.HasPrefix(key, "X-Forwarded-"), strings.HasPrefix(key, "Sec-Websocket-"):
		case d.Credential != nil && key == plainName(d.Credential.Header):
		case !isCredential(name):
			out[name] = append(out[name], values...)
		case d.AgentCredentials:
			own[name] = append(own[name], values...)
		}
	}
	found, err := p.cleanHeader(d, d.Request, &out)
	if err != nil {
		return nil, nil, err
	}
	for name, values := range own {
		out[name] = values
	}
	return out, found, nil
}

// cleanHeader redacts h as mode says.
func (p *Proxy) cleanHeader(d *domain.Domain, mode domain.Redaction, h *http.Header) ([]redact.Finding, *holdfast.Error) {
	if mode == domain.Off {
		return nil, nil
	}
	c, failed := p.cleaner(d)
	if failed != nil {
		return nil, failed
	}
	return p.headerBy(c, d, mode, h)
}

// headerBy is cleanHeader by a cleaner.
func (p *Proxy) headerBy(c cleaner, d *domain.Domain, mode domain.Redaction, h *http.Header) ([]redact.Finding, *holdfast.Error) {
	in := *h
	var clean http.Header
	var found []redact.Finding
	err := p.within(size(in), func() error {
		clean, found = c.header(in)
		return nil
	})
	if err != nil {
		return nil, redactionFailed(err)
	}
	if len(found) > 0 && mode == domain.Refuse {
		return nil, foundRefused(d, "the header", found)
	}
	*h = clean
	return found, nil
}

func size(h http.Header) int {
	n := 0
	for name, values := range h {
		n += len(name)
		for _, v := range values {
			n += len(v)
		}
	}
	return n
}

// credential adds the tenant's credential for d, if it names one, to the header
// of a request that is about to be sent. Nothing of its value is in the error.
func (p *Proxy) credential(ctx context.Context, d *domain.Domain, h http.Header) error {
	c := d.Credential
	if c == nil {
		return nil
	}
	var value holdfast.Secret
	var err error
	if p.cfg.Credential != nil {
		value, err = p.cfg.Credential(ctx, d)
	}
	text := value.Reveal()
	if err != nil || text == "" || strings.ContainsAny(text, "\r\n\x00") {
		return &holdfast.Error{
			Kind: holdfast.KindForward, Rule: "egress/credential", Err: holdfast.ErrNotStarted,
			Why:  "the credential of " + d.Name + " could not be had",
			Hint: "nothing was sent; `holdfast status` says why",
		}
	}
	h.Del(c.Header)
	h.Set(c.Header, c.Prefix+text)
	return nil
}

// sentCredential is the value that credential put into h, without its prefix.
func sentCredential(d *domain.Domain, h http.Header) string {
	if d.Credential == nil {
		return ""
	}
	return strings.TrimPrefix(h.Get(d.Credential.Header), d.Credential.Prefix)
}
