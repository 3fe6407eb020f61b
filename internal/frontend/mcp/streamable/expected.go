package streamable

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
)

// expected refuses what came by a name that is not this endpoint's, or from a
// web page that is not: a browser would carry a foreign page's request here.
func (h *Handler) expected(r *http.Request) error {
	if !h.named(r, r.Host) {
		return &httpError{status: http.StatusForbidden, why: fmt.Sprintf("the host %.100q is not served here", r.Host),
			hint: "use the address that holdfast printed"}
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	u, err := url.Parse(origins[0])
	if len(origins) > 1 || err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || !h.named(r, u.Host) {
		return &httpError{status: http.StatusForbidden, why: fmt.Sprintf("the origin %.100q is not let in", origins[0])}
	}
	return nil
}

// named says whether a host with its port may stand for this endpoint: a name
// of loopback, the address that the connection came in by, or one of Hosts.
func (h *Handler) named(r *http.Request, hostport string) bool {
	host := strings.ToLower(strings.TrimSuffix(bareHost(hostport), "."))
	if netaddr.IsLoopbackHost(host) {
		return true
	}
	for _, allowed := range h.Hosts {
		if host != "" && host == strings.ToLower(allowed) {
			return true
		}
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.AddrPort().Addr().Unmap() == ip.Unmap()
}

// bareHost returns a host without port and brackets.
func bareHost(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}

// typed refuses a POST that is not JSON, or whose sender does not take both
// forms of the answer.
func typed(r *http.Request) error {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if err != nil || kind != "application/json" || (charset != "" && charset != "utf-8") || len(r.Header.Values("Content-Type")) > 1 {
		return &httpError{status: http.StatusUnsupportedMediaType, why: "the Content-Type is not application/json"}
	}
	if r.Header.Get("Content-Encoding") != "" {
		return &httpError{status: http.StatusUnsupportedMediaType, why: "an encoded body is not taken", hint: "send it as it is"}
	}
	if !accepts(r, "application/json") || !accepts(r, "text/event-stream") {
		return &httpError{status: http.StatusNotAcceptable, why: "Accept does not name both application/json and text/event-stream"}
	}
	return nil
}

// accepts says whether the client takes a media type.
func accepts(r *http.Request, kind string) bool {
	family, _, _ := strings.Cut(kind, "/")
	for _, line := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case kind, family + "/*", "*/*":
				return true
			}
		}
	}
	return false
}

// single returns the only value of a header, "" where it is absent.
func single(r *http.Request, name string) (string, error) {
	vs := r.Header.Values(name)
	if len(vs) > 1 {
		return "", bad(mcp.CodeHeaders, "the header "+name+" stands there more than once", "")
	}
	return r.Header.Get(name), nil
}

// loan is memory that is counted while a body is in the front's hands.
type loan struct {
	h     *Handler
	group *load
	n     int64
}

// take counts more, if there is room.
func (l *loan) take(n int64) bool {
	if !l.group.reading.take(int(n)) {
		return false
	}
	if l.h.reading.Add(n) > maxReading {
		l.h.reading.Add(-n)
		l.group.reading.give(int(n))
		return false
	}
	l.n += n
	return true
}

// back gives everything back; once is enough.
func (l *loan) back() {
	l.h.reading.Add(-l.n)
	l.group.reading.give(int(l.n))
	l.n = 0
}

// body reads the request's body, bounded in size, in time, and together with
// all others that are being read.
func (g *guest) body(l *loan) ([]byte, error) {
	h := g.h
	tooLarge := &httpError{status: http.StatusRequestEntityTooLarge, why: fmt.Sprintf("the body is longer than %d bytes", h.MaxBody)}
	if g.r.ContentLength > h.MaxBody {
		return nil, tooLarge
	}
	in := io.LimitReader(g.r.Body, h.MaxBody+1)
	var body []byte
	for {
		if len(body) == cap(body) {
			grown := max(4<<10, 2*cap(body))
			if !l.take(int64(grown - cap(body))) {
				return nil, &httpError{status: http.StatusServiceUnavailable, why: "busy: too many large requests are being read", later: true}
			}
			body = append(make([]byte, 0, grown), body...)
		}
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > h.MaxBody:
			return nil, tooLarge
		case errors.Is(err, io.EOF):
			// What is read behind it only tells that the client lives.
			_ = http.NewResponseController(g.w).SetReadDeadline(time.Time{})
			return body, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, &httpError{status: http.StatusRequestTimeout, why: "the body took too long"}
		case err != nil:
			return nil, bad(errorcode.Refused, "the body ended too early", "")
		}
	}
}
