package redact

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// What read one body reads the next: of many at one time each is read as by an
// engine of its own, and nothing that was masked in one stands in another.
func TestBodiesReadWithOneEngineStayApart(t *testing.T) {
	shared := newEngine(t, "canary-of-the-tenant")
	var wg sync.WaitGroup
	for g := range 8 {
		own := newEngine(t, "canary-of-the-tenant")
		wg.Go(func() {
			for n := range 40 {
				doc := manyNested(g*40 + n)
				want, _ := own.Body("application/json", doc)
				got, err := shared.Body("application/json", doc)
				if err != nil || !bytes.Equal(got.Out, want.Out) || !reflect.DeepEqual(got.Findings, want.Findings) {
					t.Errorf("Body = %s, %v; want %s", got.Out, err, want.Out)
				}
				sealed, err := shared.Seal(doc, "id", "data.signature")
				alone, _ := own.Seal(doc, "id", "data.signature")
				if err != nil || !bytes.Equal(sealed.Bytes(), alone.Bytes()) {
					t.Errorf("Seal = %s, %v; want %s", sealed.Bytes(), err, alone.Bytes())
				}
				if mail := fmt.Sprintf("p%d@example.com", g*40+n); bytes.Contains(got.Out, []byte(mail)) || bytes.Contains(sealed.Bytes(), []byte(mail)) {
					t.Errorf("%s is left", mail)
				}
			}
		})
	}
	wg.Wait()
}

// manyNested is a document with documents in its strings, escapes, names that
// are masked, and mail addresses that are its own.
func manyNested(n int) []byte {
	inner := fmt.Sprintf(`{\"to\":\"p%d@example.com\",\"in\":\"{\\\"deep\\\":\\\"p%d@example.com\\\"}\"}`, n, n)
	return fmt.Appendf(nil, `{"id":"%d","p%d@example.com":"%s","data":{"signature":"x"},"list":["caf\u00e9 p%d@example.com","canary-of-the-tenant"],"fill":"%s"}`,
		n, n, inner, n, strings.Repeat("plain words ", n%300))
}
