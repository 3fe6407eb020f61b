package domain

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// A row that says only its name has the defaults of the document.
func TestDefaults(t *testing.T) {
	tab := table(t, Domain{Name: "API.OpenAI.com.", Type: LLM}, Domain{Name: "mail.example.com", Type: Email}, Domain{Name: "chat.example.com", Type: Messaging},
		Domain{Name: "x.example.com", Plain: true}, Domain{Name: "o.example.com", Inspect: Opaque}, Domain{Name: "BÜCHER.example:8443"}, Domain{Name: "2001:4860:4860::8888"}, Domain{Name: "[2606:4700::1]"})
	got := tab.Domains()
	want := Domain{Name: "api.openai.com", Type: LLM, Ports: []uint16{443}, Methods: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"},
		Unit: Tokens, MaxRequest: 32 << 20, MaxResponse: 104857600, Inspect: Terminate, Parts: AllowParts, Request: Placeholder,
		Response: Restore, FirstByte: 10 * time.Minute}
	if !reflect.DeepEqual(*got[0], want) {
		t.Errorf("%+v\nand not\n%+v", *got[0], want)
	}
	if d := got[1]; d.MaxRequest != 10485760 || d.FirstByte != 30*time.Second {
		t.Errorf("%+v", *d) // only models are asked more, and think for longer
	}
	for i, want := range []struct {
		name  string
		unit  Unit
		ports []uint16
		kind  string
	}{{"api.openai.com", Tokens, []uint16{443}, LLM}, {"mail.example.com", Messages, []uint16{443}, Email}, {"chat.example.com", Messages, []uint16{443}, Messaging},
		{"x.example.com", Calls, []uint16{443, 80}, API}, {"o.example.com", Calls, []uint16{443}, API}, {"xn--bcher-kva.example:8443", Calls, []uint16{8443}, API},
		{"2001:4860:4860::8888", Calls, []uint16{443}, API}, {"2606:4700::1", Calls, []uint16{443}, API}} {
		if d := got[i]; d.Name != want.name || d.Unit != want.unit || !slices.Equal(d.Ports, want.ports) || d.Type != want.kind || d.Boundary() != "egress/"+want.name {
			t.Errorf("row %d is %+v", i, d)
		}
	}
	if o := got[4]; o.Request != Off || o.Response != Off || o.Methods != nil {
		t.Errorf("an opaque row claims what nobody does: %+v", o)
	}
}

