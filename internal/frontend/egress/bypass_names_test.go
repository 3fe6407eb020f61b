package egress

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

// last fails unless the ledger holds n crossings and the last is of the kind
// and the boundary; an empty kind is one that was allowed.
func (w *world) last(n int, boundary string, kind holdfast.Kind) {
	w.t.Helper()
	es := w.entries(n)
	if e := es[n-1]; e.Boundary != boundary || e.ErrorKind != kind {
		w.t.Fatalf("the ledger says %s %q %q, want %s %q", e.Boundary, e.ErrorKind, e.Why, boundary, kind)
	}
}

func TestEgress_Bypass01_TheServerIsFoundByNameNotByTheAddressConnectedTo(t *testing.T) {
	w := newEgress(t, setup{})
	// The client dials whatever it likes; what it dialled was the proxy, and
	// the name in its ClientHello is all that says where it goes.
	c := tls.Client(w.dial(w.clear), &tls.Config{ServerName: "good.test", RootCAs: w.roots})
	w.passed(say(c, get(w.at("good.test"), "/")))
	if got := w.up.requests(); len(got) != 1 || got[0].Host != w.at("good.test") {
		t.Fatalf("the server saw %+v", got)
	}
	w.last(1, "egress/good.test", "")
	// A name that is not listed is answered inside TLS, where the client sees why.
	c = tls.Client(w.dial(w.clear), &tls.Config{ServerName: "evil.test", RootCAs: w.roots})
	w.refused(say(c, get(w.at("evil.test"), "/")), http.StatusForbidden)
	w.last(2, "egress/evil.test", holdfast.KindDomainBlocked)
}

func TestEgress_Bypass02_DomainFronting(t *testing.T) {
	for _, host := range []string{"other.test", "evil.test"} {
		t.Run(host, func(t *testing.T) {
			w := newEgress(t, setup{})
			c := tls.Client(w.dial(w.clear), &tls.Config{ServerName: "good.test", RootCAs: w.roots})
			w.refused(say(c, get(w.at(host), "/")), http.StatusMisdirectedRequest)
			w.untouched()
			w.last(1, "egress/good.test", holdfast.KindMisdirected)
			w.passed(say(tls.Client(w.dial(w.clear), &tls.Config{ServerName: "good.test", RootCAs: w.roots}), get(w.at("good.test"), "/")))
		})
	}
}

func TestEgress_Bypass03_ConnectAllowedAndAnotherNameInside(t *testing.T) {
	w := newEgress(t, setup{})
	// Both the SNI and the Host are another's: it is told inside its own TLS.
	c, err := w.tunnel(w.at("good.test"), "evil.test")
	w.must(err)
	w.refused(say(c, get(w.at("evil.test"), "/")), http.StatusMisdirectedRequest)
	// The SNI alone.
	c, err = w.tunnel(w.at("good.test"), "other.test")
	w.must(err)
	w.refused(say(c, get(w.at("good.test"), "/")), http.StatusMisdirectedRequest)
	// The Host alone, and the Host's port alone.
	for _, host := range []string{w.at("other.test"), fmt.Sprintf("good.test:%d", w.up.port+1), "good.test"} {
		c, err = w.tunnel(w.at("good.test"), "good.test")
		w.must(err)
		w.refused(say(c, get(host, "/")), http.StatusMisdirectedRequest)
	}
	w.untouched()
	w.last(5, "egress/good.test", holdfast.KindMisdirected)
	c, err = w.tunnel(w.at("good.test"), "good.test")
	w.must(err)
	w.passed(say(c, get(w.at("good.test"), "/")))
	w.last(6, "egress/good.test", "")
}

func TestEgress_Bypass04_ASecondRequestWithAnotherHost(t *testing.T) {
	w := newEgress(t, setup{})
	c, err := w.tunnel(w.at("good.test"), "good.test")
	w.must(err)
	b := bufio.NewReader(c)
	for _, r := range []struct {
		host   string
		status int
	}{{w.at("good.test"), 200}, {w.at("good.test"), 200}, {w.at("other.test"), 421}, {w.at("good.test"), 200}} {
		io.WriteString(c, get(r.host, "/"))
		got := hear(b, "GET")
		if got == nil || got.StatusCode != r.status {
			t.Fatalf("%s: %+v, want %d", r.host, got, r.status)
		}
	}
	if n := len(w.up.requests()); n != 3 {
		t.Fatalf("the server saw %d requests, want 3", n)
	}
	w.entries(4)
}

