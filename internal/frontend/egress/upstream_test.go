package egress

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/upstream"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// get asks d at o for "/" without a front.
func (x *outside) get(d *domain.Domain, o domain.Origin, path string) (string, error) {
	r, _ := http.NewRequest("GET", "http://x"+path, nil)
	resp, err := x.p.out.upstreams.Send(x.t.Context(), d, o, r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.Proto + " " + string(b), err
}

func hello(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.Host) }

func TestEgress_Bypass13_NumericHostsAreNoAddresses(t *testing.T) {
	for _, s := range []string{"127.1", "0x7f.1", "2130706433", "0177.0.0.1"} {
		if h, err := domain.ParseHost(s); err == nil {
			t.Errorf("%q is read as the host %v", s, h)
		}
	}
	// A name whose address is loopback is refused by its address.
	x := newOutside(t, redact.Options{})
	x.dns.say("loop.example.", "127.0.0.1")
	d, o := x.row(domain.Domain{Name: "loop.example"}, true, 443)
	if _, err := x.get(d, o, "/"); holdfast.KindOf(err) != holdfast.KindDomainBlocked || !errors.Is(err, holdfast.ErrNotStarted) {
		t.Errorf("err = %v", err)
	}
}

func TestEgress_Bypass14_NoSpecialAddressIsDialled(t *testing.T) {
	x := newOutside(t, redact.Options{})
	d, o := x.row(domain.Domain{Name: "a.example"}, true, 443)
	for _, a := range []string{
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "127.0.0.1", "0.0.0.0", "100.64.0.1", "192.0.0.1", "198.18.0.1", "240.0.0.1", "224.0.0.1",
		"255.255.255.255", "169.254.169.254", "::1", "::", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1",
		"2002:7f00:1::1", "2001::1", "fec0::1", "fc00::1", "fd00:ec2::254", "fe80::1", "ff02::1", "2001:db8::1",
	} {
		x.dns.say("a.example.", a)
		_, err := x.get(d, o, "/")
		var e *holdfast.Error
		if !errors.As(err, &e) || e.Kind != holdfast.KindDomainBlocked || e.Rule != "egress/address" || !errors.Is(err, holdfast.ErrNotStarted) {
			t.Errorf("%s: err = %v", a, err)
		}
	}
	// The twin: what the row names may be private.
	d, o = x.upstream(domain.Domain{}, true, hello)
	if got, err := x.get(d, o, "/"); err != nil || !strings.Contains(got, "hello example.com") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestEgress_Bypass16_MetadataIsNotReached(t *testing.T) {
	x := newOutside(t, redact.Options{})
	for _, a := range []string{"169.254.169.254", "fd00:ec2::254", "169.254.170.2", "100.100.100.200"} {
		x.dns.say("metadata.google.internal.", a)
		d, o := x.row(domain.Domain{Name: "metadata.google.internal"}, false, 80)
		if _, err := x.get(d, o, "/latest/meta-data/"); holdfast.KindOf(err) != holdfast.KindDomainBlocked {
			t.Errorf("%s by name: %v", a, err)
		}
	}
}

func TestEgress_Bypass17_OnlyAddressesAreAskedForAndOnlyOnce(t *testing.T) {
	x := newOutside(t, redact.Options{})
	d, o := x.row(domain.Domain{Name: "a.example"}, true, 443)
	x.dns.say("a.example.", "10.0.0.1")
	_, _ = x.get(d, o, "/")
	got := x.dns.questions()
	slices.Sort(got)
	if want := []string{"A a.example.", "AAAA a.example."}; !slices.Equal(slices.Compact(got), want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	// A row with addresses asks nobody.
	before := len(x.dns.questions())
	d, o = x.upstream(domain.Domain{}, true, hello)
	if _, err := x.get(d, o, "/"); err != nil || len(x.dns.questions()) != before {
		t.Errorf("err %v, asked %q", err, x.dns.questions()[before:])
	}
}

func TestEgress_Bypass18_LocalNamesAndSearchListsLeadNowhere(t *testing.T) {
	x := newOutside(t, redact.Options{})
	for _, name := range []string{"localhost", "ip6-localhost", "intranet"} {
		if _, err := domain.NewTable([]domain.Domain{{Name: name, Source: "test:1"}}); err == nil {
			t.Errorf("%s can be listed", name)
		}
		// Nor would it lead anywhere.
		h, err := domain.ParseHost(name)
		if err != nil {
			continue
		}
		if got, err := x.get(&domain.Domain{Name: name}, domain.Origin{TLS: true, Host: h, Port: 443}, "/"); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, q := range x.dns.questions() {
		if !strings.HasSuffix(q, " localhost.") && !strings.HasSuffix(q, " ip6-localhost.") && !strings.HasSuffix(q, " intranet.") {
			t.Errorf("asked %q: a search list was used", q)
		}
	}
}

func TestEgress_Bypass19_NoAltSvcAndNoHTTP3(t *testing.T) {
	x := newOutside(t, redact.Options{})
	d, o := x.upstream(domain.Domain{}, true, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", `h3=":443"; ma=86400`)
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header().Set("Connection", "X-Internal")
		w.Header().Set("X-Internal", "1")
		w.Header().Set("X-Kept", "1")
		_, _ = io.WriteString(w, r.Proto)
	})
	resp, text, err := do(t, "GET", x.front(d, o).URL, nil, nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v %q", err, text)
	}
	for _, name := range []string{"Alt-Svc", "Proxy-Authenticate", "Trailer"} {
		if resp.Header.Get(name) != "" {
			t.Errorf("%s passes", name)
		}
	}
	if resp.Header.Get("X-Kept") != "1" {
		t.Error("an ordinary field is lost")
	}
	if text != "HTTP/2.0" {
		t.Errorf("the upstream was spoken to in %s, want HTTP/2 by ALPN", text)
	}
}

func TestEgress_Bypass25_ProxyVariablesOfTheDaemonAreNotRead(t *testing.T) {
	dead := "http://127.0.0.1:1"
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, dead)
	}
	x := newOutside(t, redact.Options{})
	for _, tls := range []bool{true, false} {
		d, o := x.upstream(domain.Domain{}, tls, hello)
		if got, err := x.get(d, o, "/"); err != nil {
			t.Errorf("tls %v: %q, %v", tls, got, err)
		}
	}
}

