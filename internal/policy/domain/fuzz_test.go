package domain

import (
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// canonicalName is what a name may be, said in another way than badName says
// it.
var canonicalName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$`)

// checkHost wants a host to be canonical, to be read back as itself, and to be
// the same to net/url.
func checkHost(t *testing.T, h Host) {
	t.Helper()
	s := h.String()
	if again, err := ParseHost(s); err != nil || again != h {
		t.Fatalf("%q is read back as %q: %v", s, again, err)
	}
	u, err := url.Parse("https://" + bracket(h) + ":443/")
	if err != nil || u.Hostname() != s {
		t.Fatalf("%q is %q to net/url: %v", s, u.Hostname(), err)
	}
	addr, err := netip.ParseAddr(s)
	if h.IsAddr() != (err == nil) || h.IsAddr() && (addr != h.Addr() || addr.Zone() != "" || addr.Is4In6()) {
		t.Fatalf("%q is an address: %v, %v", s, h.IsAddr(), err)
	}
	if !h.IsAddr() && (!canonicalName.MatchString(s) || len(s) > 253) {
		t.Fatalf("%q is not canonical", s)
	}
	if labels := strings.Split(s, "."); !h.IsAddr() && regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`).MatchString(labels[len(labels)-1]) {
		t.Fatalf("%q is a number", s)
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"api.openai.com", "API.OPENAI.COM.", "ｅxample。com", "①②⑦.⓪.⓪.①", "xn--bcher-kva.example", "bu\u0308cher", "::ffff:10.0.0.1", "127.1", "0x7f.1", "_a.b", "a..b", "xn--xn---epa", "a\u200db", "ا1.example", "℀.com"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err != nil {
			if h != (Host{}) {
				t.Fatalf("%q is refused, and is %q", s, h)
			}
			return
		}
		checkHost(t, h)
		if strings.ContainsAny(s, "\x00\r\n\t\v\f %@/\\?#[]*<>\"'`{}|^$&()+,;=!~\x7f") {
			t.Fatalf("%q was read as %q", s, h)
		}
		// The way without IDNA comes to what IDNA does.
		if name, err := lookup.ToASCII(strings.TrimSuffix(s, ".")); !h.IsAddr() && (err != nil || strings.TrimSuffix(name, ".") != h.String()) {
			t.Fatalf("%q is %q, and %q by IDNA: %v", s, h, name, err)
		}
	})
}

func FuzzParseAuthority(f *testing.F) {
	for _, s := range []string{"a.example:443", "[::1]:443", "[a.example]:443", "a.example:", "user@a.example", "::1", "1.1.1.1:1", "a:b:c", "[::ffff:1.1.1.1]", "a.example:0443", "bücher:1", "[::1%25eth0]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, port, given, err := ParseAuthority(s)
		if err != nil {
			if h != (Host{}) || port != 0 || given {
				t.Fatalf("%q is refused, and is %q %d", s, h, port)
			}
			return
		}
		checkHost(t, h)
		if given != (port != 0) {
			t.Fatalf("%q: %d %v", s, port, given)
		}
		o := Origin{TLS: true, Host: h, Port: max(port, 1)}
		if again, p, _, err := ParseAuthority(o.Authority()); err != nil || again != h || p != o.Port {
			t.Fatalf("%q is read back as %q %d: %v", o.Authority(), again, p, err)
		}
		sameToURL(t, "https://"+s+"/", Origin{TLS: true, Host: h, Port: port})
	})
}

// sameToURL wants net/url to see the host and port that we see: a library that
// dials what it reads would go where we decided.
// Port 0 is none given.
func sameToURL(t *testing.T, raw string, o Origin) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatalf("%q is %s, and nothing to net/url: %v", raw, o, err)
	}
	theirs, err := ParseHost(u.Hostname())
	if err != nil || theirs != o.Host || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		t.Fatalf("%q is %s, and %q to net/url: %v", raw, o, u.Host, err)
	}
	if port := strconv.Itoa(int(o.Port)); u.Port() != port && (u.Port() != "" || o.Port != 0 && o.Port != ownPort(o.TLS)) {
		t.Fatalf("%q is %s, and has port %q to net/url", raw, o, u.Port())
	}
	return u
}

func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"https://a.example/v1?q=1", "HTTP://A.example.:80", "wss://[::1]:1/", "https://a@b/", "https://a.example?x", `https://a\b`, "https://a.example/%", "https://a.example/#", "https://a.example/a%2fb;c//d/..", "https://bücher/", "https:/a", "//a", "https://a.example/{\"}", "https://a.example:443:443/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		o, target, err := ParseURL(raw)
		if err != nil {
			if o != (Origin{}) || target != "" {
				t.Fatalf("%q is refused, and is %s %q", raw, o, target)
			}
			return
		}
		checkHost(t, o.Host)
		if again, rest, err := ParseURL(o.String() + target); err != nil || again != o || rest != target {
			t.Fatalf("%s%s is read back as %s %s: %v", o, target, again, rest, err)
		}
		u := sameToURL(t, raw, o)
		before, query, _ := strings.Cut(target, "?")
		if u.RawQuery != query || decode(before) != u.Path && (u.Path != "" || before != "/") {
			t.Fatalf("%q: path %q and query %q, and %q %q to net/url", raw, before, query, u.Path, u.RawQuery)
		}
	})
}

// FuzzPath holds what a row with paths allows against servers that resolve
// dots, decode twice, cut parameters off or take backslashes for slashes: all
// of them must see the one path that was judged.
func FuzzPath(f *testing.F) {
	for _, s := range [][2]string{{"/v1/*", "/v1/models?x"}, {"/repos/**", "/repos/a/../b"}, {"/**", "/%2e%2e/a"}, {"/**", "/a;b"}, {"/a b", "/a%20b"}, {"/**", "/%252e"}, {"/*/", "/a/"}, {"/", "/"}, {"/**", "//"}, {"/a%", "/a%25"}, {"/**", "/%c0%ae"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, target string) {
		p, err := ParsePath(pattern)
		if err != nil || checkTarget(target) != nil {
			return
		}
		d := &Domain{Name: "a.example", Paths: []PathPattern{p}}
		if d.permitsPath(target) != nil {
			return
		}
		raw, _, _ := strings.Cut(target, "?")
		once, err := url.PathUnescape(raw)
		if err != nil || !simple(pattern, once) {
			t.Fatalf("%q allows %q, which is %q: %v", pattern, target, once, err)
		}
		clean := path.Clean(once)
		if strings.HasSuffix(once, "/") && clean != "/" {
			clean += "/"
		}
		twice, err := url.PathUnescape(once)
		if err == nil && twice != once || clean != once || strings.ReplaceAll(once, `\`, "/") != once || strings.Contains(once, ";") {
			t.Fatalf("%q allows %q, which some read as %q or %q", pattern, target, clean, twice)
		}
		if again := (&url.URL{Path: once}).EscapedPath(); d.permitsPath(again) != nil {
			t.Fatalf("%q allows %q and not %q", pattern, target, again)
		}
	})
}

// simple matches as the patterns are documented, by regular expression.
func simple(pattern, path string) bool {
	e := regexp.QuoteMeta(pattern)
	if before, ok := strings.CutSuffix(e, `/\*\*`); ok {
		e = before + `(/.*)?`
	}
	e = strings.ReplaceAll(e+"/", `/\*/`, `/[^/]+/`)
	e = strings.ReplaceAll(e, `/\*/`, `/[^/]+/`)
	return regexp.MustCompile(`(?s)^(?:` + strings.TrimSuffix(e, "/") + `)$`).MatchString(path)
}
