package egress

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// ownKey is a private key of two whole lines and a short one.
var ownKey = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + strings.Repeat("b3BlbnNzaC1rZXk/", 4) + "\n" +
	strings.Repeat("q7Xz/+abKLMN0123", 4) + "\nKj4=\n-----END OPENSSH PRIVATE KEY-----\n"

// writesFile returns an answer of a model that writes a file, whole or in pieces.
func writesFile(stream bool, content string) string {
	s := speakMessages()
	arguments := encode(obj{"content": content})
	if stream {
		return asEvents(s.events("writing", arguments)...)
	}
	return encode(s.document("writing", arguments))
}

// writtenFile returns the content of the file in an answer of writesFile.
func writtenFile(t *testing.T, stream bool, body string) string {
	t.Helper()
	s := speakMessages()
	path := s.arguments
	if stream {
		path = s.argumentsPiece
	}
	var file struct{ Content string }
	if err := json.Unmarshal([]byte(joinText(body, path...)), &file); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return file.Content
}

// asUser returns a message of a person.
func asUser(text string) string { return `{"role":"user","content":"` + jsonEscape(text) + `"}` }

// D13a: a private key comes back however the model lays it out, and no line of it leaves later.
func TestModelsRestoreAKeyInEveryLayout(t *testing.T) {
	w := newModels(t, setup{})
	lines := strings.Split(ownKey, "\n")[1:4]
	for name, layout := range map[string]func(string) string{
		"indented": func(k string) string { return "key: |\n  " + strings.ReplaceAll(k, "\n", "\n  ") },
		"diff":     func(k string) string { return "+" + strings.ReplaceAll(k, "\n", "\n+") },
		"escaped":  func(k string) string { return `KEY="` + strings.ReplaceAll(k, "\n", `\n`) + `"` },
		"CRLF":     func(k string) string { return strings.ReplaceAll(k, "\n", "\r\n") },
		"HCL":      func(k string) string { return "k = <<-EOT\n  " + strings.ReplaceAll(k, "\n", "\n  ") + "EOT\n" },
		"JSON":     func(k string) string { return encode(obj{"key": k}) },
	} {
		for _, stream := range []bool{false, true} {
			w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
				asked := w.up.requests()
				var got struct{ Messages []struct{ Content string } }
				if err := json.Unmarshal([]byte(asked[len(asked)-1].Body), &got); err != nil {
					t.Error(err)
				}
				_, key, _ := strings.Cut(got.Messages[0].Content, "deploy key\n")
				kind := "application/json"
				if stream {
					kind = "text/event-stream"
				}
				rw.Header().Set("Content-Type", kind)
				_, _ = rw.Write([]byte(writesFile(stream, layout(key))))
			})
			resp, body := w.asks(w.client(), asUser("use this deploy key\n"+ownKey))
			if got := writtenFile(t, stream, body); got != layout(ownKey) {
				t.Errorf("%s, stream=%v: %q", name, stream, got)
			}
			if changes := resp.Header.Get(refusal.HeaderRedacted); !strings.HasPrefix(changes, "replaced=1; ") {
				t.Errorf("%s: %q", name, changes)
			}
		}
	}
	last := w.answers(func(string) string { return anthropicSays(`{"type":"text","text":"ok"}`) })
	w.asks(w.client(), asUser("@@ -2 +2 @@\n+"+lines[1]+"\n-"+lines[0]))
	for _, r := range w.up.requests() {
		for _, line := range lines {
			if strings.Contains(r.Body, line) {
				t.Errorf("the provider was sent %q", line)
			}
		}
	}
	if !strings.Contains(last(), "@@") {
		t.Fatal("not the request that was sent")
	}
}