func TestEgress_Bypass04_PipelinedRequestsAreJudgedOneByOne(t *testing.T) {
	w := newEgress(t, setup{})
	c, err := w.tunnel(w.at("good.test"), "good.test")
	w.must(err)
	io.WriteString(c, get(w.at("good.test"), "/1")+get(w.at("other.test"), "/2")+get(w.at("good.test"), "/3"))
	b := bufio.NewReader(c)
	for _, want := range []int{200, 421, 200} {
		if got := hear(b, "GET"); got == nil || got.StatusCode != want {
			t.Fatalf("%+v, want %d", got, want)
		}
	}
	w.entries(3)
}

func TestEgress_Bypass04_HTTP2AuthorityAndHost(t *testing.T) {
	w := newEgress(t, setup{})
	do := func(authority, host string) int {
		t.Helper()
		c, err := w.tunnel(w.at("good.test"), "good.test", "h2")
		w.must(err)
		if c.ConnectionState().NegotiatedProtocol != "h2" {
			t.Fatal("the proxy does not speak HTTP/2")
		}
		return h2get(t, c, authority, host)
	}
	if got := do(w.at("good.test"), ""); got != 200 {
		t.Fatalf("a request over HTTP/2 got %d", got)
	}
	if got := do(w.at("good.test"), w.at("good.test")); got != 200 {
		t.Fatalf("a Host that agrees got %d", got)
	}
	for _, c := range [][2]string{{w.at("good.test"), w.at("other.test")}, {w.at("other.test"), ""}, {w.at("other.test"), w.at("good.test")}, {w.at("evil.test"), ""}} {
		if got := do(c[0], c[1]); got != 421 {
			t.Errorf(":authority %s and Host %s got %d, want 421", c[0], c[1], got)
		}
	}
	if n := len(w.up.requests()); n != 2 {
		t.Fatalf("the server saw %d requests, want 2", n)
	}
	w.entries(6)
}

