package domain

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func paths(t testing.TB, all ...string) []PathPattern {
	t.Helper()
	var out []PathPattern
	for _, s := range all {
		p, err := ParsePath(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// A table that nobody filled denies everything.
func TestEmptyTableDenies(t *testing.T) {
	empty, err := NewTable(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tab := range []*Table{nil, empty, {}} {
		refused(t, tab, "https://allowed.com/", "https://1.1.1.1/", "http://localhost/")
		if len(tab.Domains()) != 0 {
			t.Error("it has rows")
		}
	}
	if (&Domain{}).RiskOf("GET") != holdfast.Prohibited {
		t.Error("a row of nothing has a risk")
	}
	if (PathPattern{}).matches(nil) || (PathPattern{}).matches([]string{""}) {
		t.Error("a pattern of nothing matches")
	}
}

// The most specific name decides, a row with its port before one without, and
// what it closes stays closed.
func TestMostSpecificNameDecides(t *testing.T) {
	tab := table(t,
		Domain{Name: "*.example.com"},
		Domain{Name: "*.b.example.com", Ports: []uint16{443, 8443}},
		Domain{Name: "a.b.example.com:443"},
		Domain{Name: "c.example.com"},
		Domain{Name: "c.example.com:8443"},
		Domain{Name: "*.p.example.com", Plain: true},
	)
	passed(t, tab, "*.example.com", "https://a.example.com/", "https://b.example.com/")
	passed(t, tab, "*.b.example.com", "https://x.b.example.com:8443/", "https://y.x.b.example.com/", "https://x.a.b.example.com/")
	passed(t, tab, "a.b.example.com:443", "https://a.b.example.com/")
	passed(t, tab, "c.example.com", "https://c.example.com/")
	passed(t, tab, "c.example.com:8443", "https://c.example.com:8443/")
	passed(t, tab, "*.p.example.com", "https://x.p.example.com/", "http://x.p.example.com/", "ws://x.p.example.com/")
	refused(t, tab, "https://a.b.example.com:8443/", "https://a.example.com:8443/", "https://c.example.com:444/", "http://c.example.com:8443/", "http://x.p.example.com:8080/", "https://p.example.com:80/")
}

// Paths are compared component by component, decoded.
func TestPaths(t *testing.T) {
	tab := table(t,
		Domain{Name: "api.example.com", Paths: paths(t, "/v1/*", "/repos/**", "/exact", "/slash/", "/a b/é", "/v2/*/messages")},
		Domain{Name: "root.example.com", Paths: paths(t, "/")},
		Domain{Name: "all.example.com", Paths: paths(t, "/**")},
		Domain{Name: "open.example.com"},
	)
	for _, p := range []string{"/v1/models", "/v1/models?x=/../..;%2f", "/v1/a:b", "/v1/%61", "/repos", "/repos/", "/repos/a", "/repos/a/b/c", "/exact", "/exact?", "/%65xact", "/slash/", "/a%20b/%C3%A9", "/v2/x/messages", "/v1/%e2%82%ac", "/repos/a%25b"} {
		passed(t, tab, "api.example.com", "https://api.example.com"+p)
	}
	for _, p := range []string{"", "/", "/v1", "/v1/", "/v1/a/b", "/v1/a/", "/V1/models", "/reposx", "/repos2/a", "/exact/", "/slash", "/exactly", "/v2/messages", "/v2//messages", "/v2/a/b/messages",
		"/v1/..", "/v1/.", "/repos/../admin", "/repos/./a", "/repos/%2e%2e/admin", "/repos/%2E./admin", "/repos/a/..", "//repos/a", "/repos//a", "/repos/a//", "//", "/repos/a%2fb", "/repos/a%2Fb", "/v1/a%5cb", "/repos%2fa", "/repos/..%2fadmin", "/repos/..;/admin", "/repos/a;b=c", "/repos/a%3bb", "/repos/%252e%252e/admin", "/repos/a%2500", "/v1/a%00", "/v1/a%0d%0a", "/v1/%c0%ae%c0%ae", "/v1/%ff", "/repos/a%3fb", "/repos/a%23b", "/v1/%7f",
		"/repos" + strings.Repeat("/a", 300)} {
		refused(t, tab, "https://api.example.com"+p)
	}
	passed(t, tab, "root.example.com", "https://root.example.com", "https://root.example.com/", "https://root.example.com/?q")
	refused(t, tab, "https://root.example.com/a", "https://root.example.com//")
	passed(t, tab, "all.example.com", "https://all.example.com", "https://all.example.com/a/b/", "https://all.example.com/"+strings.Repeat("a/", 255))
	refused(t, tab, "https://all.example.com//", "https://all.example.com/../a")
	// Where every path is allowed there is nothing to be taken for another.
	passed(t, tab, "open.example.com", "https://open.example.com/@scope%2fname", "https://open.example.com/a//b/../c;d", "https://open.example.com//x")
	refused(t, tab, "https://open.example.com/%", "https://open.example.com/%zz", "https://open.example.com/a\x00", "https://open.example.com/a b", "https://open.example.com/é", `https://open.example.com/a\b`, "https://open.example.com/"+strings.Repeat("a", 33<<10))
}

// Patterns that could match nothing, or something else than they seem to, are
// no patterns.
func TestPatterns(t *testing.T) {
	for _, s := range []string{"", "v1", "*", "**", "/v1/a*", "/**/a", "/a/**b", "/a//b", "//", "/a/../b", "/a/.", "/a;b", "/a?b", "/a#b", `/a\b`, "/a%2fb", "/%41", "/a\x00", "/a\xff", "/" + strings.Repeat("a", 2000)} {
		if p, err := ParsePath(s); holdfast.KindOf(err) != holdfast.KindUsage || p.text != "" {
			t.Errorf("%q is a pattern: %v", s, err)
		}
	}
	for _, s := range []string{"/", "/*", "/**", "/a/", "/a/*/b/**", "/a%", "/100%/x", "/a b"} {
		if p, err := ParsePath(s); err != nil || p.String() != s {
			t.Errorf("%q is none: %v", s, err)
		}
	}
}

// Methods, tunnels and upgrades are as the row says, and methods are never
// guessed at.
func TestMethodsTunnelsAndUpgrades(t *testing.T) {
	tab := table(t,
		Domain{Name: "all.example.com"},
		Domain{Name: "read.example.com", Methods: []string{"GET", "HEAD"}},
		Domain{Name: "dav.example.com", Methods: []string{"PROPFIND"}},
		Domain{Name: "ws.example.com", WebSocket: true, Methods: []string{"GET", "POST"}},
		Domain{Name: "opaque.example.com", Inspect: Opaque},
	)
	for _, c := range []struct {
		host, method, target, upgrade string
		ok                            bool
	}{
		{"all", "GET", "/", "", true}, {"all", "POST", "/", "", true}, {"all", "DELETE", "/", "", true}, {"all", "OPTIONS", "/", "", true},
		{"all", "TRACE", "/", "", false}, {"all", "CONNECT", "", "", false}, {"all", "get", "/", "", false}, {"all", "", "/", "", false}, {"all", "GET ", "/", "", false}, {"all", "PROPFIND", "/", "", false},
		{"all", "GET", "", "", false}, {"all", "OPTIONS", "*", "", false}, {"all", "GET", "x", "", false},
		{"all", "GET", "/", "websocket", false}, {"all", "GET", "/", "h2c", false},
		{"read", "HEAD", "/", "", true}, {"read", "POST", "/", "", false}, {"dav", "PROPFIND", "/", "", true}, {"dav", "GET", "/", "", false},
		{"ws", "GET", "/", "websocket", true}, {"ws", "GET", "/", "WebSocket", true}, {"ws", "GET", "/", "", true},
		{"ws", "POST", "/", "websocket", false}, {"ws", "GET", "/", "h2c", false}, {"ws", "GET", "/", "websocket, h2c", false}, {"ws", "GET", "/", " websocket", false},
		{"opaque", "CONNECT", "", "", true}, {"opaque", "CONNECT", "/", "", false}, {"opaque", "CONNECT", "", "websocket", false}, {"opaque", "GET", "/", "", false},
	} {
		h, err := ParseHost(c.host + ".example.com")
		if err != nil {
			t.Fatal(err)
		}
		d, bad := tab.Decide(Ask{Origin{true, h, 443}, c.method, c.target, c.upgrade})
		if (bad == nil) != c.ok || (d != nil) != c.ok {
			t.Errorf("%+v: %v", c, bad)
		}
	}
	for _, c := range []struct {
		ask  Ask
		want bool
	}{{Ask{Method: "GET"}, true}, {Ask{Method: "HEAD"}, true}, {Ask{Method: "GET", Upgrade: "websocket"}, false}, {Ask{Method: "OPTIONS"}, false}, {Ask{}, false}, {Ask{Method: "get"}, false}} {
		if c.ask.ReadsOnly() != c.want {
			t.Errorf("%+v reads only: %v", c.ask, !c.want)
		}
	}
}

// A denial says what would have been allowed.
func TestDenialsHint(t *testing.T) {
	tab := table(t,
		Domain{Name: "api.openai.com"},
		Domain{Name: "*.example.com"},
		Domain{Name: "registry.npmjs.org", Methods: []string{"GET"}, Paths: paths(t, "/left-pad", "/a", "/b", "/c", "/d", "/e")},
		Domain{Name: "git.example.net:8443"},
		Domain{Name: "tunnel.example.net", Inspect: Opaque},
	)
	for raw, want := range map[string]string{
		"https://api.opena1.com/":            "did you mean api.openai.com?",
		"https://api.openai.co/":             "did you mean api.openai.com?",
		"https://api.opnai.com/":             "did you mean api.openai.com?",
		"https://pai.openai.com/":            "did you mean api.openai.com?",
		"https://openai.com/":                "did you mean api.openai.com?",
		"https://chat.openai.com/":           "did you mean api.openai.com?",
		"https://example.com/":               "not itself: list example.com too",
		"https://exampel.com/":               "did you mean *.example.com?",
		"https://other.org/":                 "list other.org among",
		"https://xn--pple-43d.com/":          "another script",
		"https://9.9.9.9/":                   "by its name",
		"http://api.openai.com/":             "use https://api.openai.com",
		"http://git.example.net:8443/":       "use https://git.example.net:8443",
		"https://tunnel.example.net/":        "reach it by CONNECT",
		"https://git.example.net/":           "its ports are 8443",
		"https://registry.npmjs.org/right":   "its paths are /left-pad, /a, /b, /c, /d, ...",
		"https://registry.npmjs.org/a;b":     "plain form",
		"https://user@api.openai.com/":       "credentials are added by the proxy",
		"https://api.openai.com/#x":          "leave out everything from the #",
		"https://" + strings.Repeat("a", 63): "list a",
	} {
		_, err := get(tab, raw)
		e, ok := err.(*holdfast.Error)
		if !ok || !strings.Contains(e.Hint, want) || e.Why == "" {
			t.Errorf("%s: %v, hint %q, not %q", raw, err, e.Hint, want)
		}
	}
	// Names of one registry are no kin: nothing in common but com.
	if _, err := get(tab, "https://unlike.com/"); strings.Contains(err.(*holdfast.Error).Hint, "did you mean") {
		t.Error(err.(*holdfast.Error).Hint)
	}
}

// A decision that allows makes no garbage, and one that denies little, whatever
// was asked for.
func TestDecisionsAllocateLittle(t *testing.T) {
	tab := benchTable(t, 50)
	for raw, most := range map[string]float64{
		"https://host7.example.net/":                                0,
		"https://api.openai.com/v1/chat/completions?stream=true":    0,
		"https://a.b.z40.example.org/":                              1,
		"https://api.opena1.com/":                                   4,
		"https://" + strings.Repeat("a.", 120) + "example.info/":    4,
		"https://api.openai.com/v1/../admin":                        8,
		"https://api.openai.com/v1/files" + strings.Repeat("/a", 9): 0,
	} {
		o, target, err := ParseURL(raw)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { tab.Decide(Ask{Origin: o, Method: "GET", Target: target}) }); n > most {
			t.Errorf("%s makes %v allocations, more than %v", raw, n, most)
		}
	}
}

// benchTable is an allowlist of n names and wildcards.
func benchTable(b testing.TB, n int) *Table {
	b.Helper()
	ds := []Domain{{Name: "api.openai.com", Paths: paths(b, "/v1/models", "/v1/chat/*", "/v1/files/**")}, {Name: "*.example.com"}}
	for i := range n {
		ds = append(ds, Domain{Name: "host" + strconv.Itoa(i) + ".example.net"}, Domain{Name: "*.z" + strconv.Itoa(i) + ".example.org"})
	}
	return table(b, ds...)
}

// BenchmarkDecide is one decision, beside a floor: an URL read by net/url and
// one lookup in a map.
func BenchmarkDecide(b *testing.B) {
	tab := benchTable(b, 500)
	const raw = "https://api.openai.com/v1/chat/completions?stream=true"
	b.Run("floor", func(b *testing.B) {
		m := map[string]bool{"api.openai.com": true}
		for b.Loop() {
			if u, err := url.Parse(raw); err != nil || !m[u.Host] {
				b.Fatal()
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := ParseURL(raw); err != nil {
				b.Fatal()
			}
		}
	})
	for _, c := range []struct{ name, url string }{
		{"exact", "https://host7.example.net/"},
		{"paths", raw},
		{"wildcard", "https://a.b.z400.example.org/"},
		{"typo", "https://api.opena1.com/"},
		{"denied", "https://nothing.like.it.example.info/"},
		{"labels", "https://" + strings.Repeat("a.", 120) + "example.info/"},
		{"refused", "https://api.openai.com/v1/../admin"},
	} {
		o, target, err := ParseURL(c.url)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tab.Decide(Ask{Origin: o, Method: "GET", Target: target})
			}
		})
	}
}
