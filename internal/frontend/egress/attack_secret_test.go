package egress

import (
	"bytes"
	"compress/gzip"
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"mime/quotedprintable"
	"net/textproto"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// What is planted in the attacks: a registered secret and three formats.
const (
	planted     = "v1olet-harpoon-93-tundra"
	plantedAWS  = "AKIA4QJXZ2MNRT7WPLVY"
	plantedGit  = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	plantedCard = "4539-5787-6362-1486"
)

var allPlanted = []string{planted, plantedAWS, plantedGit, plantedCard}

// attacked is a world whose engine knows the registered secret.
func attacked(t testing.TB, set setup) *world {
	engine, err := redact.New(redact.Options{Masks: redact.Egress, Literals: []holdfast.Secret{holdfast.NewSecret(planted)}})
	if err != nil {
		t.Fatal(err)
	}
	change := set.config
	set.config = func(c *Config) {
		c.Engine = func(*domain.Domain) *redact.Engine { return engine }
		if change != nil {
			change(c)
		}
	}
	return newEgress(t, set)
}

// leaked says which planted secret can be read from what an upstream saw, by
// whoever knows the usual encodings.
func leaked(seen []seenRequest) string {
	for _, r := range seen {
		var all strings.Builder
		fmt.Fprintf(&all, "%s\n%s\n", r.Host, r.URI)
		for name, values := range r.Header {
			fmt.Fprintf(&all, "%s: %s\n", name, strings.Join(values, "\n"))
		}
		all.WriteString(r.Body)
		for _, text := range readings(all.String()) {
			for _, s := range allPlanted {
				if strings.Contains(strings.ToLower(text), strings.ToLower(s)) {
					return fmt.Sprintf("%s in %q", s, all.String())
				}
			}
		}
	}
	return ""
}

// readings is text as several readers would take it.
func readings(text string) []string {
	out := []string{text}
	add := func(s string, err error) {
		if err == nil && s != text {
			out = append(out, s)
		}
	}
	for range 3 {
		s, err := url.QueryUnescape(out[len(out)-1])
		add(s, err)
		s, err = url.PathUnescape(out[len(out)-1])
		add(s, err)
	}
	drop := strings.NewReplacer("\x00", "", " ", "", "-", "", ".", "", "_", "", "\n", "", "\r", "", "\u200b", "", "\u00ad", "", "\xfe\xff", "", "\xff\xfe", "")
	out = append(out, drop.Replace(text), strings.ReplaceAll(text, "\x00", ""), strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", ""), "\n", ""))
	var unescaped strings.Builder
	for i := 0; i < len(text); i++ {
		var n int
		if text[i] == '\\' {
			if k, _ := fmt.Sscanf(text[i:min(len(text), i+6)], `\u%04x`, &n); k == 1 {
				unescaped.WriteRune(rune(n))
				i += 5
				continue
			}
		}
		unescaped.WriteByte(text[i])
	}
	out = append(out, unescaped.String(), apart(text))
	q, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(text)))
	add(string(q), err)
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("+/-_=", r))
	}) {
		if len(word) < 8 {
			continue
		}
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			if b, err := e.DecodeString(word); err == nil {
				out = append(out, string(b), strings.ReplaceAll(string(b), "\x00", ""))
				if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
					g, _ := io.ReadAll(z)
					out = append(out, string(g))
				}
			}
		}
		if b, err := hex.DecodeString(word); err == nil {
			out = append(out, string(b))
		}
		for _, e := range []*base32.Encoding{base32.StdEncoding, base32.HexEncoding} {
			if b, err := e.DecodeString(strings.ToUpper(word)); err == nil {
				out = append(out, string(b))
			}
		}
	}
	return out
}

// hexRun finds hexadecimal whose bytes stand apart, as in "76 31", "76:31",
// "0x76, 0x31" and "\x76\x31".
var hexRun = regexp.MustCompile(`(?i)[0-9a-f]{2}(?:[ :,;._\s-]{0,3}(?:0x|\\x|&#x)?[0-9a-f]{2}){7,}`)

// apart is what such runs say.
func apart(text string) string {
	var b strings.Builder
	for _, run := range hexRun.FindAllString(text, -1) {
		run = strings.NewReplacer("0x", "", "0X", "").Replace(run)
		digits := strings.Map(func(r rune) rune {
			if unicode.Is(unicode.ASCII_Hex_Digit, r) {
				return r
			}
			return -1
		}, run)
		raw, _ := hex.DecodeString(digits) // what is odd is left out
		fmt.Fprintf(&b, "%s\n", raw)
	}
	return b.String()
}

