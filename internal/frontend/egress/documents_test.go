package egress

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/ledger"
)

// documentOf returns a PDF in base64 whose second page has the text.
func documentOf(text string) string {
	page := func(contents int) string {
		return fmt.Sprintf("<</Type/Page/Contents %d 0 R/Resources<</Font<</F<</Type/Font/Subtype/Type1"+
			"/BaseFont/Courier>>>>>>>>", contents)
	}
	stream := func(text string) string {
		content := "BT /F 9 Tf 50 700 Td (" + text + ") Tj ET"
		return fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(content), content)
	}
	pdf := "%PDF-1.7\n"
	for i, o := range []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 2/Kids[3 0 R 4 0 R]>>",
		page(5), page(6), stream("nothing"), stream(text)} {
		pdf += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	return base64.StdEncoding.EncodeToString([]byte(pdf + "trailer<</Root 1 0 R>>\n%%EOF\n"))
}

// documentRows are modelRows with a setting of parts. Unsearched ones need a window, because nothing else bounds them.
func documentRows(parts domain.Parts) func(tls, plain uint16) []domain.Domain {
	return func(tls, plain uint16) []domain.Domain {
		rows := modelRows(tls, plain)
		for i := range rows {
			rows[i].Parts = parts
			if parts == domain.UnsearchedParts {
				rows[i].Models.Window = 1000
			}
		}
		return rows
	}
}

// notInspected returns the number and the places of the parts that the newest entry calls not inspected.
func (w *world) notInspected() (int, []string) {
	w.t.Helper()
	_, e := w.readNewest()
	text, err := ledger.PartContent(e)
	w.must(err)
	p := story.Exchanged(text).Placeholders
	if p == nil {
		return 0, nil
	}
	return p.Uninspected, p.NotInspected
}

// D13a: pictures, sound and documents pass byte for byte, and the record names those that were not inspected. A
// secret in a document refuses the request with its page named, unless the row says that documents are not searched.
func TestModelsSearchDocuments(t *testing.T) {
	picture := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00" + strings.Repeat("\x01\x02", 99)))
	harmless, telling := documentOf("harmless, of "+ownMail), documentOf(ownToken)
	anthropic := func(data string) string {
		return `{"role":"user","content":[{"type":"text","text":"read it"},{"type":"document","source":{` +
			`"type":"base64","media_type":"application/pdf","data":"` + data + `"}}]}`
	}
	result := func(data string) string {
		return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"document",` +
			`"source":{"type":"base64","media_type":"application/pdf","data":"` + data + `"}}]}]}`
	}
	image := `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` +
		picture + `"}}]}`
	const refusal = "page 2 of the PDF in %s holds a secret (secret.github)"
	for name, c := range map[string]struct {
		parts        domain.Parts
		message      string
		refused      string
		notInspected string
	}{
		"picture":  {domain.AllowParts, image, "", "messages[0].content[0]: a picture or sound"},
		"document": {domain.AllowParts, anthropic(harmless), "", ""},
		"with a secret": {domain.AllowParts, anthropic(telling),
			fmt.Sprintf(refusal, "messages[0].content[1]"), ""},
		"in a tool result": {domain.AllowParts, result(telling),
			fmt.Sprintf(refusal, "messages[0].content[0].content[0]"), ""},
		"unsearched": {domain.UnsearchedParts, anthropic(telling), "",
			"messages[0].content[1]: not searched by the row"},
		"damaged":           {domain.AllowParts, anthropic(harmless[:400]), "window", ""},
		"document, refused": {domain.RefuseParts, anthropic(harmless), "messages[0].content[1]: ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newModels(t, setup{rows: documentRows(c.parts)})
			last := w.answers(func(string) string { return anthropicSays(`{"type":"text","text":"ok"}`) })
			resp, body := w.asks(w.client(), c.message)
			if c.refused != "" {
				if resp.StatusCode/100 != 4 || !strings.Contains(body, c.refused) || len(w.up.requests()) != 0 ||
					strings.Contains(body, ownToken) {
					t.Fatalf("%d %s", resp.StatusCode, body)
				}
				return
			}
			if resp.StatusCode != 200 || !strings.Contains(last(), c.message) {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			w.entries(1)
			n, places := w.notInspected()
			if strings.Join(places, " ") != c.notInspected || n != len(places) {
				t.Errorf("not inspected: %d %q", n, places)
			}
		})
	}
}

// D13a: OpenAI's documents are searched in the same way.
func TestModelsSearchDocumentsOfOpenAI(t *testing.T) {
	file := func(data string) string {
		return `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + data + `"}}`
	}
	input := func(data string) string {
		return `{"model":"gpt-x","input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf",` +
			`"file_data":"data:application/pdf;base64,` + data + `"}]}]}`
	}
	chat := func(part string) string {
		return `{"model":"gpt-x","max_completion_tokens":50,"messages":[{"role":"user","content":[` + part + `]}]}`
	}
	for name, c := range map[string]struct{ path, body, refused string }{
		"file": {"/v1/chat/completions", chat(file(documentOf("harmless"))), ""},
		"file, secret": {"/v1/chat/completions", chat(file(documentOf(ownToken))),
			"page 2 of the PDF in messages[0].content[0] holds"},
		"input": {"/v1/responses", input(documentOf("harmless")), ""},
		"input, secret": {"/v1/responses", input(documentOf(ownToken)),
			"page 2 of the PDF in input[0].content[0] holds"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newModels(t, setup{rows: documentRows(domain.AllowParts)})
			last := w.answers(func(string) string { return `{"id":"x","model":"gpt-x","usage":{}}` })
			resp, body := posted(t, w.client(), "https://"+w.at("other.test")+c.path, c.body)
			if c.refused != "" {
				if resp.StatusCode == 200 || !strings.Contains(body, c.refused) || len(w.up.requests()) != 0 {
					t.Fatalf("%d %s", resp.StatusCode, body)
				}
				return
			}
			_, sent, _ := strings.Cut(c.body, `"content":`)
			sent, _, _ = strings.Cut(sent, "]")
			if resp.StatusCode >= 400 || !strings.Contains(last(), sent) {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			w.entries(1)
			if _, places := w.notInspected(); len(places) > 0 {
				t.Errorf("not inspected: %q", places)
			}
		})
	}
}
