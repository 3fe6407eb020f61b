package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/redact/engine"
	"github.com/holdfast-dev/holdfast/internal/redact/format"
	"github.com/holdfast-dev/holdfast/internal/redact/literal"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// brokenEngine returns an engine that faults at every text.
func brokenEngine() *Engine {
	text := engine.New(new(literal.Set), mask.Style{})
	return &Engine{text: text, bodies: format.New(text)}
}

func newEngine(t testing.TB, literals ...string) *Engine {
	t.Helper()
	var o Options
	for _, l := range literals {
		o.Literals = append(o.Literals, holdfast.NewSecret(l))
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Credentials are put together here so that no scanner mistakes this file for
// a leak.
const (
	b62  = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
	akia = "AKIA" + "IOSFODNN7EXAMPLE"
	ghp  = "ghp_" + b62
	pem  = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nabc=\n-----END RSA " + "PRIVATE KEY-----"
	jwt  = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
)

// masked is a text, the part that must not survive, and the rule.
type masked struct{ text, secret, rule string }

var mustMask = slices.Concat([]masked{
	{"mail bob.smith+x@mail.example.co.uk now", "bob.smith", "email"},
	{"to=bob%40example.com&x=1", "bob", "email"},
	{"jörg@exämple.de", "jörg", "email"},
	{"a@b@example.org", "b@example", "email"},
	{"id " + akia + " ok", akia, "secret.aws_key_id"},
	{"id ASIA" + "IOSFODNN7EXAMPLE", "IOSFODNN7", "secret.aws_key_id"},
	{"zz" + akia, akia, "secret.aws_key_id"},
	{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr", "secret.assignment"},
	{akia + " / wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr", "secret.aws_secret"},
	{ghp, b62, "secret.github"},
	{"x" + ghp + "y", b62, "secret.github"},
	{"gho_" + b62, b62, "secret.github"},
	{"ghu_" + b62, b62, "secret.github"},
	{"ghs_" + b62, b62, "secret.github"},
	{"ghr_" + b62, b62, "secret.github"},
	{"github_pat_11AAAAAAA0" + b62 + "_" + b62, b62, "secret.github"},
	{"glpat-" + b62[:20], b62[:20], "secret.gitlab"},
	{"xoxb-123456789012-abcdefGHIJ", "abcdefGHIJ", "secret.slack"},
	{"sk_live_" + b62[:24], b62[:24], "secret.stripe"},
	{"rk_live_" + b62[:24], b62[:24], "secret.stripe"},
	{"use sk-proj-" + b62, b62, "secret.model_key"},
	{"sk-ant-api03-" + b62 + "-AA", b62, "secret.model_key"},
	{"AIza" + b62[:35], b62[:35], "secret.google"},
	{"npm_" + b62, b62, "secret.npm"},
	{"got " + jwt + ".", "eyJzdWIi", "secret.jwt"},
	{"x" + jwt, "dozjg", "secret.jwt"},
	{"before\n" + pem + "\nafter", "MIIEpA", "secret.private_key"},
	{strings.ReplaceAll(pem, "\n", `\n`), "MIIEpA", "secret.private_key"},
	{"-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAA cut", "b3Blbn",
		"secret.private_key"},
	{"-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\nlQdGBF5x\n-----END PGP " + "PRIVATE KEY BLOCK-----", "lQdG",
		"secret.private_key"},
	{"curl -H 'Authorization: Bearer abc.def' x", "abc.def", "secret.bearer"},
	{"auth_token: Bearer abc x", "abc", "secret.assignment"},
	{"password: -----BEGIN " + "PRIVATE KEY-----\nMIIEpA\n-----END " + "PRIVATE KEY-----", "MIIEpA", "secret.private_key"},
	{"token=4111 1111 1111 1111", "1111 1111", "card"},
	{"call 020 7946, 4111 1111 1111 1111", "1111 1111", "card"},
	{"token: password= hunter2", "hunter2", "secret.assignment"},
	{"sent Bearer mF_9.B5f-4.1JqM today", "mF_9", "secret.bearer"},
	{"Authorization: Basic dXNlcjpwYXNz\nHost: x", "dXNlcjp", "secret.basic"},
	{"used basic dXNlcjpwYXNz here", "dXNlcjp", "secret.basic"},
	{"Cookie: a=b; sid=31d4d96e\nHost: x", "31d4d96e", "secret.assignment"},
	{"password: hunter2", "hunter2", "secret.assignment"},
	{"password=hunter2", "hunter2", "secret.assignment"},
	{"PASSWORD = 'hunter 2'", "hunter 2", "secret.assignment"},
	{"password: 1234", "1234", "secret.assignment"},
	{"db.passwd=hunter2;x", "hunter2", "secret.assignment"},
	{"passphrase => correct-horse", "correct-horse", "secret.assignment"},
	{"my api key: zz9plural", "zz9plural", "secret.assignment"},
	{"api_key=zz9plural&x=1", "zz9plural", "secret.assignment"},
	{"apiKey: zz9plural", "zz9plural", "secret.assignment"},
	{"X-Api-Key: zz9plural", "zz9plural", "secret.assignment"},
	{"https://h/p?x=1&access_token=zz9plural#f", "zz9plural", "secret.assignment"},
	{"https://h/p?q=access_token%3Dzz9plural", "zz9plural", "secret.assignment"},
	{`{"client_secret":"zz9\"plural"}`, "plural", "secret.assignment"},
	{`{\"password\":\"hunter2\"}`, "hunter2", "secret.assignment"},
	{`say \u0041KIA` + "IOSFODNN7EXAMPLE", "IOSFODNN7", "secret.aws_key_id"},
	{"mysql --password hunter2 -h x", "hunter2", "secret.assignment"},
	{"<password>hunter2</password>", "hunter2", "secret.assignment"},
	{"headers['authorization'] = 'zz9plural'", "zz9plural", "secret.assignment"},
	{"password: [secret redacted]hunter2", "hunter2", "secret.assignment"},
	{"postgres://bob:hunter2@db.example.com:5432/x?sslmode=off", "hunter2", "secret.connection"},
	{"postgres://bob:hun/ter2@db.example.com/x", "ter2", "secret.connection"},
	{"https://user:hunter2@host/p", "hunter2", "secret.url"},
	{"redis://:hunter2@host", "hunter2", "secret.connection"},
	{"Server=x;User Id=sa;Password=hunter2;Database=y", "hunter2", "secret.connection"},
	{"AccountKey=abcd1234efgh==;End", "abcd1234", "secret.assignment"},
	{"bot 123456789:AA" + b62[:33], b62[:33], "secret.token"},
	{"paid 4111111111111111 today", "41111111", "card"},
	{"paid 4111 1111 1111 1111 12/29", "4111 1111", "card"},
	{"paid 4111-1111-1111-1111", "4111-1111", "card"},
	{"amex 378282246310005", "37828224", "card"},
	{"amex 3782 822463 10005", "822463", "card"},
	{"mc 5555555555554444 mc2 2223003122003222", "22230031", "card"},
	{"diners 30569309025904", "30569309", "card"},
	{"card of 19 digits: 6304000000000000000", "63040000", "card"},
	{"card:4111111111111111", "41111111", "card"},
	{"ssn 123-45-6789", "45-6789", "pii.ssn"},
	{"applicant 123-45-6789 ok", "45-6789", "pii.ssn"},
	{"SSN: 123456789", "123456789", "pii.ssn"},
	{"social security number 123 45 6789", "45 6789", "pii.ssn"},
	{"itin 912-70-1234", "70-1234", "pii.ssn"},
	{"+44 20 7946 0958", "7946", "pii.phone"},
	{"+44 (0)20 7946 0958", "7946", "pii.phone"},
	{"+49 30 901820", "901820", "pii.phone"},
	{"+4915112345678", "15112345678", "pii.phone"},
	{"tel:%2B4915112345678", "15112345678", "pii.phone"},
	{"call 07911 123456", "123456", "pii.phone"},
	{"07911 123456", "123456", "pii.phone"},
	{"020 7946 0958", "7946", "pii.phone"},
	{"(415) 555-2671", "555-2671", "pii.phone"},
	{"415-555-2671", "555-2671", "pii.phone"},
	{"1-415-555-2671", "555-2671", "pii.phone"},
	{"phone: 4155552671", "4155552671", "pii.phone"},
	{"Tel. 01 23 45 67 89", "45 67", "pii.phone"},
	{"GB82 WEST 1234 5698 7654 32", "5698", "pii.iban"},
	{"iban DE89370400440532013000", "37040044", "pii.iban"},
	{"first_name=Ada, x", "Ada", "pii.field"},
	{"paid 4111-1111 1111  1111.", "1111 ", "card"},
	{"call me at 4155552671", "4155552671", "pii.phone"},
	{"curl -u bob:hunter2 https://x", "hunter2", "secret.assignment"},
	{`passwords: ["hunter2", "b"]`, "hunter2", "secret.assignment"},
	{`password = """hunter2"""`, "hunter2", "secret.assignment"},
	{"https://hooks.slack.com/services/T00/B00/XXX", "XXX", "secret.slack"},
	{"\xff\xfepassword\x00: \xffhunter2", "", ""},
	{"\xff" + ghp + "\xff", b62, "secret.github"},
	{"\x00" + akia + "\x00", akia, "secret.aws_key_id"},
}, tokenTexts, otherSecrets, identities)

// mustNotMask are texts that only look like something.
var mustNotMask = slices.Concat([]string{
	"order 1234567890123456 shipped", "order 4111111111111112 shipped", "order 9999888877776666",
	"550e8400-e29b-41d4-a716-446655440000", "12345678-1234-4123-8123-123456789012",
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	"sha256 0000000000000000000000004111111111111111aaaaaaaaaaaaaaaaaaaaaaaa",
	"commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "9fceb02", "e89f93b",
	"2026-11-21T03:42:44Z", "2026-11-21T03:42:44.123456789+01:00", "Mon, 02 Jan 2006 15:04:05 -0700", "1732160564 +1000",
	"01ARZ3NDEKTSV4RRFFQ69G5FAV", "018f3a1c-7b1e-7cc0-9b1e-0123456789ab",
	"1732160564", "1732160564123", "1732160564123456789", "3.141592653589793", "0.4111111111111111", "1000000", "123456789",
	"v1.2.3", "1.26.8-rc.1", "pkg@1.2.3", "@scope/pkg@10.2.0-beta.1", "go1.26.8",
	"192.168.100.200", "10.0.0.1:8080", "tel 192.168.100.200", "2001:db8::1", "127.0.0.1:7411",
	"/usr/lib/python3.11/site-packages/secret.py", `C:\Users\x\token.txt`, "/srv/tokens/list_12345678.json",
	"docker run -u 1000:1000 x", "date -u +%H:%M", "token count: 5", "token_count=5", "max_tokens: 4096", "token: 5", "tokens: 12", "secret: true", "password: null", "token_type=bearer",
	"password:", "the bearer of news", "Bearer authentication", "basic authentication", "task-management-for-everyone-else", "sk-learn-is-a-library-for-all",
	"http://host:8080/path@x", "https://example.com/a?b=c", "author: Ada", "key: value", "public_key=abc",
	"phone call on 2026-11-21", "diff @@ -10,7 +10,7 @@", "1+12345678", "user@host", "@handle", "a == b", "x := y", "12 34 56 78 90",
	"666-12-3456", "000-12-3456", "123-00-4567", "123-45-0000", "step 3 of 10 - 20%", "a@b", "", " ", "\x00", "\xff\xfe",
	"REDACTED", "password: REDACTED", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "------------------------", "eyJ.eyJ",
	"the quick brown fox jumps over the lazy dog", "git log --author x --token", "2026-11-21 03:42:44.123", "GB00 WEST 1234 5698 7654 32",
}, notSecret, notIdentity)

func TestMustMask(t *testing.T) {
	e := newEngine(t)
	for _, c := range mustMask {
		r := e.Text([]byte(c.text))
		if c.rule == "" {
			continue
		}
		if bytes.Contains(r.Out, []byte(c.secret)) || !slices.Contains(r.Rules(), c.rule) {
			t.Errorf("Text(%q) = %q by %v, want %s", c.text, r.Out, r.Rules(), c.rule)
		}
	}
}

func TestMustNotMask(t *testing.T) {
	e := newEngine(t)
	for _, c := range mustNotMask {
		if r := e.Text([]byte(c)); r.Found() || string(r.Out) != c {
			t.Errorf("Text(%q) = %q by %v", c, r.Out, r.Rules())
		}
	}
}

// Each kind is masked in the sentence that it stands in, and nothing but it;
// sixteen digits that are no card's stay.
func TestEachKindIsMaskedInASentence(t *testing.T) {
	e := newEngine(t)
	for text, want := range map[string]string{
		"key " + akia:              "key [secret redacted]",
		"token is " + ghp:          "token is [secret redacted]",
		"password: x":              "password: [secret redacted]",
		"amex 378282246310005.":    "amex ****-****-****-0005.",
		"ring +44 20 7946 0958":    "ring [pii redacted]",
		"call 07911 123456 today":  "call [pii redacted] today",
		"ssn 123456789":            "ssn [pii redacted]",
		"order 1234567890123456":   "order 1234567890123456",
		"First name: Ada\nx":       "First name: [pii redacted]\nx",
		"home address: 1 Elm St\n": "home address: [pii redacted]\n",
	} {
		if got := string(e.Text([]byte(text)).Out); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

// The masks are the document's, word for word.
func TestK6_AC3_redaction_applied(t *testing.T) {
	e := newEngine(t)
	for text, want := range map[string]string{
		"a bob@example.com b":                     "a [email hidden] b",
		"k sk_live_" + b62[:24]:                   "k [secret redacted]",
		"cc 4111 1111 1111 1234 4111111111111111": "cc 4111 1111 1111 1234 ****-****-****-1111",
		"s 123-45-6789":                           "s [pii redacted]",
		"p 415-555-2671":                          "p [pii redacted]",
		"u postgres://u:p@h/d":                    "u postgres://[secret redacted]@h/d",
	} {
		if got := string(e.Text([]byte(text)).Out); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
	rec, err := e.Seal([]byte(`{"operation_result":"bob@example.com ` + akia + ` 4111 1111 1111 1111"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"operation_result":"[email hidden] [secret redacted] ****-****-****-1111"}`
	if string(rec.Bytes()) != want {
		t.Errorf("Seal = %s", rec.Bytes())
	}
}

// No sealed record holds anything that must be masked, wherever it stood.
func TestK6_INV3_nothing_sensitive_is_sealed(t *testing.T) {
	e := newEngine(t)
	for _, c := range mustMask {
		if c.rule == "" || !json.Valid(quote(c.text)) {
			continue
		}
		q := quote(c.text)
		for _, doc := range []string{
			`{"operation_result":%s}`, `{"a":{"b":[1,[%s]]}}`, `{%s:1}`, `[{"x":null,"y":%s}]`, `%s`,
		} {
			rec, err := e.Seal(fmt.Appendf(nil, doc, q))
			if err != nil {
				continue // not strict JSON
			}
			inner := quote(c.secret)
			if bytes.Contains(rec.Bytes(), inner[1:len(inner)-1]) {
				t.Errorf("Seal(%s) = %s", fmt.Sprintf(doc, q), rec.Bytes())
			}
		}
	}
}

func quote(s string) []byte {
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	_ = w.Encode(s)
	return bytes.TrimSpace(b.Bytes())
}

// A second redaction changes nothing, for the tables and for random mixtures
// of their pieces.
func TestIdempotent(t *testing.T) {
	e := newEngine(t, "tenant-own-secret")
	check := func(s []byte) {
		t.Helper()
		one := e.Text(s)
		two := e.Text(one.Out)
		if two.Found() || !bytes.Equal(one.Out, two.Out) {
			t.Errorf("%q -> %q -> %q", s, one.Out, two.Out)
		}
	}
	var pieces []string
	for _, c := range mustMask {
		check([]byte(c.text))
		pieces = append(pieces, c.text)
	}
	pieces = append(pieces, mustNotMask...)
	pieces = append(pieces, mask.Email, mask.PII, mask.Secret, mask.Card+"1234", "=", ":", "\"", "'", " ",
		"\n", "-", "@", "{", "}", "\\", `\u0041`, "password", "token=")
	rnd := rand.New(rand.NewPCG(1, 2))
	for range testrepeat.Times(20_000, 4_000) {
		var b []byte
		for range 1 + rnd.IntN(6) {
			p := pieces[rnd.IntN(len(pieces))]
			if rnd.IntN(3) == 0 && len(p) > 0 {
				p = p[rnd.IntN(len(p)):]
			}
			b = append(b, p...)
		}
		check(b)
		if t.Failed() {
			return
		}
	}
}

// Findings are in order, inside the text and apart, and what lies between
// them is untouched.
func TestFindingsPlace(t *testing.T) {
	e := newEngine(t)
	text := "a bob@example.com b " + ghp + ` c \u0041KIA` + "IOSFODNN7EXAMPLE d"
	r := e.Text([]byte(text))
	at := 0
	var got []string
	for _, f := range r.Findings {
		if f.Offset < at || f.Offset+f.Length > len(text) {
			t.Fatalf("findings %v", r.Findings)
		}
		at = f.Offset + f.Length
		got = append(got, text[f.Offset:at])
	}
	want := []string{"bob@example.com", ghp, `\u0041KIA` + "IOSFODNN7EXAMPLE"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestJSON(t *testing.T) {
	e := newEngine(t)
	for _, c := range []struct{ in, want string }{
		{`{"a":1}`, `{"a":1}`},
		{`{ "password" : "x" , "b":2 }`, `{ "password" : "[secret redacted]" , "b":2 }`},
		{`{"password":1234}`, `{"password":0}`},
		{`{"secret":{"a":"x","n":[1,"y",true,null]},"b":"z"}`,
			`{"secret":{"a":"[secret redacted]","n":[0,"[secret redacted]",true,null]},"b":"z"}`},
		{`{"ssn":123456789}`, `{"ssn":0}`},
		{`{"phone_number":"12"}`, `{"phone_number":"[pii redacted]"}`},
		{`{"firstName":"Ada","name":"tool"}`, `{"firstName":"[pii redacted]","name":"tool"}`},
		{`{"n":4111111111111111}`, `{"n":4111111111111111}`},
		{`{"card":4111111111111111}`, `{"card":0}`},
		{`{"payment":{"card":{"number":"4111-1111-1111-1111","n":[4111111111111111]}},"n":4111111111111111}`,
			`{"payment":{"card":{"number":"****-****-****-1111","n":[0]}},"n":4111111111111111}`},
		{`{"pan":4111111111111111.00}`, `{"pan":0}`},
		{`{"pan":4.111111111111111e15}`, `{"pan":0}`},
		{`{"n":1234567890123456,"f":0.4111111111111111}`, `{"n":1234567890123456,"f":0.4111111111111111}`},
		{`{"n":4e999999999}`, `{"n":4e999999999}`},
		{`{"x":"\u0041KIA\u0049OSFODNN7EXAMPLE"}`, `{"x":"[secret redacted]"}`},
		{`{"x":"{\"password\":[\"a\",{\"b\":\"c d\"}]}"}`, `{"x":"{\"password\":[\"[secret redacted]\",{\"b\":\"[secret redacted]\"}]}"}`},
		{`{"x":"{\"pan\": 4111111111111111}"}`, `{"x":"{\"pan\": 0}"}`},
		{`{"x":"{\"y\":\"\\u0041KIA\\u0049OSFODNN7EXAMPLE\"}"}`, `{"x":"{\"y\":\"[secret redacted]\"}"}`},
		{`{"pass\u0077ord":"x"}`, `{"pass\u0077ord":"[secret redacted]"}`},
		{`{"bob@example.com":1,"ann@example.com":2}`, `{"[email hidden]":1,"[email hidden] #2":2}`},
		{`{"env":[{"name":"DB_PASSWORD","value":"x"},{"name":"HOME","value":"/root"}]}`, `{"env":[{"name":"DB_PASSWORD","value":"[secret redacted]"},{"name":"HOME","value":"/root"}]}`},
		{`"bob@example.com"`, `"[email hidden]"`},
		{`4111111111111111`, `4111111111111111`},
		{`{"token":"[secret redacted]","token_count":7}`, `{"token":"[secret redacted]","token_count":7}`},
		{`{"a":1,"a":"\u0067hp_` + b62 + `"}`, `{"a":1,"a":"[secret redacted]"}`},
		{`{"a":"bob@example.com"`, `{"a":"[email hidden]"`},
		{``, ``},
		{"\x00", "\x00"},
		{`nonsense password=x`, `nonsense password=[secret redacted]`},
	} {
		r, err := e.JSON([]byte(c.in))
		if err != nil || string(r.Out) != c.want {
			t.Errorf("JSON(%s) = %s, %v, want %s", c.in, r.Out, err, c.want)
		}
	}
}

// A document however deep keeps its shape; one beyond the parser's bound is
// redacted as text.
func TestJSONDepth(t *testing.T) {
	e := newEngine(t)
	for _, depth := range []int{1, 63, 64, 65, 5000, 9999, 20_000, 1_000_000} {
		doc := strings.Repeat("[", depth) + `"\u0041KIA` + `IOSFODNN7EXAMPLE"` + strings.Repeat("]", depth)
		r, err := e.JSON([]byte(doc))
		if err != nil || bytes.Contains(r.Out, []byte("IOSFODNN7")) {
			t.Errorf("depth %d: %v, %.200s", depth, err, r.Out)
		}
		if depth < 10_000 && !json.Valid(r.Out) {
			t.Errorf("depth %d is no longer JSON", depth)
		}
		_, err = e.Seal([]byte(doc))
		if (depth > 64) != (holdfast.KindOf(err) == holdfast.KindRedaction) {
			t.Errorf("Seal at depth %d: %v", depth, err)
		}
	}
}

func TestSeal(t *testing.T) {
	e := newEngine(t, "tenant-own-secret")
	for _, c := range []struct{ in, want string }{
		{`{"id":"bob@example.com","hash":"ghp_` + b62 + `","x":"bob@example.com"}`, `{"id":"bob@example.com","hash":"ghp_` + b62 + `","x":"[email hidden]"}`},
		{`{"x":{"id":"bob@example.com"}}`, `{"x":{"id":"[email hidden]"}}`},
		{`{"id":{"deep":"bob@example.com"}}`, `{"id":{"deep":"[email hidden]"}}`},
		{`{"id":["bob@example.com",["bob@example.com"]]}`, `{"id":["bob@example.com",["[email hidden]"]]}`},
		{`{"id":"` + strings.Repeat("y", 1024) + ` bob@example.com"}`, `{"id":"` + strings.Repeat("y", 1024) + ` [email hidden]"}`},
		{`{"id":"tenant-own-secret"}`, `{"id":"[secret redacted]"}`},
		{`{"id":4111111111111111,"card":4111111111111111}`, `{"id":4111111111111111,"card":0}`},
	} {
		rec, err := e.Seal([]byte(c.in), "id", "hash")
		if err != nil || string(rec.Bytes()) != c.want {
			t.Errorf("Seal(%s) = %s, %v, want %s", c.in, rec.Bytes(), err, c.want)
		}
	}
	doc := []byte(`{"a":"b"}`)
	rec, _ := e.Seal(doc)
	doc[2] = 'z'
	if string(rec.Bytes()) != `{"a":"b"}` {
		t.Error("the record changed with its document")
	}
}

// A failure of redaction is a RedactionError and gives no record.
func TestK6_FP4_redaction_failure(t *testing.T) {
	good := newEngine(t)
	// A table that was never made: the first look into it panics.
	broken := brokenEngine()
	for name, f := range map[string]func() (Record, error){
		"zero engine":    func() (Record, error) { return new(Engine).Seal([]byte(`{}`)) },
		"nil engine":     func() (Record, error) { return (*Engine)(nil).Seal([]byte(`{}`)) },
		"not JSON":       func() (Record, error) { return good.Seal([]byte(`{"a":`)) },
		"empty":          func() (Record, error) { return good.Seal(nil) },
		"two documents":  func() (Record, error) { return good.Seal([]byte(`{} {}`)) },
		"duplicate name": func() (Record, error) { return good.Seal([]byte(`{"a":1,"a":2}`)) },
		"invalid UTF-8":  func() (Record, error) { return good.Seal([]byte("{\"a\":\"\xff\"}")) },
		"panic":          func() (Record, error) { return broken.Seal([]byte(`{"a":"bcd"}`)) },
	} {
		rec, err := f()
		if holdfast.KindOf(err) != holdfast.KindRedaction || rec.Bytes() != nil {
			t.Errorf("%s: %q, %v", name, rec.Bytes(), err)
		}
	}
	if r, err := broken.JSON([]byte(`{"a":"bcd"}`)); holdfast.KindOf(err) != holdfast.KindRedaction || r.Out != nil {
		t.Errorf("JSON after a panic: %q, %v", r.Out, err)
	}
	for _, e := range []*Engine{nil, {}, broken} {
		if r := e.Text([]byte("harmless")); string(r.Out) != mask.Secret || !r.Found() {
			t.Errorf("Text of a broken engine = %q", r.Out)
		}
	}
	if _, err := new(Engine).JSON([]byte(`{}`)); holdfast.KindOf(err) != holdfast.KindRedaction {
		t.Errorf("JSON of a zero engine: %v", err)
	}
}

func TestLiterals(t *testing.T) {
	const secret = `tenant "own"/secret+ß`
	e := newEngine(t, secret, "zzzz")
	forms := map[string]string{
		"plain": secret, "hex": hex.EncodeToString([]byte(secret)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"query": url.QueryEscape(secret), "path": url.PathEscape(secret), "base64": base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64url": base64.RawURLEncoding.EncodeToString([]byte(secret)), "json": string(quote(secret)[1 : len(quote(secret))-1]),
	}
	for name, f := range forms {
		r := e.Text([]byte("pre" + f + "post"))
		if !slices.Contains(r.Rules(), "secret.literal") {
			t.Errorf("%s: %q", name, r.Out)
		}
	}
	for shift := range 3 {
		in := base64.StdEncoding.EncodeToString([]byte("xyz"[:shift] + secret + "tail"))
		if r := e.Text([]byte(in)); !r.Found() {
			t.Errorf("base64 at %d: %q", shift, r.Out)
		}
	}
	for _, bad := range []string{"", "abc", strings.Repeat("x", 65_537)} {
		if _, err := New(Options{Literals: []holdfast.Secret{holdfast.NewSecret(bad)}}); holdfast.KindOf(err) != holdfast.KindValue {
			t.Errorf("a literal of %d bytes: %v", len(bad), err)
		}
	}
	r, err := e.JSON([]byte(`{"x":"tenant \u0022own\"\/secret+\u00df"}`))
	if err != nil || string(r.Out) != `{"x":"[secret redacted]"}` {
		t.Errorf("JSON = %s, %v", r.Out, err)
	}
}

func TestResult(t *testing.T) {
	e := newEngine(t)
	r := e.Text([]byte("x@y.org password=q a@b.org"))
	if got := fmt.Sprint(r.Rules(), r.Found(), r.PII()); got != "[email secret.assignment] true true" {
		t.Error(got)
	}
	if r := e.Text([]byte("password=q")); r.PII() || !r.Found() {
		t.Errorf("a password counts as personal: %v", r.Rules())
	}
	// An escaped string and an inner document report every rule.
	for _, doc := range []string{`"\u0061@x.org password=q"`, `"{\"a\":\"a@x.org\",\"password\":\"q\"}"`} {
		if r, _ := e.JSON([]byte(doc)); len(r.Rules()) != 2 || !r.PII() {
			t.Errorf("JSON(%s): %v", doc, r.Rules())
		}
	}
	if r := e.Text(nil); r.Found() || r.Rules() != nil || r.PII() {
		t.Errorf("nothing found %v", r)
	}
}

// Hostile repetitions take linear time.
func TestLinear(t *testing.T) {
	e := newEngine(t)
	units := []string{
		"eyJ", "eyJa", "eyJaaaaaaaaaaaa.", "a.", "@", "a@", "a@b.", "sk-", "sk-a-", "ghp_", "ghp_a", "AKIA", "xoxb-", "://", "://a:b/", "://a:b@", ":", "=", "a=", "password=",
		`password="`, "password='\n", "password: [secret redacted]", "--", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----END", "1", "1 ", "1-", "1111 ", "123-45-6789 ",
		"123456789 ", "+1", "+1 ", "+12345678 ", "0 ", "(", "Bearer ", "b", "basic ", "%40", "a%40", "<password>", "<", ">", "\\", `\u00`, `\u0041`, `\"`, "token token:", "key: ", "de11", "DE11 ",
		"4111111111111111 ", "bob@example.com ", "bob@example.com", "[email hidden]", "call 1 ", "phone 123 ", "\xff", "\x00", "a_", "__", "..", "SG.", "aB", "token:", "api key: ",
		`("token", "`, `f("password", "a1b2c3!")`, "| token |\n|--|\n", "a,token\n", "a,password\nb,c1d2e3\n", "password ", "token is ", "#define token ", "x || ", "(password, ",
		"(password) VALUES (1, ", "${token:-", "value: ", "value=", "<value>", "<a name='password' value=", "password=a ", "token: a\n", "token: [\"a\", ", "密码：", "**token:** ",
		"-password ", "x.token = y\n", "self.token=", "password:\n", "token string = ",
	}
	for _, u := range units {
		checkLinear(t, u, 1<<17, func(n int) { e.Text(bytes.Repeat([]byte(u), n/len(u))) })
	}
}

// A field that nobody foresaw hides nothing of a kind that can be told by its
// form: masks follow the value, and no list of fields is kept. What only a
// field's name could tell is masked under the names that say it, and stays as
// it is under others.
func TestFMEA_K107_2_fields_that_nobody_foresaw(t *testing.T) {
	e := newEngine(t)
	names := []string{"user_email_secondary", "emailBackup2", "customer_ssn_2", "guardian", "x", "", "données", "a.b[3]", "card_number_old", "__proto__"}
	values := []string{"jane.doe@example.org", "123-45-6789", ghp, akia, "4111 1111 1111 1111", "415-555-2671"}
	for _, name := range names {
		for _, value := range values {
			for _, form := range []string{`{%s:%s}`, `{"operation":{%s:[%s]}}`, `{"rows":[{"n":1,%s:{"value":%s}}]}`} {
				doc := fmt.Appendf(nil, form, quote(name), quote(value))
				rec, err := e.Seal(doc)
				if err != nil {
					t.Fatalf("%s: %v", doc, err)
				}
				if bytes.Contains(rec.Bytes(), []byte(value)) {
					t.Errorf("%s is written as %s", doc, rec.Bytes())
				}
			}
		}
	}
	for _, name := range []string{"backup_password_hint", "newSecretField", "guardian_lastname", "partner_date_of_birth"} {
		if rec, err := e.Seal(fmt.Appendf(nil, `{%q:"Doe hunter"}`, name)); err != nil || bytes.Contains(rec.Bytes(), []byte("hunter")) {
			t.Errorf("%s is written as %s, %v", name, rec.Bytes(), err)
		}
	}
}