// D13a: a value and its encodings have placeholders that agree, and each comes back in its encoding.
func TestModelsSeeEncodingsOfPlaceholders(t *testing.T) {
	w := newModels(t, setup{})
	const mail = "alice.smith@corp-example.com"
	encodings := []func(string) string{
		func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
		func(v string) string { return base64.StdEncoding.EncodeToString([]byte("to=" + v + "\nend")) },
		func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) },
		regexp.QuoteMeta,
		func(v string) string { return strings.ReplaceAll(v, "@", "%40") },
		func(v string) string { return strings.ReplaceAll(v, "@", `\u0040`) },
	}
	compose := func(mail, word string) string {
		text := "raw " + mail + " DB_PASSWORD=" + word
		for _, encode := range encodings {
			text += " | " + encode(mail) + " | " + encode(word)
		}
		return text
	}
	var seen string
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		asked := w.up.requests()
		var got struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal([]byte(asked[len(asked)-1].Body), &got); err != nil {
			t.Error(err)
		}
		seen = got.Messages[0].Content
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte(writesFile(false, seen)))
	})
	_, body := w.asks(w.client(), asUser(compose(mail, ownWord)))
	m := regexp.MustCompile(`^raw (\S+) DB_PASSWORD=(\S+) `).FindStringSubmatch(seen)
	if m == nil || strings.Contains(seen, "alice") || strings.Contains(seen, "Maple") {
		t.Fatalf("sent %q", seen)
	}
	if want := compose(m[1], m[2]); seen != want {
		t.Errorf("sent\n%q, want\n%q", seen, want)
	}
	if got := writtenFile(t, false, body); got != compose(mail, ownWord) {
		t.Errorf("restored\n%q, want\n%q", got, compose(mail, ownWord))
	}
}

// D13a: what the model alters stays, and is counted.
func TestModelsCountAlteredPlaceholders(t *testing.T) {
	w := newModels(t, setup{})
	var said string
	w.answers(func(asked string) string {
		p := sentWords(t, asked)
		said = strings.Join([]string{strings.ToUpper(p[0]), base64.StdEncoding.EncodeToString([]byte(p[2])), p[2][:30],
			p[2][:15] + "' + '" + p[2][15:]}, strings.Repeat(" and", 40)+" ")
		return anthropicSays(`{"type":"text","text":"` + said + `"}`)
	})
	resp, body := w.asks(w.client(), asUser(ownMaterial))
	if changes := resp.Header.Get(refusal.HeaderRedacted); !strings.Contains(changes, "restored=0; altered=4;") ||
		!strings.Contains(body, said) {
		t.Errorf("%q: %s", changes, body)
	}
}

// personalRows are modelRows and two rows of an API: one masks personal data, one refuses it.
func personalRows(tls, plain uint16) []domain.Domain {
	return append(modelRows(tls, plain), domain.Domain{Name: "mask.wild.test", Ports: []uint16{tls}},
		domain.Domain{Name: "refuse.wild.test", Ports: []uint16{tls}, Request: domain.Mask, Personal: domain.Refuse})
}

// D13a: personal data of the session follows `personal` of another row, and is counted by its kind.
func TestMappedPersonalDataIsTreatedAsPersonal(t *testing.T) {
	w := newModels(t, setup{rows: personalRows})
	w.answers(func(string) string { return anthropicSays(`{"type":"text","text":"ok"}`) })
	const number = "C01X-00T47-8ab"
	if resp, body := w.asks(w.client(), asUser(`{"passport_number": "`+number+`"}`)); resp.StatusCode != 200 ||
		!strings.Contains(resp.Header.Get(refusal.HeaderRedacted), "kinds=personal") {
		t.Fatalf("%q %s", resp.Header.Get(refusal.HeaderRedacted), body)
	}
	w.up.answer(nil)
	resp, body := posted(t, w.client(), "https://"+w.at("mask.wild.test")+"/notes", "see "+number+" there")
	asked := w.up.requests()
	if resp.StatusCode != 200 || asked[len(asked)-1].Body != "see [pii] there" {
		t.Errorf("%d %s, sent %q", resp.StatusCode, body, asked[len(asked)-1].Body)
	}
	if got := resp.Header.Get(refusal.HeaderRedacted); got != "masked=1; kinds=personal" {
		t.Errorf("%q", got)
	}
	resp, body = posted(t, w.client(), "https://"+w.at("refuse.wild.test")+"/notes", "see "+number+" there")
	if resp.StatusCode != 403 || !strings.Contains(body, "redact: {personal: mask}") || strings.Contains(body, number) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
