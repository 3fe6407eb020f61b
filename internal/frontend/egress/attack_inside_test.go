package egress

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// carried is one request and what of it carries the secret: if that arrives as it
// was sent, whoever reads it has the secret.
type carried struct {
	leak
	carrier string
}

func inText(carrier string) carried {
	return carried{leak{kind: "text/plain", body: "so: " + carrier + " it is"}, carrier}
}

func typed(kind, before, carrier, after string) carried {
	return carried{leak{kind: kind, body: before + carrier + after}, carrier}
}

// eachByte writes s byte by byte.
func eachByte(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

// spelled are the ways that an agent inside may spell a secret which some decoder
// of an ordinary service undoes.
func spelled(s string) map[string]carried {
	std := base64.StdEncoding.EncodeToString([]byte(s))
	raw := base64.RawURLEncoding.EncodeToString([]byte(s))
	half := len(s) / 2
	all := map[string]carried{
		"glued to a word in front":      inText("x" + s),
		"glued to a word behind":        inText(s + "x"),
		"between underscores":           inText("_" + s + "_"),
		"behind an escaped newline":     inText(`a\n` + s),
		"behind an escaped equals sign": inText("token%3D" + s),
		"behind an escaped colon":       typed("application/json", `{"a":"`, `k\\u003d`+s, `"}`),
		"behind a tab escape":           typed("application/json", `{"a":"`, `\\t`+s, `"}`),
		"%u escapes, body":              inText(eachByte(s, "%%u%04x")),
		"%u escapes, query":             {leak{target: "/?q=" + eachByte(s, "%%u%04x")}, eachByte(s, "%%u%04x")},
		"%u escapes, form":              typed("application/x-www-form-urlencoded", "a=", eachByte(s, "%%u%04x"), ""),
		`\u{} escapes`:                  typed("text/javascript", `x="`, eachByte(s, `\u{%x}`), `"`),
		`octal escapes`:                 typed("text/plain", `x="`, eachByte(s, `\%03o`), `"`),
		"CSS escapes":                   typed("text/css", `a{content:"`, eachByte(s, `\%06x`), `"}`),
		"decimal references":            typed("text/html", "<p>", eachByte(s, "&#%d;"), "</p>"),
		"decimal, zeros":                typed("text/html", "<p>", eachByte(s, "&#%08d;"), "</p>"),
		"references without end":        typed("text/html", "<p>", eachByte(s, "&#%d"), "</p>"),
		"upper-case references":         typed("text/html", "<p>", eachByte(s, "&#X%X;"), "</p>"),
		"named references":              typed("text/html", "<p>", strings.NewReplacer("_", "&lowbar;", "-", "&hyphen;").Replace(s), "</p>"),
		"references in JSON":            typed("application/json", `{"a":"`, entities(s), `"}`),
		"hex upper":                     inText(strings.ToUpper(hex.EncodeToString([]byte(s)))),
		"hex with 0x each":              inText(eachByte(s, "0x%02x, ")),
		"hex behind 0x":                 inText("0x" + hex.EncodeToString([]byte(s))),
		"hex as a number":               typed("application/json", `{"a":`, hex.EncodeToString([]byte(s)), `}`),
		"tag characters":                inText(tagsOf(s)),
		`\U escapes`:                    inText(eachByte(s, `\U%08x`)),
		"hex in JSON":                   typed("application/json", `{"a":"`, hex.EncodeToString([]byte(s)), `"}`),
		"base64 in text":                inText(std),
		"base64 URL in text":            inText(raw),
		"base64 in a path":              {leak{target: "/a/" + raw + "/b"}, raw},
		"base64 in a form":              typed("application/x-www-form-urlencoded", "a=", percent(std), ""),
		"data URL":                      typed("text/html", `<img src="data:text/plain;base64,`, std, `">`),
		"base64 in XML":                 typed("application/xml", "<a>", std, "</a>"),
		"base64 in a word of MIME":      {leak{more: "X-A: =?utf-8?B?" + std + "?=\r\n"}, std},
		"quoted word of MIME":           {leak{more: "X-A: =?utf-8?Q?" + quoted(s) + "?=\r\n"}, quoted(s)},
		"percent in a header":           {leak{more: "X-A: UTF-8''" + percent(s) + "\r\n"}, percent(s)},
		"referer":                       {leak{more: "Referer: https://x.test/?a=" + s + "\r\n"}, s},
		"referer, escaped":              {leak{more: "Referer: https://x.test/?a=" + percent(s) + "\r\n"}, percent(s)},
		"origin":                        {leak{more: "Origin: https://" + strings.ToLower(s) + ".test\r\n"}, strings.ToLower(s)},
		"accept":                        {leak{more: "Accept: text/" + s + "\r\n"}, s},
		"date":                          {leak{more: "If-Modified-Since: " + s + "\r\n"}, s},
		"baggage":                       {leak{more: "Baggage: a=" + percent(s) + "\r\n"}, percent(s)},
		"path parameter":                {leak{target: "/a;t=" + s + "/b"}, s},
		"path, slash escaped":           {leak{target: "/a%2F" + s + "%2Fb"}, s},
		"query, semicolons":             {leak{target: "/?a=1;b=" + s + ";c=2"}, s},
		"query, brackets":               {leak{target: "/?a[" + s + "]=1"}, s},
		"query, plus":                   {leak{target: "/?a=x+" + s + "+y"}, s},
		"query, JSON":                   {leak{target: "/?a=%7B%22b%22%3A%22" + percent(escapedJSON(s)) + "%22%7D"}, percent(escapedJSON(s))},
		"overlong UTF-8":                inText(eachByte(s, "\xc1%c")),
		"URL in JSON":                   typed("application/json", `{"u":"https://x.test/?q=`, percent(s), `"}`),
		"URL in text":                   inText("https://x.test/?q=" + percent(s)),
		"JSON in a form":                typed("application/x-www-form-urlencoded", "payload=%7B%22a%22%3A%22", percent(escapedJSON(s)), "%22%7D"),
		"JSON in XML":                   typed("application/xml", "<a>{\"b\":\"", escapedJSON(s), "\"}</a>"),
		"JSON in SSE":                   typed("text/event-stream", `data: {"a":"`, escapedJSON(s), "\"}\n\n"),
		"CDATA":                         typed("application/xml", "<a><![CDATA[", s, "]]></a>"),
		"XML attribute":                 typed("application/xml", "<a b='", entities(s), "'/>"),
		"XML comment":                   typed("application/xml", "<a><!-- ", s, " --></a>"),
		"XML instruction":               typed("application/xml", "<?x ", s, " ?><a/>"),
		"XML entity":                    typed("application/xml", `<!DOCTYPE a [<!ENTITY b "`, entities(s), `">]><a>&b;</a>`),
		"CSV":                           typed("text/csv", "a,b\r\n1,\"", s, "\"\r\n"),
		"TOML":                          typed("application/toml", `a = "`, escapedJSON(s), `"`),
		"MIME message":                  typed("message/rfc822", "Subject: x\r\nContent-Transfer-Encoding: base64\r\n\r\n", std, "\r\n"),
		"JWT's middle":                  inText("eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(`{"a":"`+s+`"}`)) + "."),
		"protobuf":                      typed("application/x-protobuf", string([]byte{10, byte(len(s))}), s, ""),
		"gRPC":                          typed("application/grpc", string([]byte{0, 0, 0, 0, byte(len(s) + 2), 10, byte(len(s))}), s, ""),
		"msgpack":                       typed("application/msgpack", string([]byte{0x81, 0xa1, 'a', 0xd9, byte(len(s))}), s, ""),
		"CBOR":                          typed("application/cbor", string([]byte{0xa1, 0x61, 'a', 0x78, byte(len(s))}), s, ""),
		"base64 broken at 4":            typed("application/json", `{"a":"`, strings.Join(everyNth(std, 4), `\n`), `"}`),
		"base64 broken by blanks":       typed("application/json", `{"a":"`, strings.Join(everyNth(std, 8), " "), `"}`),
		"base64 of hex":                 typed("application/json", `{"a":"`, base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString([]byte(s)))), `"}`),
		"hex of base64":                 typed("application/json", `{"a":"`, hex.EncodeToString([]byte(std)), `"}`),
		"base64 of UTF-16":              typed("application/json", `{"a":"`, base64.StdEncoding.EncodeToString([]byte(utf16le(s, false))), `"}`),
		"base64 of percent":             typed("application/json", `{"a":"`, base64.StdEncoding.EncodeToString([]byte(percent(s))), `"}`),
		"base64 of JSON escapes":        typed("application/json", `{"a":"`, base64.StdEncoding.EncodeToString([]byte(`{"a":"`+escapedJSON(s)+`"}`)), `"}`),
		"soft hyphens":                  inText(strings.Join(everyNth(s, 4), "\u00ad")),
		"zero width":                    inText(strings.Join(everyNth(s, 1), "\u200b")),
		"word joiners in JSON":          typed("application/json", `{"a":"`, strings.Join(everyNth(s, 3), `\u2060`), `"}`),
		"combining grapheme joiner":     inText(strings.Join(everyNth(s, 3), "\u034f")),
		"variation selectors":           inText(strings.Join(everyNth(s, 3), "\ufe0f")),
		"backspaces":                    inText(strings.Join(everyNth(s, 3), "x\x08")),
		"NULs between":                  typed("application/json", `{"a":"`, strings.Join(everyNth(s, 3), `\u0000`), `"}`),
		"XML empty comment":             typed("application/xml", "<a>", strings.Join([]string{s[:half], s[half:]}, "<!---->"), "</a>"),
		"full width":                    inText(fullWidth(s)),
	}
	kind, body := inParts("message/rfc822", "a", "a", "Content-Transfer-Encoding: base64\r\n\r\n"+std)
	all["multipart, message"] = carried{leak{kind: kind, body: body}, std}
	inner, nested := inParts("text/plain", "a", "a", std, "Content-Transfer-Encoding", "base64")
	kind, body = inParts(inner, "b", "b", nested)
	all["multipart in multipart"] = carried{leak{kind: kind, body: body}, std}
	kind, body = inParts("text/plain", "a", "a", "x", "X-Other", "=?utf-8?B?"+std+"?=")
	all["multipart, header's word"] = carried{leak{kind: kind, body: body}, std}
	kind, body = inParts("text/plain", "a", "a", "x")
	all["multipart, filename*"] = carried{leak{kind: kind, body: strings.Replace(body, `filename="a"`, "filename*=UTF-8''"+percent(s), 1)}, percent(s)}
	all["multipart, folded header"] = carried{leak{kind: kind, body: strings.Replace(body, `filename="a"`, "filename=\r\n \""+s+"\"", 1)}, s}
	all["multipart, LF only"] = carried{leak{kind: kind, body: strings.ReplaceAll(strings.Replace(body, "\r\n\r\nx", "\r\n\r\n"+s, 1), "\r\n", "\n")}, s}
	kind, body = inParts("text/plain", "a", "a", utf16le(s, false))
	all["multipart, UTF-16"] = carried{leak{kind: kind, body: body}, utf16le(s, false)}
	return all
}