func utf16le(s string, mark bool) string {
	var b []byte
	if mark {
		b = []byte{0xff, 0xfe}
	}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func utf16be(s string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u>>8), byte(u))
	}
	return string(b)
}

func utf32(s string) string {
	var b []byte
	for _, r := range s {
		b = append(b, byte(r), byte(r>>8), 0, 0)
	}
	return string(b)
}

// utf7 is RFC 2152 with every character in base64.
func utf7(s string) string {
	return "+" + base64.RawStdEncoding.EncodeToString([]byte(utf16be(s))) + "-"
}

func gzipped(parts ...string) string {
	var b bytes.Buffer
	for _, p := range parts { // each is a member of its own
		w := gzip.NewWriter(&b)
		io.WriteString(w, p)
		w.Close()
	}
	return b.String()
}

func inParts(kind string, name, file, value string, fields ...string) (string, string) {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	h := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="%s"; filename="%s"`, name, file)}}
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	for i := 0; i < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	p, _ := m.CreatePart(h)
	io.WriteString(p, value)
	m.Close()
	return m.FormDataContentType(), b.String()
}

type leak struct{ method, target, kind, encoding, body, more string }

// leaks are the ways to hide one secret in one request.
func leaks(s string) map[string]leak {
	b64 := base64.StdEncoding.EncodeToString([]byte(s))
	all := map[string]leak{
		"path":                     {target: "/a/" + s},
		"path, escaped":            {target: "/a/" + percent(s)},
		"path, escaped twice":      {target: "/a/" + url.QueryEscape(percent(s))},
		"path, over two parts":     {target: "/a/" + s[:9] + "/" + s[9:]},
		"query value":              {target: "/?q=" + s},
		"query name":               {target: "/?" + s + "=1"},
		"query without a name":     {target: "/?" + s},
		"query, escaped":           {target: "/?q=" + percent(s)},
		"query, three times":       {target: "/?q=" + url.QueryEscape(url.QueryEscape(percent(s)))},
		"query, base64":            {target: "/?q=" + url.QueryEscape(b64)},
		"query, base64 of base64":  {target: "/?q=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(b64)))},
		"query, hex":               {target: "/?q=" + hex.EncodeToString([]byte(s))},
		"query, base32":            {target: "/?q=" + base32.StdEncoding.EncodeToString([]byte(s))},
		"header value":             {more: "X-A: " + s + "\r\n"},
		"header name":              {more: "X-" + strings.ReplaceAll(s, " ", "") + ": 1\r\n"},
		"header, base64":           {more: "X-A: " + b64 + "\r\n"},
		"header, hex":              {more: "X-A: " + hex.EncodeToString([]byte(s)) + "\r\n"},
		"user agent":               {more: "User-Agent: x/" + s + "\r\n"},
		"traceparent":              {more: "Tracestate: a=" + s + "\r\n"},
		"request id":               {more: "X-Request-Id: " + s + "\r\n"},
		"idempotency key":          {more: "Idempotency-Key: " + s + "\r\n"},
		"accept language":          {more: "Accept-Language: " + s + "\r\n"},
		"if none match":            {more: "If-None-Match: \"" + s + "\"\r\n"},
		"content type":             {kind: "text/plain; a=" + s, body: "x"},
		"boundary":                 {kind: "multipart/form-data; boundary=" + s, body: "--" + s + "\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--" + s + "--\r\n"},
		"fields of one name":       {more: "X-A: " + s[:8] + "\r\nX-A: " + s[8:] + "\r\n"},
		"text":                     {kind: "text/plain", body: "so: " + s + " it is"},
		"no type":                  {body: s},
		"JSON value":               {kind: "application/json", body: `{"a":"` + s + `"}`},
		"JSON name":                {kind: "application/json", body: `{"` + s + `":1}`},
		"JSON escapes":             {kind: "application/json", body: `{"a":"` + escapedJSON(s) + `"}`},
		"JSON in JSON":             {kind: "application/json", body: `{"a":"{\"b\":\"` + strings.ReplaceAll(escapedJSON(s), `\`, `\\`) + `\"}"}`},
		"JSON said to be text":     {kind: "text/plain", body: `{"a":"` + escapedJSON(s) + `"}`},
		"JSON said to be a form":   {kind: "application/x-www-form-urlencoded", body: `{"a":"` + escapedJSON(s) + `"}`},
		"form said to be JSON":     {kind: "application/json", body: "a=" + percent(s)},
		"form said to be text":     {kind: "text/plain", body: "a=" + percent(s)},
		"two content types":        {kind: "text/plain", more: "Content-Type: application/json\r\n", body: `{"a":"` + escapedJSON(s) + `"}`},
		"JSON, base64":             {kind: "application/json", body: `{"a":"` + b64 + `"}`},
		"JSON, gzip in base64":     {kind: "application/json", body: `{"a":"` + base64.StdEncoding.EncodeToString([]byte(gzipped(s))) + `"}`},
		"JSON, base64 with breaks": {kind: "application/json", body: `{"a":"` + strings.ReplaceAll(b64[:12]+"\n"+b64[12:], "\n", `\n`) + `"}`},
		"lines of JSON":            {kind: "application/x-ndjson", body: "{\"a\":1}\n{\"b\":\"" + escapedJSON(s) + "\"}\n"},
		"XML":                      {kind: "application/xml", body: "<a>" + s + "</a>"},
		"XML entities":             {kind: "application/xml", body: "<a>" + entities(s) + "</a>"},
		"HTML entities":            {kind: "text/html", body: "<a>" + entities(s) + "</a>"},
		"form value":               {kind: "application/x-www-form-urlencoded", body: "a=" + s},
		"form, escaped":            {kind: "application/x-www-form-urlencoded", body: "a=" + percent(s)},
		"form name":                {kind: "application/x-www-form-urlencoded", body: percent(s) + "=1"},
		"gzip":                     {kind: "text/plain", encoding: "gzip", body: gzipped(s)},
		"gzip, two members":        {kind: "text/plain", encoding: "gzip", body: gzipped(s[:7], s[7:])},
		"gzip in gzip":             {kind: "text/plain", encoding: "gzip, gzip", body: gzipped(gzipped(s))},
		"gzip, said twice":         {kind: "text/plain", more: "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", body: gzipped(gzipped(s))},
		"gzip that is not said":    {kind: "text/plain", body: gzipped(s)},
		"gzip hidden from the hop": {kind: "text/plain", encoding: "gzip", more: "Connection: Content-Encoding\r\n", body: gzipped(s)},
		"encoding of no name":      {kind: "text/plain", encoding: "x-secret", body: s},
		"UTF-16 LE, marked":        {kind: "text/plain", body: utf16le("so: "+s, true)},
		"UTF-16 LE":                {kind: "text/plain; charset=utf-16le", body: utf16le("so: "+s, false)},
		"UTF-16 LE not said":       {kind: "application/json", body: utf16le(`{"a":"`+s+`"}`, false)},
		"UTF-16 BE":                {kind: "text/plain; charset=utf-16be", body: utf16be("so: " + s)},
		"UTF-32":                   {kind: "text/plain; charset=utf-32le", body: utf32("so: " + s)},
		"UTF-7":                    {kind: "text/plain; charset=utf-7", body: utf7(s)},
		"EBCDIC that is not":       {kind: "text/plain; charset=ibm037", body: s},
		"charset of no name":       {kind: "application/json; charset=x-none", body: `{"a":"` + s + `"}`},
		"quoted printable":         {kind: "text/plain", more: "Content-Transfer-Encoding: quoted-printable\r\n", body: quoted(s)},
		"hex with spaces":          {kind: "text/plain", body: spacedHex(s, " ")},
		"hex with colons":          {kind: "text/plain", body: spacedHex(s, ":")},
		`\x escapes`:               {kind: "text/plain", body: spacedHex(s, `\x`)},
		"GraphQL":                  {kind: "application/graphql", body: `{a(b:"` + escapedJSON(s) + `")}`},
		"YAML":                     {kind: "application/yaml", body: "a: \"" + escapedJSON(s) + "\"\n"},
		"SSE":                      {kind: "text/event-stream", body: "data: " + s + "\n\n"},
		"after a NUL":              {kind: "text/plain", body: "\x00" + s},
		"between bad bytes":        {kind: "text/plain", body: "\xff" + s + "\xfe"},
		"between bad bytes, JSON":  {kind: "application/json", body: "{\"a\":\"\xff" + s + "\xff\"}"},
		"JSON, one name twice":     {kind: "application/json", body: `{"a":"x","a":"` + s + `"}`},
		"JSON behind a BOM":        {kind: "application/json", body: "\xef\xbb\xbf{\"a\":\"" + escapedJSON(s) + `"}`},
		"JSON with a comment":      {kind: "application/json", body: `{/*x*/"a":"` + escapedJSON(s) + `",}`},
		"JSON, broken":             {kind: "application/json", body: `{"a":"` + escapedJSON(s)},
		"JSON, two documents":      {kind: "application/json", body: `{"a":1}{"b":"` + escapedJSON(s) + `"}`},
		"JSON, deep":               {kind: "application/json", body: strings.Repeat("[", 400) + `"` + s + `"` + strings.Repeat("]", 400)},
		"ascii85":                  {kind: "text/plain", body: s[:0] + "<~" + a85(s) + "~>" + s},
	}
	for name, c := range map[string][2]string{"value": {"a.txt", s}, "file name": {s + ".txt", "x"}, "escaped file name": {percent(s) + ".txt", "x"}, "gzip": {"a.gz", gzipped(s)},
		"JSON": {"a.json", `{"a":"` + escapedJSON(s) + `"}`}} {
		kind, body := inParts("application/octet-stream", "a", c[0], c[1])
		all["multipart, "+name] = leak{kind: kind, body: body}
	}
	kind, body := inParts("text/plain", s, "a", "x")
	all["multipart, name"] = leak{kind: kind, body: body}
	kind, body = inParts("text/plain", "a", "a", b64, "Content-Transfer-Encoding", "base64")
	all["multipart, base64"] = leak{kind: kind, body: body}
	kind, body = inParts("text/plain", "a", "a", "x", "X-Other", s)
	all["multipart, header"] = leak{kind: kind, body: body}
	kind, body = inParts("text/plain", "a", "a", "x")
	all["multipart, preamble"] = leak{kind: kind, body: s + "\r\n" + body}
	all["multipart, epilogue"] = leak{kind: kind, body: body + "\r\n" + s}
	all["multipart of another boundary"] = leak{kind: "multipart/form-data; boundary=zzz", body: body + s}
	return all
}

