package egress

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// D25: a request that cannot be made safe is 403; 500 is for an engine that failed.
func TestUnsafeRequestsAreNoFaultOfTheEngine(t *testing.T) {
	for _, mode := range []domain.Redaction{domain.Mask, domain.Refuse} {
		w := newRow(t, domain.Domain{Request: mode})
		path := base64.RawURLEncoding.EncodeToString([]byte("see " + someKey))
		for name, r := range map[string]*reply{
			"wrapped in a path": w.send("GET", w.url("good.test")+"a/"+path, ""),
			"in a query":        w.send("GET", w.url("good.test")+"a?u=https://h.test/"+path, ""),
			"a name twice": w.send("POST", w.url("good.test"), `{"to":"`+someMail+`","to":"twice"}`, "Content-Type",
				"application/json"),
		} {
			if r.StatusCode != http.StatusForbidden && (r.StatusCode != 200 || name == "a name twice") {
				t.Errorf("%s, %s: %d %s", mode, name, r.StatusCode, r.Text)
			}
		}
		for _, seen := range w.up.requests() {
			if seen.URI == "/a/"+path {
				t.Errorf("%s: sent %s", mode, seen.URI)
			}
		}
	}
	w := newModels(t, setup{rows: documentRows(domain.RefuseParts)})
	resp, body := w.asks(w.client(), `{"role":"user","content":[{"type":"document","source":{"type":"base64",`+
		`"media_type":"application/pdf","data":"`+documentOf("harmless")+`"}}]}`)
	if resp.StatusCode != http.StatusForbidden || len(w.up.requests()) != 0 {
		t.Errorf("a clean document, refused: %d %s", resp.StatusCode, body)
	}
}
