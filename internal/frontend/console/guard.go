package console

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
)

// maxForm bounds a form, in bytes: a reason of 2048 code points and what is
// hidden in it need far less.
const maxForm = 64 << 10

// policy lets a page load its own style, script and icon, send its own forms,
// and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guarded refuses what no browser of this machine's person sends: a host that
// is another name for this machine (a page of a stranger whose name was bent
// to 127.0.0.1), a form from another origin, a body that is too large.
func (s *Console) guarded(next http.Handler) http.Handler {
	other := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		// The origin of a form is only told under a policy that tells it.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		switch {
		case !s.ownHost(r):
			http.Error(w, "this is not a name of these pages: open them as "+s.base(), http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
			h.Set("Allow", "GET, HEAD, POST")
			http.Error(w, "pages are read, and forms are sent", http.StatusMethodNotAllowed)
		case r.Method == http.MethodPost && (other.Check(r) != nil || !sameOrigin(r)):
			http.Error(w, "this form did not come from these pages", http.StatusForbidden)
		case len(r.URL.RequestURI()) > 2048:
			http.Error(w, "the address is too long", http.StatusRequestURITooLong)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			next.ServeHTTP(w, r)
		}
	})
}

// sameOrigin says whether a form came from these very pages, as far as the
// browser tells: a page on another port of this machine is the same site, and
// not the same origin.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "" || origin == "http://"+r.Host
}

// ownHost says whether the Host header names these pages: localhost, an
// address of loopback, the address that was connected to, or the configured
// host, each with the port. A name that a stranger chose is none of these.
func (s *Console) ownHost(r *http.Request) bool {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = strings.Trim(r.Host, "[]"), "80"
	}
	if port != s.port {
		return false
	}
	if netaddr.IsLoopbackHost(strings.ToLower(host)) || (s.c.Host != "" && strings.EqualFold(host, s.c.Host)) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap() == localAddr(r)
}

// localAddr is this machine's side of the connection.
func localAddr(r *http.Request) netip.Addr {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip, _ := netip.AddrFromSlice(a.IP)
	return ip.Unmap()
}

// fromLoopback says whether the other side of the connection is this machine.
func fromLoopback(r *http.Request) bool {
	return netaddr.IsLoopbackAddrPort(r.RemoteAddr)
}

// onlyHere refuses whom another machine connected for.
func (s *Console) onlyHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fromLoopback(r) {
			http.Error(w, "the metrics are for this machine alone", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// areaKey is where a request's context has the area that it came through.
type areaKey struct{}

// area takes /k/NAME off a path and keeps NAME: whether it opens anything is
// for withSession to say.
func (s *Console) area(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, "/k/")
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		name, path, _ := strings.Cut(rest, "/")
		own := r.Clone(context.WithValue(r.Context(), areaKey{}, name))
		own.URL.Path, own.URL.RawPath = "/"+path, ""
		next.ServeHTTP(w, own)
	})
}
