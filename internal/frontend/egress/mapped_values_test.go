package egress

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// elsewhereRows are modelRows and two rows of an API: one refuses secrets, one masks them.
func elsewhereRows(tls, plain uint16) []domain.Domain {
	return append(modelRows(tls, plain), domain.Domain{Name: "refuse.wild.test", Ports: []uint16{tls}},
		domain.Domain{Name: "mask.wild.test", Ports: []uint16{tls}, Request: domain.Mask})
}

// D13a: what a model does not see goes nowhere else either, in no encoding, unless the row lets it.
func TestMappedValuesDoNotLeaveElsewhere(t *testing.T) {
	w := newModels(t, setup{rows: elsewhereRows})
	w.answers(func(string) string { return anthropicSays(`{"type":"text","text":"ok"}`) })
	question := `{"role":"user","content":"` + jsonEscape(ownMaterial) + `"}`
	if resp, body := w.asks(w.client(), question); resp.StatusCode != 200 {
		t.Fatal(body)
	}
	w.up.answer(nil)
	encoded := base64.StdEncoding.EncodeToString([]byte(ownWord))
	texts := map[string]string{"raw": "see " + ownWord + " there", "base64": "see " + encoded + " there",
		"hex":     "see " + hex.EncodeToString([]byte(ownWord)) + " there",
		"percent": "see " + url.QueryEscape(ownWord) + " there",
		"JSON":    `{"note":"see ` + strings.ReplaceAll(ownWord, "!", `\u0021`) + ` there"}`}
	refuse, mask := "https://"+w.at("refuse.wild.test")+"/notes", "https://"+w.at("mask.wild.test")+"/notes"
	check := func(name string) {
		for form, text := range texts {
			before := len(w.up.requests())
			if resp, body := posted(t, w.client(), refuse, text); resp.StatusCode != http.StatusForbidden ||
				len(w.up.requests()) != before || strings.Contains(body, "Maple") {
				t.Errorf("%s, %s: %d %s", name, form, resp.StatusCode, body)
			}
			if resp, body := posted(t, w.client(), mask, text); resp.StatusCode != 200 {
				t.Errorf("%s, %s: masked: %d %s", name, form, resp.StatusCode, body)
				continue
			}
			asked := w.up.requests()
			got := asked[len(asked)-1].Body
			if got == text || strings.Contains(got, ownWord) || strings.Contains(got, encoded) {
				t.Errorf("%s, %s: sent %q", name, form, got)
			}
		}
		for form, resp := range map[string]*http.Response{
			"URL":    takeAnswer(posted(t, w.client(), refuse+"?q="+url.QueryEscape(ownWord), "x")),
			"header": takeAnswer(posted(t, w.client(), refuse, "x", "X-Note", ownWord)),
		} {
			if resp.StatusCode == 200 {
				t.Errorf("%s, %s: sent", name, form)
			}
		}
	}
	check("the session")
	w.restartMappings()
	check("after a restart")
	// It is a value of this session alone, and what looks like nothing else passes.
	other := w.clientFor(w.sessionOf("alice", "alice-s2"))
	if resp, body := posted(t, other, refuse, texts["raw"]); resp.StatusCode != 200 {
		t.Errorf("another session: %d %s", resp.StatusCode, body)
	}
	if resp, body := posted(t, w.client(), refuse, "nothing of it"); resp.StatusCode != 200 {
		t.Errorf("honest text: %d %s", resp.StatusCode, body)
	}
}

func takeAnswer(resp *http.Response, _ string) *http.Response { return resp }

// D13a: another provider does not see the values either.
func TestMappedValuesDoNotReachAnotherProvider(t *testing.T) {
	w := newModels(t, setup{})
	last := w.answers(func(string) string { return anthropicSays(`{"type":"text","text":"ok"}`) })
	question := `{"role":"user","content":"` + jsonEscape(ownMaterial) + `"}`
	if resp, body := w.asks(w.client(), question); resp.StatusCode != 200 {
		t.Fatal(body)
	}
	s := speakChat()
	s.ask["messages"] = list{obj{"role": "user", "content": "log in with " + ownWord + " please"}}
	var p string
	w.answers(func(asked string) string {
		_, p, _ = strings.Cut(asked, "log in with ")
		p, _, _ = strings.Cut(p, " please")
		return encode(s.document("use "+p, encode(obj{"word": p})))
	})
	_, body := posted(t, w.client(), "https://"+w.at(s.host)+s.path, encode(s.ask))
	if checkUnseen(t, last()); p == ownWord || !strings.Contains(body, "use "+ownWord) {
		t.Errorf("sent %q, got %s", p, body)
	}
}

// D13a: a value of the session does not reach the provider in the address or a header of a request either.
func TestMappedValuesAreMaskedAroundARequestToAModel(t *testing.T) {
	w := newModels(t, setup{})
	last := w.answers(func(string) string { return anthropicSays(`{"type":"text","text":"ok"}`) })
	question := `{"role":"user","content":"` + jsonEscape(ownMaterial) + `"}`
	if resp, body := w.asks(w.client(), question); resp.StatusCode != 200 {
		t.Fatal(body)
	}
	s := speakChat()
	resp, body := posted(t, w.client(), "https://"+w.at(s.host)+s.path+"?note="+url.QueryEscape(ownWord), encode(s.ask),
		"X-Note", "see "+ownWord)
	asked := w.up.requests()
	sent := asked[len(asked)-1]
	if checkUnseen(t, last()); resp.StatusCode != 200 || strings.Contains(sent.Header.Get("X-Note"), ownWord) ||
		!strings.HasPrefix(sent.Header.Get("X-Note"), "see ") {
		t.Errorf("%d %s: the header is %q", resp.StatusCode, body, sent.Header.Get("X-Note"))
	}
	if strings.Contains(sent.URI, ownWord) || strings.Contains(sent.URI, url.QueryEscape(ownWord)) {
		t.Errorf("the address is %q", sent.URI)
	}
}
