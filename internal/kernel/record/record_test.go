package record

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
	"github.com/holdfast-dev/holdfast/ledger"
)

const secret = "ghp_Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1"

func newWriter(t *testing.T) *Writer {
	t.Helper()
	e, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return NewWriter(detector.NewRecords(e, nil), rand.Reader)
}

func TestQuoteRedactsBeforeItCuts(t *testing.T) {
	w := newWriter(t)
	if got := w.Quote("a "+secret, 12); strings.Contains(got, "ghp") {
		t.Errorf("%q", got)
	}
	// A secret that the window splits is dropped with the edge.
	long := strings.Repeat("a ", (maskWindow-20)/2) + secret
	if got := w.Quote(long, len(long)); strings.Contains(got, "ghp_") || len(got) > maskWindow-maskEdge+3 {
		t.Errorf("%d bytes end in %q", len(got), got[len(got)-40:])
	}
}

func TestResultKeepsAnExcerptAndAHash(t *testing.T) {
	w := newWriter(t)
	for _, c := range []struct {
		text  string
		found bool
		short bool
	}{
		{`{"a":1}`, false, true},
		{`{"a":"` + secret + `"}`, true, true},
		{`"` + strings.Repeat("long ", 500) + `"`, false, false},
	} {
		r, err := w.Result([]byte(c.text))
		if err != nil || r.Found == nil || *r.Found != c.found || r.Hash != ledger.PartHash(r.Part) {
			t.Fatalf("%.20q: %+v, %v", c.text, r, err)
		}
		kept, err := ledger.PartContent(r.Part)
		if err != nil || strings.Contains(string(kept), "ghp_") || IsShort([]byte(c.text)) != c.short {
			t.Errorf("%q, %v", kept, err)
		}
		if sum := sha256.Sum256([]byte(c.text)); !c.short && !strings.HasSuffix(string(kept),
			hex.EncodeToString(sum[:])+")") {
			t.Errorf("%q has no hash", kept)
		}
	}
	r, err := w.Result(make([]byte, resultWindow+1))
	if err != nil || r.Found != nil || r.Rules != nil || len(r.Part) > 200 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestPreviewShowsWhatIsHidden(t *testing.T) {
	w := newWriter(t)
	for text, want := range map[string]string{`"a"`: `"a"`, "\"a\u202eb\"": `"a\u202eb"`,
		"\"\U000e0041\"": `"\udb40\udc41"`} {
		if p, err := w.Preview([]byte(text)); err != nil || p.Text != want || p.Cut || p.Masked {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
	p, err := w.Preview([]byte(`"` + strings.Repeat("a b ", previewLimit) + `"`))
	if err != nil || !p.Cut || !strings.Contains(p.Text, " bytes shown)") {
		t.Errorf("%+v, %v", p, err)
	}
	q, err := w.Preview([]byte(`"` + secret + `"`))
	if both := q.Join(p); err != nil || !q.Masked || !both.Cut || !both.Masked || !strings.Contains(both.Text,
		besideWord) ||
		both.Hash() == p.Hash() {
		t.Errorf("%+v, %v", both, err)
	}
}

func TestRequestKeepsNothingOfALongPayload(t *testing.T) {
	w := newWriter(t)
	if part, hash, err := w.Request([]byte(`{"a":1}`)); err != nil || len(part) == 0 || hash == "" {
		t.Errorf("%q, %q, %v", part, hash, err)
	}
	if part, hash, err := w.Request(make([]byte, requestLimit+1)); err != nil || part != nil || hash != "" {
		t.Errorf("%d bytes, %q, %v", len(part), hash, err)
	}
	if _, err := w.FeatureText(strings.Repeat("a", ledger.MaxFeatureText)); err == nil {
		t.Error("a feature may record more than a record holds")
	}
}

func TestListSpokenBeginsWithTheGravest(t *testing.T) {
	found := []constitution.Finding{{Rule: "noted", Verdict: holdfast.Allow}, {Rule: "held", Verdict: holdfast.Hold},
		{Rule: "denied", Verdict: holdfast.Deny}, {Rule: "critical", Verdict: holdfast.Deny,
			Severity: constitution.SeverityCritical}}
	for range ledger.MaxSpoken {
		found = append(found, constitution.Finding{Rule: "noted", Verdict: holdfast.Allow})
	}
	list, more := ListSpoken(found)
	if len(list) != ledger.MaxSpoken || more != 4 || list[0].Rule != "critical" || list[1].Rule != "denied" ||
		list[2].How != ledger.RuleHeld || found[0].Rule != "noted" {
		t.Errorf("%d more than %+v", more, list[:3])
	}
}

// TestWriterIsSafeForConcurrentUse is for the race detector.
func TestWriterIsSafeForConcurrentUse(t *testing.T) {
	w := newWriter(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			e := &ledger.Event{ID: "i", TenantID: "t", Name: "n", Who: "w", Subject: "s"}
			if l, err := w.Leaf(ledger.KindEvent, "t", "c", e.Timestamp, e, nil); err == nil && l.Crossing != "c" {
				t.Errorf("%+v", l)
			}
		})
	}
	all.Wait()
}