func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}

func escapedJSON(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\u%04x`, s[i])
	}
	return b.String()
}

func entities(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "&#x%x;", s[i])
	}
	return b.String()
}

func quoted(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "=%02X", s[i])
	}
	return b.String()
}

func spacedHex(s, between string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%s%02x", between, s[i])
	}
	return b.String()
}

func a85(s string) string {
	b := make([]byte, ascii85.MaxEncodedLen(len(s)))
	return string(b[:ascii85.Encode(b, []byte(s))])
}

func (l leak) text(host string) string {
	method, target := "GET", l.target
	if l.body != "" {
		method = "POST"
	}
	if l.method != "" {
		method = l.method
	}
	if target == "" {
		target = "/"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s", method, target, host, l.more)
	if l.kind != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", l.kind)
	}
	if l.encoding != "" {
		fmt.Fprintf(&b, "Content-Encoding: %s\r\n", l.encoding)
	}
	if l.body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(l.body))
	}
	return b.String() + "\r\n" + l.body
}

func TestAttack_APlantedSecretInEveryPlaceAndForm(t *testing.T) {
	w := attacked(t, setup{})
	// Bounds of the engine: a run of base64 of fewer than 24 characters is not
	// opened, and quoted-printable text only in a multipart body, and bytes in
	// hexadecimal that stand apart not at all, unless it is a registered secret's.
	known := map[string]bool{"header, base64 " + plantedCard: true, "JSON, base64 " + plantedCard: true}
	for _, s := range allPlanted[1:] {
		for _, name := range []string{"quoted printable", "hex with spaces", "hex with colons"} {
			known[name+" "+s] = true
		}
	}
	passed := 0
	for _, s := range allPlanted {
		for name, l := range leaks(s) {
			before := len(w.plain.requests())
			r := say(w.dial(w.open), l.text(fmt.Sprintf("plain.test:%d", w.plain.port)))
			seen := w.plain.requests()[before:]
			if r != nil && r.StatusCode == 200 {
				passed++
			}
			if what := leaked(seen); what != "" && !known[name+" "+s] {
				t.Errorf("%s: %s", name, what)
			}
		}
	}
	if passed == 0 {
		t.Error("nothing passed at all: this test sees nothing")
	}
}