func everyNth(s string, n int) []string {
	var list []string
	for ; len(s) > n; s = s[n:] {
		list = append(list, s[:n])
	}
	return append(list, s)
}

// tagsOf is s in characters that nobody sees (U+E0020 to U+E007E).
func tagsOf(s string) string {
	var b strings.Builder
	for _, c := range s {
		b.WriteRune(c + 0xe0000)
	}
	return b.String()
}

func fullWidth(s string) string {
	var b strings.Builder
	for _, c := range s {
		b.WriteRune(c + 0xfee0)
	}
	return b.String()
}

func TestAttackInside_ASecretSpelledAnotherWay(t *testing.T) {
	w := attacked(t, setup{})
	// Bounds of the engine (doc/redaction.md): a run of base64 of fewer than 24
	// characters is not opened, quoted-printable only in a multipart body; another
	// case, bytes set apart, tags between the letters, and CSS's escapes, which are
	// read as octal, are found of a registered secret or not at all.
	known := map[string]bool{"origin " + plantedAWS: true, "hex of base64 " + plantedCard: true}
	for _, name := range []string{"base64 in text", "base64 URL in text", "base64 in a path", "base64 in a form", "data URL", "base64 in XML",
		"base64 in a word of MIME", "MIME message", "multipart, message"} {
		known[name+" "+plantedCard] = true
	}
	for _, name := range []string{"glued to a word behind", "glued to a word in front", "between underscores"} {
		known[name+" "+plantedCard] = true // a part of an identifier is no card
	}
	for _, s := range allPlanted[1:] {
		for _, name := range []string{"quoted word of MIME", "hex with 0x each", "base64 broken at 4", "base64 broken by blanks", "XML empty comment", "CSS escapes"} {
			known[name+" "+s] = true
		}
	}
	passed := 0
	for _, s := range allPlanted {
		for name, l := range spelled(s) {
			before := len(w.plain.requests())
			r := say(w.dial(w.open), l.text(fmt.Sprintf("plain.test:%d", w.plain.port)))
			if r != nil && r.StatusCode == 200 {
				passed++
			}
			for _, seen := range w.plain.requests()[before:] {
				all := seen.URI + "\n" + seen.Body
				for name, values := range seen.Header {
					all += "\n" + name + ": " + strings.Join(values, "\n")
				}
				if strings.Contains(strings.ToLower(all), strings.ToLower(l.carrier)) && !known[name+" "+s] && !known[name] {
					t.Errorf("%s: %s in %.200q", name, s, all)
				}
			}
		}
	}
	if passed == 0 {
		t.Error("nothing passed at all: this test sees nothing")
	}
}
