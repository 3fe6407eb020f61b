package egress

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// What the server sees of personal data and of a key is the mask, in the body, the
// path's query and a header.
func TestEgress_Accept03_RequestsAreRedacted(t *testing.T) {
	w := newRow(t, domain.Domain{Request: domain.Mask})
	w.passed(w.send("POST", w.url("good.test")+"v1/x?to="+someMail, `{"mail":"`+someMail+`","key":"`+someKey+`"}`,
		"Content-Type", "application/json", "X-Note", "from "+someMail))
	seen := w.up.requests()
	if len(seen) != 1 || !strings.Contains(seen[0].Body, `"mail":"[email]"`) || !strings.Contains(seen[0].Body, "[secret]") {
		t.Fatalf("the server saw %+v", seen)
	}
	for _, s := range []string{seen[0].Body, seen[0].URI, seen[0].Header.Get("X-Note")} {
		if strings.Contains(s, someMail) || strings.Contains(s, someKey) || strings.Contains(s, strings.ReplaceAll(someMail, "@", "%40")) {
			t.Errorf("the server saw %q", s)
		}
	}
}

// A request that could not be redacted is a 500, recorded by its name, and not sent.
func TestEgress_Error_RedactionFails(t *testing.T) {
	var broken bool
	w := newEgress(t, setup{config: func(c *Config) {
		engine := c.Engine
		c.Engine = func(d *domain.Domain) *redact.Engine {
			if broken {
				return &redact.Engine{}
			}
			return engine(d)
		}
	}})
	w.passed(w.send("POST", w.url("good.test"), "words", "Content-Type", "text/plain"))
	w.entries(1)
	broken = true
	w.refused(w.send("POST", w.url("good.test"), "words", "Content-Type", "text/plain"), 500)
	w.last(2, "egress/good.test", holdfast.KindRedaction)
	if n := len(w.up.requests()); n != 1 {
		t.Errorf("the server saw %d requests, want 1", n)
	}
}
