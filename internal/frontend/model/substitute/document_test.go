package substitute_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/substitute"
)

const githubToken = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

// encodePDF returns a PDF in base64 with one page that has the text.
func encodePDF(text string) string {
	content := "BT (" + text + ") Tj ET"
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"+
		"2 0 obj<</Kids[3 0 R]>>endobj\n3 0 obj<</Type/Page/Contents 4 0 R>>endobj\n"+
		"4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n", len(content), content))
}

// TestReplaceSearchesDocuments: only what is certainly a secret refuses a document, whatever calls itself one.
func TestReplaceSearchesDocuments(t *testing.T) {
	binary := base64.StdEncoding.EncodeToString([]byte("RIFF\x00\x00WAVE\x01\xff"))
	asText := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	document := func(media, data string) string {
		return `{"type":"document","source":{"type":"base64","media_type":"` + media + `","data":"` + data + `"}}`
	}
	for name, c := range map[string]struct{ part, refused, notInspected string }{
		"a token": {document("application/pdf", encodePDF("use "+githubToken)),
			"page 1 of the PDF in messages[0].content[0] holds a secret (secret.github)", ""},
		"another type": {document("image/png", encodePDF(githubToken)), "page 1 of the PDF", ""},
		"registered":   {document("application/pdf", encodePDF(registered)), "secret.literal", ""},
		"a word":       {document("application/pdf", encodePDF("password: swordfish")), "", ""},
		"a password": {document("application/pdf", encodePDF("password: Maple417!xq")),
			"secret.assignment", ""},
		"personal": {document("application/pdf", encodePDF("alice@corp-x.com, 4111 1111 1111 1111")), "", ""},
		"text": {document("text/csv", asText("a,b\nc,"+githubToken)),
			"the document in messages[0].content[0] holds", ""},
		"harmless text": {document("text/csv", asText("a,b\nc,d")), "", ""},
		"another document": {document("application/zip", asText("PK\x03\x04\x00\x00")),
			"", "a document that is no PDF"},
		"no base64":     {document("application/pdf", "*"+githubToken), "the document in", ""},
		"damaged":       {document("application/pdf", asText("%PDF-1.7 \x00")), "", "PDF: damaged"},
		"at an address": {`{"type":"document","source":{"type":"url","url":"https://a.example/a.pdf"}}`, "", ""},
		"sound":         {`{"type":"input_audio","input_audio":{"format":"wav","data":"` + binary + `"}}`, "", "a picture or sound"},
		"of a tool, nested": {`{"type":"tool_result","tool_use_id":"t","content":[` +
			document("application/pdf", encodePDF(githubToken)) + `]}`, "messages[0].content[0].content[0] holds", ""},
	} {
		body := `{"messages":[{"role":"user","content":[` + c.part + `]}]}`
		r, err := substitute.Replace(newEngine(t), nil, newSession(), dialect.Messages, []byte(body),
			substitute.AllowBinaries)
		if c.refused != "" {
			refused, ok := errors.AsType[*holdfast.Error](err)
			if !ok || refused.Kind != holdfast.KindDomainBlocked || !strings.Contains(refused.Why, c.refused) ||
				!strings.Contains(refused.Hint, "binary: unsearched") || strings.Contains(refused.Why, githubToken) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var want []string
		if c.notInspected != "" {
			want = []string{"messages[0].content[0]: " + c.notInspected}
		}
		if err != nil || string(r.Body) != body || !slices.Equal(r.NotInspected, want) || r.Uninspected != len(want) {
			t.Errorf("%s: %v %+v", name, err, r)
		}
	}
}

// TestReplaceFindsValuesOfTheSessionInDocuments: a value that was found by its name in a text is one in a document.
func TestReplaceFindsValuesOfTheSessionInDocuments(t *testing.T) {
	body := `{"messages":[{"role":"user","content":[{"type":"text","text":"DB_PASSWORD=Maple417!xq"},` +
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` +
		encodePDF("it is Maple417!xq here") + `"}}]}]}`
	_, err := substitute.Replace(newEngine(t), nil, newSession(), dialect.Messages, []byte(body),
		substitute.AllowBinaries)
	if err == nil || !strings.Contains(err.Error(), "page 1 of the PDF in messages[0].content[1]") {
		t.Fatal(err)
	}
}