func TestEgress_Bypass24_RedirectsAreTheClientsToFollow(t *testing.T) {
	x := newOutside(t, redact.Options{})
	var asked []string
	var mu sync.Mutex
	d, o := x.upstream(domain.Domain{}, true, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		http.Redirect(w, r, "http://169.254.169.254/latest/", http.StatusFound)
	})
	resp, _, err := do(t, "GET", x.front(d, o).URL+"/start", nil, nil)
	if err != nil || resp.StatusCode != 302 || resp.Header.Get("Location") != "http://169.254.169.254/latest/" {
		t.Fatalf("%v %v", resp, err)
	}
	if !slices.Equal(asked, []string{"/start"}) {
		t.Errorf("asked %q", asked)
	}
}

func TestEgress_Error_WhatKeptAnAnswerFromComing(t *testing.T) {
	x := newOutside(t, redact.Options{})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	loop := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	dead, deadAt := x.row(domain.Domain{Name: "example.com", Addresses: loop}, true, portOf(t, closed.Addr()))
	tlsRow, tlsAt := x.upstream(domain.Domain{}, true, hello)
	untrusted, other := *tlsRow, *tlsRow
	untrusted.Roots = ""
	otherAt := tlsAt
	otherAt.Host, _ = domain.ParseHost("other.test")
	plain, plainAt := x.raw(domain.Domain{}, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1024))
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
	})
	plainAt.TLS = true
	silent, silentAt := x.raw(domain.Domain{}, answering(""))
	noise, noiseAt := x.raw(domain.Domain{}, answering("SSH-2.0-OpenSSH_9 secret words\r\n\r\n"))
	nowhere, nowhereAt := x.row(domain.Domain{Name: "nowhere.example"}, true, 443)
	for name, c := range map[string]struct {
		d       *domain.Domain
		o       domain.Origin
		why     string
		started bool
	}{
		"refused":     {dead, deadAt, "refused the connection", false},
		"untrusted":   {&untrusted, tlsAt, "not trusted", false},
		"wrong name":  {&other, otherAt, "for another name", false},
		"no TLS":      {plain, plainAt, "does not speak TLS", false},
		"no answer":   {silent, silentAt, "", true},
		"no HTTP":     {noise, noiseAt, "not HTTP", true},
		"no such one": {nowhere, nowhereAt, "no such name", false},
	} {
		_, err := x.get(c.d, c.o, "/")
		var e *holdfast.Error
		if !errors.As(err, &e) || e.Kind != holdfast.KindForward || !strings.Contains(e.Why, c.why) || e.Hint == "" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Contains(e.Why, "secret words") {
			t.Errorf("%s: the upstream's own words stand in %q", name, e.Why)
		}
		if errors.Is(err, holdfast.ErrNotStarted) == c.started {
			t.Errorf("%s: not started is %v", name, !c.started)
		}
	}
}

func TestEgress_Failure6_NoFirstByte(t *testing.T) {
	// In limit a request has left, also on a machine that is slow.
	const limit = time.Second
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		x := newOutside(t, redact.Options{})
		hold := make(chan struct{})
		defer close(hold)
		d, o := x.upstream(domain.Domain{FirstByte: limit}, true, func(http.ResponseWriter, *http.Request) { <-hold })
		_, err := x.get(d, o, "/")
		if holdfast.KindOf(err) != holdfast.KindTimeout || errors.Is(err, holdfast.ErrNotStarted) {
			t.Fatalf("err = %v", err)
		}
	})
	// The twin: the limit is for the first byte, not for the last.
	t.Run("none but the first", func(t *testing.T) {
		t.Parallel()
		x := newOutside(t, redact.Options{})
		d, o := x.upstream(domain.Domain{FirstByte: limit}, true, func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			time.Sleep(limit * 6 / 5)
			_, _ = io.WriteString(w, "late")
		})
		if got, err := x.get(d, o, "/"); err != nil || !strings.HasSuffix(got, "late") {
			t.Errorf("a slow body: %q, %v", got, err)
		}
	})
}

func TestEgress_ConnectionsAreNotSharedBetweenTenants(t *testing.T) {
	x := newOutside(t, redact.Options{})
	var mu sync.Mutex
	seen := map[string]string{}
	d, o := x.upstream(domain.Domain{}, true, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path] = r.RemoteAddr
	})
	for _, tenant := range []string{"a", "b", "a"} {
		r, _ := http.NewRequest("GET", "http://x/"+tenant+itoa(len(seen)), nil)
		resp, err := x.p.out.upstreams.Send(upstream.WithPool(t.Context(), tenant), d, o, r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if seen["/a0"] != seen["/a2"] || seen["/a0"] == seen["/b1"] {
		t.Errorf("connections %v", seen)
	}
}