func TestEgress_Bypass05_AbsoluteFormAndHost(t *testing.T) {
	w := newEgress(t, setup{})
	at := fmt.Sprintf("plain.test:%d", w.plain.port)
	ask := func(target, host string) *reply {
		return say(w.dial(w.explicit), "GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
	}
	w.passed(ask("http://"+at+"/", at))
	w.refused(ask("http://"+at+"/", "evil.test"), 421)
	w.refused(ask("http://"+at+"/", "plain.test"), 421) // another port
	w.refused(ask("http://evil.test/", at), 421)
	w.refused(ask("http://evil.test/", "evil.test"), 403)
	w.refused(ask("/", at), 400)
	if n := len(w.plain.requests()); n != 1 {
		t.Fatalf("the server saw %d requests, want 1", n)
	}
	w.entries(6)
	// In a tunnel too.
	c, err := w.tunnel(w.at("good.test"), "good.test")
	w.must(err)
	w.refused(say(c, "GET https://"+w.at("other.test")+"/ HTTP/1.1\r\nHost: "+w.at("good.test")+"\r\n\r\n"), 421)
	c, err = w.tunnel(w.at("good.test"), "good.test")
	w.must(err)
	w.passed(say(c, "GET https://"+w.at("good.test")+"/ HTTP/1.1\r\nHost: "+w.at("good.test")+"\r\n\r\n"))
}

// badConnects are what a CONNECT names that must not be read as good.test.
func TestEgress_Bypass06_07_08_09_10_11_NamesInAConnect(t *testing.T) {
	w := newEgress(t, setup{})
	port := fmt.Sprint(w.up.port)
	n := 0
	for _, c := range []struct {
		to     string
		status int
	}{
		{"[good.test]:" + port, 400},
		{"evil.test\x00.good.test:" + port, 400},
		{"evil.test%00.good.test:" + port, 400},
		{"evil.test%2f.good.test:" + port, 400},
		{"evil.test\t.good.test:" + port, 400},
		{"evil.test\r.good.test:" + port, 400},
		{"good..test:" + port, 400},
		{".good.test:" + port, 400},
		{strings.Repeat("a.", 130) + "test:" + port, 400},
		{"evil.test@good.test:" + port, 400},
		{"good.test#@evil.test:" + port, 400},
		{"good.test/:" + port, 400},
		{"good.test\\:" + port, 400},
		{"good.test:0" + port, 400},
		{"good.test:", 400},
		{"good.test", 400},
		{"http://" + w.at("good.test"), 400},
		{"127.1:" + port, 400},
		{"0x7f.1:" + port, 400},
		{"2130706433:" + port, 400},
		{"0177.0.0.1:" + port, 400},
		{"xn--pple-43d.com:" + port, 403},
		{"notgood.test:" + port, 403},
		{"good.test.evil.test:" + port, 403},
		{"wild.test:" + port, 403},
		{"xwild.test:" + port, 403},
		{"[::1]:" + port, 403},
		{"[::ffff:127.0.0.2]:" + port, 403},
	} {
		n++
		got := say(w.dial(w.explicit), "CONNECT "+c.to+" HTTP/1.1\r\nHost: "+c.to+"\r\n\r\n")
		if got == nil || got.StatusCode != c.status {
			t.Fatalf("CONNECT %q: %+v, want %d", c.to, got, c.status)
		}
		w.refused(got, c.status)
	}
	w.untouched()
	w.entries(n)
}

func TestEgress_Bypass08_CaseAndTrailingDotAreTheSameName(t *testing.T) {
	w := newEgress(t, setup{})
	for _, name := range []string{"GOOD.Test", "good.test."} {
		c, err := w.tunnel(w.at(name), "good.test")
		w.must(err)
		w.passed(say(c, get(w.at(name), "/")))
	}
	for _, r := range w.up.requests() {
		if r.Host != w.at("good.test") {
			t.Errorf("the server saw the Host %q", r.Host)
		}
	}
	for _, e := range w.entries(2) {
		if e.Boundary != "egress/good.test" {
			t.Errorf("the ledger says %s", e.Boundary)
		}
	}
}

func TestEgress_Bypass09_10_InternationalNamesInAURL(t *testing.T) {
	w := newEgress(t, setup{})
	n := 0
	for _, host := range []string{"①②⑦.⓪.⓪.①", "ｇood。test", "go\u00adod.test", "gооd.test"} {
		n++
		// Bytes beyond ASCII are no target; percent-encoded they are no host.
		got := say(w.dial(w.explicit), "GET http://"+host+"/ HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		w.refused(got, 400)
		n++
		got = say(w.dial(w.explicit), "GET http://"+url.PathEscape(host)+"/ HTTP/1.1\r\nHost: good.test\r\n\r\n")
		w.refused(got, 400)
	}
	w.untouched()
	w.entries(n)
	c, err := w.tunnel(fmt.Sprintf("127.0.0.1:%d", w.up.port), "127.0.0.1")
	w.must(err)
	w.passed(say(c, get(fmt.Sprintf("127.0.0.1:%d", w.up.port), "/")))
}

func TestEgress_Bypass11_UserInfoAndFragment(t *testing.T) {
	w := newEgress(t, setup{})
	at := fmt.Sprintf("plain.test:%d", w.plain.port)
	for _, target := range []string{"http://" + at + "@evil.test/", "http://a:b@" + at + "/", "http://" + at + "/#@evil.test", "http://" + at + "\\@evil.test/",
		"http:///" + at, "http:" + at, "ftp://" + at + "/", "gopher://" + at + "/", "file:///etc/passwd"} {
		got := say(w.dial(w.explicit), "GET "+target+" HTTP/1.1\r\nHost: "+at+"\r\n\r\n")
		if got == nil || got.StatusCode != 400 {
			t.Errorf("%s: %+v", target, got)
		}
	}
	w.untouched()
	w.passed(say(w.dial(w.explicit), "GET http://"+at+"/ HTTP/1.1\r\nHost: "+at+"\r\n\r\n"))
}

func TestEgress_Bypass20_ConnectToOddPortsAndToTheProxyItself(t *testing.T) {
	w := newEgress(t, setup{})
	_, own, err := net.SplitHostPort(w.explicit)
	w.must(err)
	n := 0
	for _, to := range []string{"good.test:22", "good.test:25", "good.test:6379", "good.test:443", "127.0.0.1:" + own, "localhost:" + own, "[::1]:" + own, "0.0.0.0:" + own} {
		n++
		w.refused(say(w.dial(w.explicit), "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\n"), 403)
	}
	w.entries(n)
	w.untouched()
	w.connect(w.at("good.test"))
}

func TestEgress_Bypass20_NestedConnect(t *testing.T) {
	w := newEgress(t, setup{})
	nested := "CONNECT " + w.at("good.test") + " HTTP/1.1\r\nHost: " + w.at("good.test") + "\r\n\r\n"
	w.refused(say(w.connect(w.at("good.test")), nested), 400) // without TLS
	c, err := w.tunnel(w.at("good.test"), "good.test")
	w.must(err)
	w.refused(say(c, nested), 400)
	w.refused(say(w.dial(w.open), nested), 400) // where no proxy is
	c, err = w.tunnel(w.at("good.test"), "good.test", "h2")
	w.must(err)
	if got := h2connect(t, c, w.at("good.test")); got != 400 {
		t.Fatalf("CONNECT over HTTP/2 got %d, want 400", got)
	}
	w.untouched()
	w.entries(4)
}
