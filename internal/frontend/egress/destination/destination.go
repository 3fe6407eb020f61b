// Package destination reads where a request goes. All names that the client gave for
// the server must be the same (D25a).
package destination

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/wire"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// Misdirected is the letter to a client that names more than one server
// (D25a).
func Misdirected(why string) *holdfast.Error {
	return &holdfast.Error{Kind: holdfast.KindMisdirected, Gate: holdfast.K2, Why: why,
		Hint: "CONNECT, the name in the TLS handshake and the Host of every request must be the same, with the same port"}
}

// Server describes the server to which a connection leads.
type Server struct {
	// Host is the zero Host where none was said.
	Host domain.Host
	Port uint16
	TLS  bool
	// Proxied says that the client knows that it speaks to a proxy.
	Proxied bool
	// Misnamed is why every request is refused, nil for none.
	Misnamed *holdfast.Error
}

// Read reads where a request goes and what it asks there. Every name that the
// client gave for the server must be the same: CONNECT's, the TLS handshake's,
// Host or :authority, and the one in an absolute target, ports included. What
// could be read of the request stands in the Ask beside an error
// (ValidationError or MisdirectedError), for the record.
func Read(r *http.Request, ch Server, h *wire.Head) (domain.Ask, *holdfast.Error) {
	a := domain.Ask{Method: r.Method, Origin: domain.Origin{TLS: ch.TLS, Host: ch.Host, Port: ch.Port}}
	switch {
	case h != nil && h.Mistake != nil:
		a.Method = "" // wire's own
		return a, Letter(h.Mistake)
	case ch.Misnamed != nil:
		return a, ch.Misnamed
	case r.Method == http.MethodConnect:
		return a, wire.Malformed("a CONNECT inside a connection that leads to a server already")
	case h != nil && h.Upgrade:
		a.Upgrade = "websocket"
	}
	target, names, err := spoken(r, h)
	if err != nil {
		return a, err
	}
	if ch.Proxied {
		return absolute(a, target, names)
	}
	return toServer(a, ch, target, names)
}

// spoken is a request's target and what its Host and :authority say, as they
// stood.
func spoken(r *http.Request, h *wire.Head) (target string, names []string, err *holdfast.Error) {
	if h != nil {
		if h.Hosts > 0 {
			names = []string{h.Host}
		}
		return h.Target, names, nil
	}
	if len(r.Trailer) > 0 {
		return "", nil, wire.Malformed("it announces a trailer, which is not passed on")
	}
	// HTTP/2: r.Host is :authority, or Host where there is none; net/http
	// leaves a Host beside an :authority among the fields.
	return r.RequestURI, append([]string{r.Host}, r.Header["Host"]...), nil
}

// absolute reads a request to a proxy, "GET http://host/path".
func absolute(a domain.Ask, target string, names []string) (domain.Ask, *holdfast.Error) {
	if strings.HasPrefix(target, "/") || target == "*" {
		return a, &holdfast.Error{Kind: holdfast.KindValidation, Gate: holdfast.K1, Why: "the request is to the proxy itself, which serves nothing",
			Hint: "this port is an HTTP proxy: set it as HTTP_PROXY and HTTPS_PROXY"}
	}
	var err error
	if a.Origin, a.Target, err = domain.ParseURL(target); err != nil {
		return a, Letter(err)
	}
	return a, agree(a.Origin, names)
}

// toServer reads a request on a connection that leads to one server.
func toServer(a domain.Ask, ch Server, target string, names []string) (domain.Ask, *holdfast.Error) {
	if len(names) == 0 {
		return a, Misdirected("the request has no Host")
	}
	host, port, given, err := domain.ParseAuthority(names[0])
	if err != nil {
		return a, Letter(err)
	}
	if !given {
		port = schemePort(ch.TLS)
	}
	said := domain.Origin{TLS: ch.TLS, Host: host, Port: port}
	switch {
	case ch.Host != (domain.Host{}) && host != ch.Host:
		return a, Misdirected(fmt.Sprintf("the connection is to %s, and the request's Host is %s", ch.Host, host))
	case port != ch.Port:
		return a, Misdirected(fmt.Sprintf("the connection is to port %d, and the request's Host names port %d", ch.Port, port))
	}
	a.Origin = said
	if !strings.HasPrefix(target, "/") {
		return whole(a, target, names)
	}
	scheme := "http://"
	if ch.TLS {
		scheme = "https://"
	}
	origin, path, err := domain.ParseURL(scheme + names[0] + target)
	if err != nil {
		return a, Letter(err)
	}
	if origin != said {
		return a, Misdirected("the request's Host and its target cannot be read in one way only")
	}
	a.Target = path
	return a, agree(said, names)
}

// whole reads an absolute target on a connection to a server: it must say
// nothing new.
func whole(a domain.Ask, target string, names []string) (domain.Ask, *holdfast.Error) {
	origin, path, err := domain.ParseURL(target)
	if err != nil {
		return a, Letter(err)
	}
	if origin != a.Origin {
		return a, Misdirected(fmt.Sprintf("the connection is to %s, and the request's target names %s", a.Origin.Host, origin.Host))
	}
	a.Target = path
	return a, agree(origin, names)
}

// agree holds every name that came as Host or :authority against o.
func agree(o domain.Origin, names []string) *holdfast.Error {
	for _, n := range names {
		host, port, given, err := domain.ParseAuthority(n)
		if err != nil {
			return Letter(err)
		}
		if !given {
			port = schemePort(o.TLS)
		}
		if host != o.Host || port != o.Port {
			return Misdirected(fmt.Sprintf("the request is to %s port %d, and its Host says %s port %d", o.Host, o.Port, host, port))
		}
	}
	return nil
}

// Letter is err as the *holdfast.Error that it is, or a ValidationError around
// it.
func Letter(err error) *holdfast.Error {
	if he, ok := errors.AsType[*holdfast.Error](err); ok {
		return he
	}
	return &holdfast.Error{Kind: holdfast.KindValidation, Gate: holdfast.K1, Why: "the request could not be read", Err: err}
}

// schemePort is the port that is meant where none is named.
func schemePort(tls bool) uint16 {
	if tls {
		return 443
	}
	return 80
}
