package redact

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

func TestURLIsRedactedInEveryPart(t *testing.T) {
	e := newEngine(t, "tenant-own-secret")
	mask := "%5Bsecret%20redacted%5D"
	for _, c := range []struct{ in, want string }{
		{"https://example.com/a/b?c=d&e=f%20g#h", "https://example.com/a/b?c=d&e=f%20g#h"},
		{"https://bob:hunter2@example.com/p", "https://" + mask + "@example.com/p"},
		{"https://:hunter2@example.com:8443/p", "https://" + mask + "@example.com:8443/p"},
		{"https://git@example.com/p", "https://git@example.com/p"},
		{"https://" + ghp + "@example.com/p", "https://" + mask + "@example.com/p"},
		{"https://9f86d081884c7d659a2feaa0c55ad015@example.com/p", "https://" + mask + "@example.com/p"},
		{"https://" + strings.ToLower(akia) + ".example.com/p", "https://redacted.invalid/p"},
		{"https://tenant-own-secret.example.com/p?a=1", "https://redacted.invalid/p?a=1"},
		{"https://bob:hunter2@tenant-own-secret.example.com/p", "https://" + mask + "@redacted.invalid/p"},
		{"https://example.com/u/bob@example.org/x", "https://example.com/u/%5Bemail%20hidden%5D/x"},
		{"https://example.com/u/bob%40example.org/x", "https://example.com/u/%5Bemail%20hidden%5D/x"},
		{"https://example.com/u/%62%6f%62%2540example.org/x", "https://example.com/u/%5Bemail%20hidden%5D/x"},
		{"https://example.com/u?q=tenant%2Down%2Dsecret", "https://example.com/u?q=" + mask},
		{"https://example.com/u?q=tenant%252Down%252Dsecret", "https://example.com/u?q=" + mask},
		{"https://example.com/u?password=a%20b&x=1", "https://example.com/u?password=" + mask + "&x=1"},
		{"https://example.com/u?p%61ssword=a&x=1", "https://example.com/u?p%61ssword=" + mask + "&x=1"},
		{"https://example.com/u?p%2561ssword=a&x=1", "https://example.com/u?p%2561ssword=" + mask + "&x=1"},
		{"https://example.com/cb#access_token=zz9plural&state=1", "https://example.com/cb#access_token=" + mask + "&state=1"},
		{"/cb?code=1&client_secret=zz9;b=2", "/cb?code=1&client_secret=" + mask},
		{"https://example.com/u?card=4111111111111111", "https://example.com/u?card=%2A%2A%2A%2A-%2A%2A%2A%2A-%2A%2A%2A%2A-1111"},
		{"https://example.com/u?q=" + b64("it says bob@example.com!"), "https://example.com/u?q=%5Bemail%20hidden%5D"},
		{"", ""},
		{"not a url", "not a url"},
		{"mailto:bob@example.com", "mailto:%5Bemail%20hidden%5D"},
	} {
		out, list := e.URL(c.in)
		if out != c.want || (len(list) > 0) != (out != c.in) {
			t.Errorf("URL(%q) = %q by %v, want %q", c.in, out, list, c.want)
		}
		for _, f := range list {
			if f.Offset < 0 || f.Offset+f.Length > len(c.in) {
				t.Errorf("findings of %q: %v", c.in, list)
			}
		}
		if again, list := e.URL(out); again != out || list != nil {
			t.Errorf("again %q becomes %q by %v", out, again, list)
		}
		if _, bad := url.Parse(c.in); bad == nil {
			if _, err := url.Parse(out); err != nil {
				t.Errorf("no longer a URL: %v", err)
			}
		}
	}
	for name, in := range map[string]string{"deep": "https://example.com/?q=" + wrapped("it says bob@example.com here", 6), "percent": "https://h/?q=%25252525252541"} {
		if out, list := e.URL(in); strings.Contains(out, "example") || list[0].Rule != "fault" {
			t.Errorf("%s: %q by %v", name, out, list)
		}
	}
}

func TestHeaderIsRedactedByNameAndByValue(t *testing.T) {
	e := newEngine(t, "tenant-own-secret")
	in := http.Header{
		"Accept":                    {"text/html", "*/*;q=0.8"},
		"Authorization":             {"Bearer abc"},
		"X-Api-Key":                 {"zz9plural"},
		"Ocp-Apim-Subscription-Key": {"zz9plural"},
		"Cookie":                    {"sid=31d4d96e; theme=dark", "lonely"},
		"Set-Cookie":                {"sid=31d4d96e; Path=/; HttpOnly"},
		"Referer":                   {"https://example.com/?access_token=zz9plural&x=1"},
		"From":                      {"bob@example.com"},
		"X-Encoded":                 {b64("it says bob@example.com!")},
		"X-Json":                    {`{"password":"hunter2"}`},
		"X-Tenant-Own-Secret":       {"a"},
		"X-Bomb":                    {wrapped("it says bob@example.com here", 6)},
		"X-Tenant":                  {"tenant-own-secret"},
		"Empty":                     nil,
	}
	in["tenant-own-secret"] = []string{"b"}
	want := http.Header{
		"Accept":                    {"text/html", "*/*;q=0.8"},
		"Authorization":             {mask.Secret},
		"X-Api-Key":                 {mask.Secret},
		"Ocp-Apim-Subscription-Key": {mask.Secret},
		"Cookie":                    {"sid=[secret redacted]; theme=[secret redacted]", mask.Secret},
		"Set-Cookie":                {"sid=[secret redacted]; Path=/; HttpOnly"},
		"Referer":                   {"https://example.com/?access_token=%5Bsecret%20redacted%5D&x=1"},
		"From":                      {mask.Email},
		"X-Encoded":                 {mask.Email},
		"X-Json":                    {`{"password":"[secret redacted]"}`},
		"X-Bomb":                    {mask.Secret},
		"X-Tenant":                  {mask.Secret},
		"Redacted-1":                {mask.Secret}, // X-Tenant-Own-Secret: case is lost on the way, the secret is not
		"Redacted-2":                {mask.Secret},
		"Empty":                     {},
	}
	out, list := e.Header(in)
	if !reflect.DeepEqual(http.Header(out), want) {
		t.Errorf("Header gives\n%v\nwant\n%v", out, want)
	}
	if len(list) != 17 {
		t.Errorf("%d findings: %v", len(list), list)
	}
	if in.Get("Authorization") != "Bearer abc" {
		t.Error("the caller's header changed")
	}
	if again, list := e.Header(out); len(list) != 0 || !reflect.DeepEqual(again, out) {
		t.Errorf("again %v by %v", again, list)
	}
	clean := http.Header{"Accept": {"text/html"}, "User-Agent": {"Mozilla/5.0 (X11; Linux x86_64)"}, "If-None-Match": {`"33a64df551425fcc55e4d42a148795d9f25f89d4"`},
		"Date": {"Mon, 02 Jan 2006 15:04:05 GMT"}, "Content-Type": {"multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW"}, "Traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}
	if out, list := e.Header(clean); len(list) != 0 || reflect.ValueOf(out).Pointer() != reflect.ValueOf(map[string][]string(clean)).Pointer() {
		t.Errorf("%v by %v", out, list)
	}
}
