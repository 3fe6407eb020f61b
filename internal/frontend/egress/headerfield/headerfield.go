// Package headerfield tells which fields of a request's header go to a server, which
// carry credentials, and who says that they ask.
package headerfield

import (
	"net/http"
	"net/textproto"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/policy/domain"
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

// passingTokens end as a credential does and are none: where a list continues.
var passingTokens = map[string]bool{
	"continuation-token": true, "x-continuation-token": true, "x-ms-continuation-token": true, "next-token": true, "x-next-token": true,
}

func names(list ...string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, n := range list {
		m[textproto.CanonicalMIMEHeaderKey(n)] = true
	}
	return m
}

// IsCredential says whether a request field of that name carries a credential.
func IsCredential(name string) bool {
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

// ConnectionOnly says whether a field ends at this connection; named are those
// that the Connection field lists.
func ConnectionOnly(name string, named map[string]bool) bool {
	key := textproto.CanonicalMIMEHeaderKey(name)
	return hopByHop[key] || named[key] || strings.HasPrefix(key, "Proxy-")
}

// NamedByConnection returns the fields that the Connection fields of h name.
func NamedByConnection(h http.Header) map[string]bool {
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

// Select returns the fields of a request that go to d, and the agent's own
// credentials where they do. The header in which d's own credential will stand goes
// nowhere.
func Select(d *domain.Domain, h http.Header) (out, own http.Header) {
	named := NamedByConnection(h)
	out, own = make(http.Header, len(h)), http.Header{}
	for name, values := range h {
		key := plainName(name)
		switch {
		case ConnectionOnly(name, named), ConnectionOnly(key, named), misleading[key],
			strings.HasPrefix(key, "X-Forwarded-"), strings.HasPrefix(key, "Sec-Websocket-"):
		case d.Credential != nil && key == plainName(d.Credential.Header):
		case !IsCredential(name):
			out[name] = append(out[name], values...)
		case d.AgentCredentials:
			own[name] = append(own[name], values...)
		}
	}
	return out, own
}