// The table keeps nothing of the rows it was made from.
func TestTableKeepsNothingOfItsRows(t *testing.T) {
	low := holdfast.Low
	ds := []Domain{{Name: "a.example.com", Ports: []uint16{443}, Methods: []string{"GET"}, Paths: paths(t, "/a"), Risk: &low, Credential: &Credential{Header: "X", Source: "s"},
		Addresses: []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1")}}}
	tab := table(t, ds...)
	ds[0].Ports[0], ds[0].Methods[0], ds[0].Paths[0], low = 1, "POST", PathPattern{}, holdfast.High
	ds[0].Credential.Header = "Y"
	passed(t, tab, "a.example.com", "https://a.example.com/a")
	d := tab.Domains()[0]
	if d.RiskOf("POST") != holdfast.Low || d.Credential.Header != "X" || d.Addresses[0] != netip.MustParseAddr("10.0.0.1") || ds[0].Addresses[0] == d.Addresses[0] {
		t.Errorf("%+v", d)
	}
}

// Every mistake in a row is named with the row's line, and has its twin that
// is none.
func TestMistakesNameTheirLine(t *testing.T) {
	addr, bad := netip.MustParseAddr, holdfast.Risk(9)
	no := func(mistake, twin Domain) struct{ mistake, twin Domain } {
		return struct{ mistake, twin Domain }{mistake, twin}
	}
	const n = "a.example.com"
	for i, c := range []struct{ mistake, twin Domain }{
		no(Domain{}, Domain{Name: n}),
		no(Domain{Name: "https://a.example.com"}, Domain{Name: n}),
		no(Domain{Name: "a.example.com/v1"}, Domain{Name: n}),
		no(Domain{Name: "a.example.com:0"}, Domain{Name: "a.example.com:1"}),
		no(Domain{Name: "user@a.example.com"}, Domain{Name: n}),
		no(Domain{Name: "localhost"}, Domain{Name: "localhost", Addresses: []netip.Addr{addr("127.0.0.1")}}),
		no(Domain{Name: "127.0.0.1"}, Domain{Name: "127.0.0.1", Addresses: []netip.Addr{addr("127.0.0.1")}}),
		no(Domain{Name: "10.1.2.3:8080", Addresses: []netip.Addr{addr("10.1.2.4")}}, Domain{Name: "10.1.2.3:8080", Addresses: []netip.Addr{addr("10.1.2.3")}}),
		no(Domain{Name: "1.1.1.1", Addresses: []netip.Addr{addr("10.0.0.1")}}, Domain{Name: "1.1.1.1"}),
		no(Domain{Name: "169.254.169.254"}, Domain{Name: "1.1.1.1"}),
		no(Domain{Name: n, Addresses: []netip.Addr{addr("fe80::1%eth0")}}, Domain{Name: n, Addresses: []netip.Addr{addr("fd00::1")}}),
		no(Domain{Name: n, Addresses: []netip.Addr{{}}}, Domain{Name: n}),
		no(Domain{Name: n, Addresses: slices.Repeat([]netip.Addr{addr("10.0.0.1")}, 17)}, Domain{Name: n, Addresses: slices.Repeat([]netip.Addr{addr("10.0.0.1")}, 16)}),
		no(Domain{Name: n, Type: "LLM"}, Domain{Name: n, Type: LLM}),
		no(Domain{Name: n, Unit: "tokens"}, Domain{Name: n, Unit: Tokens}),
		no(Domain{Name: n, Inspect: "splice"}, Domain{Name: n, Inspect: Terminate}),
		no(Domain{Name: n, Request: "none"}, Domain{Name: n, Request: Refuse}),
		no(Domain{Name: n, Response: "MASK"}, Domain{Name: n, Response: Off}),
		no(Domain{Name: n, Risk: &bad}, Domain{Name: n, Risk: new(holdfast.High)}),
		no(Domain{Name: n, Ports: []uint16{0}}, Domain{Name: n, Ports: []uint16{65535}}),
		no(Domain{Name: n + ":443", Ports: []uint16{443}}, Domain{Name: n + ":443"}),
		no(Domain{Name: n, Ports: make([]uint16, 65)}, Domain{Name: n, Ports: slices.Repeat([]uint16{1}, 64)}),
		no(Domain{Name: n, Methods: []string{"CONNECT"}}, Domain{Name: n, Methods: []string{"GET"}}),
		no(Domain{Name: n, Methods: []string{"TRACE"}}, Domain{Name: n, Methods: []string{"REPORT"}}),
		no(Domain{Name: n, Methods: []string{"get"}}, Domain{Name: n, Methods: []string{"M-SEARCH"}}),
		no(Domain{Name: n, Methods: []string{""}}, Domain{Name: n, Methods: []string{}}),
		no(Domain{Name: n, Methods: slices.Repeat([]string{"GET"}, 33)}, Domain{Name: n, Methods: slices.Repeat([]string{"GET"}, 32)}),
		no(Domain{Name: n, Methods: []string{"POST"}, WebSocket: true}, Domain{Name: n, Methods: []string{"GET"}, WebSocket: true}),
		no(Domain{Name: n, Paths: []PathPattern{{}}}, Domain{Name: n, Paths: []PathPattern{}}),
		no(Domain{Name: n, Paths: slices.Repeat(paths(t, "/a"), 257)}, Domain{Name: n, Paths: slices.Repeat(paths(t, "/a"), 256)}),
		no(Domain{Name: n, MaxRequest: -1}, Domain{Name: n, MaxRequest: 1}),
		no(Domain{Name: n, MaxRequest: MostRequest + 1}, Domain{Name: n, MaxRequest: MostRequest}),
		no(Domain{Name: n, MaxResponse: -1}, Domain{Name: n, MaxResponse: 1}),
		no(Domain{Name: n, MaxResponse: MostResponse + 1}, Domain{Name: n, MaxResponse: MostResponse}),
		no(Domain{Name: n, FirstByte: -1}, Domain{Name: n, FirstByte: 1}),
		no(Domain{Name: n, FirstByte: MostFirstByte + 1}, Domain{Name: n, FirstByte: MostFirstByte}),
		no(Domain{Name: n, Idle: -1}, Domain{Name: n, Idle: 1}),
		no(Domain{Name: n, Idle: MostIdle + 1}, Domain{Name: n, Idle: MostIdle}),
		no(Domain{Name: n, Rate: -1}, Domain{Name: n, Rate: 1}),
		no(Domain{Name: n, Rate: MostRate + 1}, Domain{Name: n, Rate: MostRate}),
		no(Domain{Name: n, Inspect: Opaque, Plain: true}, Domain{Name: n, Inspect: Opaque}),
		no(Domain{Name: n, Inspect: Opaque, Methods: []string{"GET"}}, Domain{Name: n, Inspect: Opaque, Ports: []uint16{22}}),
		no(Domain{Name: n, Inspect: Opaque, Paths: paths(t, "/a")}, Domain{Name: n, Inspect: Opaque, Unit: Bytes}),
		no(Domain{Name: n, Inspect: Opaque, WebSocket: true}, Domain{Name: n, Inspect: Opaque, Rate: 1}),
		no(Domain{Name: n, Inspect: Opaque, Binary: true}, Domain{Name: n, Inspect: Opaque, MaxRequest: 1}),
		no(Domain{Name: n, Inspect: Opaque, AgentCredentials: true}, Domain{Name: n, Inspect: Opaque, FirstByte: time.Second}),
		no(Domain{Name: n, Inspect: Opaque, Roots: "ca.pem"}, Domain{Name: n, Roots: "ca.pem"}),
		no(Domain{Name: n, Inspect: Opaque, Request: Mask}, Domain{Name: n, Inspect: Opaque, Request: Off}),
		no(Domain{Name: n, Inspect: Opaque, Response: Refuse}, Domain{Name: n, Inspect: Opaque, Response: Off}),
		no(Domain{Name: n, Inspect: Opaque, Credential: &Credential{"Authorization", "", "k"}}, Domain{Name: n, Credential: &Credential{"Authorization", "", "k"}}),
		no(Domain{Name: n, Plain: true, Credential: &Credential{"Authorization", "", "k"}}, Domain{Name: n, Plain: true}),
		no(Domain{Name: n, AgentCredentials: true, Credential: &Credential{"Authorization", "", "k"}}, Domain{Name: n, AgentCredentials: true}),
		no(Domain{Name: n, Credential: &Credential{"", "", "k"}}, Domain{Name: n, Credential: &Credential{"x-api-key", "", "k"}}),
		no(Domain{Name: n, Credential: &Credential{"a b", "", "k"}}, Domain{Name: n, Credential: &Credential{"a_b", "", "k"}}),
		no(Domain{Name: n, Credential: &Credential{"Host", "", "k"}}, Domain{Name: n, Credential: &Credential{"Cookie", "", "k"}}),
		no(Domain{Name: n, Credential: &Credential{"Proxy-Authorization", "", "k"}}, Domain{Name: n, Credential: &Credential{"X-Proxy", "", "k"}}),
		no(Domain{Name: n, Credential: &Credential{"Authorization", "Bearer\r\nX: ", "k"}}, Domain{Name: n, Credential: &Credential{"Authorization", "Bearer ", "k"}}),
		no(Domain{Name: n, Credential: &Credential{"Authorization", "Bearer ", ""}}, Domain{Name: n, Credential: &Credential{"Authorization", "Bearer ", "key"}}),
	} {
		c.mistake.Source = fmt.Sprintf("holdfast.yaml:%d", 10+i)
		_, err := NewTable([]Domain{{Name: "first.example.org", Source: "holdfast.yaml:3"}, c.mistake})
		if holdfast.KindOf(err) != holdfast.KindUsage || !strings.Contains(err.Error(), c.mistake.Source+": the domain ") {
			t.Errorf("%+v: %v", c.mistake, err)
		}
		if _, err := NewTable([]Domain{c.twin}); err != nil {
			t.Errorf("%+v: %v", c.twin, err)
		}
	}
	if _, err := NewTable(make([]Domain, MostRows+1)); err == nil {
		t.Error("any number of rows is read")
	}
}

// One name and port stands in one row, however it is written.
func TestDuplicatesAreRefused(t *testing.T) {
	for _, c := range []struct {
		a, b string
		ok   bool
	}{
		{"a.example.com", "A.Example.com.", false}, {"*.example.com", "*.EXAMPLE.com", false}, {"bücher.example", "xn--bcher-kva.example", false},
		{"a.example.com:443", "a.example.com:443", false}, {"1.1.1.1", "::ffff:1.1.1.1", false}, {"2606:4700::1", "[2606:4700:0::1]", false},
		{"a.example.com", "a.example.com:443", true}, {"*.example.com", "example.com", true}, {"*.example.com", "*.example.com:8443", true}, {"a.example.com", "b.example.com", true},
	} {
		_, err := NewTable([]Domain{{Name: c.a, Source: "x:1"}, {Name: c.b, Source: "x:2"}})
		if c.ok != (err == nil) || err != nil && (!strings.Contains(err.Error(), "x:2") || !strings.Contains(err.Error(), "x:1")) {
			t.Errorf("%s and %s: %v", c.a, c.b, err)
		}
	}
}

// The contract's risk is by type and method, and its amounts by unit (D25c,
// D24).
func TestContract(t *testing.T) {
	low, prohibited := holdfast.Low, holdfast.Prohibited
	const p, h, m, l = holdfast.Prohibited, holdfast.High, holdfast.Medium, holdfast.Low
	for _, c := range []struct {
		d                   Domain
		get, post, readRisk holdfast.Risk
		messages            int64
	}{
		{Domain{Name: "a.example.com"}, l, m, l, 0},
		{Domain{Name: "a.example.com", Type: LLM}, l, m, l, 0},
		{Domain{Name: "a.example.com", Type: Git}, l, m, l, 0},
		{Domain{Name: "a.example.com", Type: Email}, h, h, p, 1},
		{Domain{Name: "a.example.com", Type: Messaging}, h, h, p, 1},
		{Domain{Name: "a.example.com", Type: Messaging, Unit: Calls}, h, h, p, 0},
		{Domain{Name: "a.example.com", Type: Email, Risk: &low}, l, l, p, 1},
		{Domain{Name: "a.example.com", Risk: &prohibited}, p, p, p, 0},
	} {
		d := table(t, c.d).Domains()[0]
		got := d.Contract()
		if d.RiskOf("GET") != c.get || d.RiskOf("HEAD") != c.get || d.RiskOf("POST") != c.post || d.RiskOf("") != c.post || d.RiskOf("get") != c.post {
			t.Errorf("%+v: %v and %v", c.d, d.RiskOf("GET"), d.RiskOf("POST"))
		}
		if got.Risk != c.post || got.ReadRisk != c.readRisk || got.Boundary != "egress/a.example.com" || got.Consumes[holdfast.HTTPRequests] != 1 || got.Consumes[holdfast.Messages] != c.messages || got.RatePerMinute != 0 {
			t.Errorf("%+v: %+v", c.d, got)
		}
		if got.Refusals != (holdfast.Refusals{Rate: "RateLimitError", Amount: "BudgetExceededError", Record: "LoggingError"}) {
			t.Errorf("%+v", got.Refusals)
		}
	}
}

// D13a: pictures and documents pass to known hosts of models, and to a row that says so.
func TestPartsPassToKnownHostsOfModels(t *testing.T) {
	for _, c := range []struct {
		d    Domain
		want Parts
	}{
		{Domain{Name: "api.anthropic.com", Type: LLM}, AllowParts},
		{Domain{Name: "eu.api.openai.com", Type: LLM}, AllowParts},
		{Domain{Name: "api.anthropic.com", Type: LLM, Parts: RefuseParts}, RefuseParts},
		{Domain{Name: "api.anthropic.com", Type: LLM, Parts: UnsearchedParts}, UnsearchedParts},
		{Domain{Name: "api.anthropic.com", Type: LLM, Request: Mask}, RefuseParts},
		{Domain{Name: "models.example.com", Type: LLM}, RefuseParts},
		{Domain{Name: "models.example.com", Type: LLM, Binary: true}, AllowParts},
		{Domain{Name: "a.example.com"}, RefuseParts},
	} {
		d := table(t, c.d).Domains()[0]
		if isWeak := strings.Contains(strings.Join(d.Weakenings(), "; "), "not searched for secrets"); d.Parts != c.want ||
			isWeak != (c.want == UnsearchedParts) {
			t.Errorf("%+v: %q, weakened: %v", c.d, d.Parts, isWeak)
		}
	}
	for _, d := range []Domain{{Name: "a.example.com", Parts: UnsearchedParts},
		{Name: "api.openai.com", Type: LLM, Request: Mask, Parts: UnsearchedParts}} {
		if _, err := NewTable([]Domain{d}); err == nil {
			t.Errorf("%+v is accepted", d)
		}
	}
}

// What a row weakens is said, in words, and what it does not is not.
func TestWeakenings(t *testing.T) {
	low, high := holdfast.Low, holdfast.High
	for _, c := range []struct {
		d    Domain
		want string
	}{
		{Domain{}, ""}, {Domain{Request: Refuse, Response: Mask, WebSocket: true, Risk: &high}, ""},
		{Domain{Plain: true}, "without TLS"}, {Domain{Inspect: Opaque}, "opaque tunnel"}, {Domain{Binary: true}, "looked into"},
		{Domain{Request: Off}, "requests that are not redacted"}, {Domain{Response: Off}, "responses"}, {Domain{AgentCredentials: true}, "agent's own credentials"}, {Domain{Risk: &low}, "lower risk"}, {Domain{Type: Email, Risk: new(holdfast.Medium)}, "lower risk"},
	} {
		c.d.Name = "a.example.com"
		d := table(t, c.d).Domains()[0]
		got := d.Weakenings()
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) || d.Contract().Weakened != strings.Join(got, "; ") {
			t.Errorf("%+v: %q", c.d, got)
		}
	}
}
