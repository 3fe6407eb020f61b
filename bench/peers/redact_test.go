package peers

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/sample"
	"github.com/zricethezav/gitleaks/v8/detect"
)

// seeker counts what is to be hidden in a text.
type seeker struct {
	name string
	find func([]byte) int
}

// seekers are our engine and gitleaks' with the rules it comes with. Gitleaks
// looks for secrets alone; ours looks for personal data too, and writes the
// text again where it finds something.
func seekers(t testing.TB) []seeker {
	t.Helper()
	e, err := redact.New(redact.Options{})
	must(t, e, err)
	d, err := detect.NewDetectorDefaultConfig()
	must(t, d, err)
	return []seeker{
		{"holdfast", func(b []byte) int { return len(e.Text(b).Findings) }},
		{"gitleaks", func(b []byte) int { return len(d.DetectString(string(b))) }},
	}
}

// TestBothSeek shows that both find a token in a text that is measured, so that
// comparing their speed means something, and neither finds one without it.
func TestBothSeek(t *testing.T) {
	// It is composed here, so that no scanner takes this file for a leak.
	token := "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
	clean := sample.Code(1, 4<<10)
	for _, s := range seekers(t) {
		if n := s.find(append([]byte("clone with "+token+"\n"), clean...)); n != 1 {
			t.Errorf("%s found %d tokens, not 1", s.name, n)
		}
		if n := s.find(clean); n != 0 {
			t.Errorf("%s found %d things in a clean text", s.name, n)
		}
	}
}

// BenchmarkRedaction prints the median speed of each in MB of a million bytes
// a second, in turns on the same clean text, and the ratio of ours to the
// peer's.
func BenchmarkRedaction(b *testing.B) {
	for _, t := range []sample.Text{
		{Name: "json-64K", Text: sample.Chat(1, 64<<10)}, {Name: "code-64K", Text: sample.Code(1, 64<<10)},
		{Name: "json-4K", Text: sample.Chat(1, 4<<10)}, {Name: "code-4K", Text: sample.Code(1, 4<<10)},
		{Name: "line-100", Text: sample.Short()},
	} {
		b.Run(t.Name, func(b *testing.B) {
			all := seekers(b)
			took := make([][]time.Duration, len(all))
			found := 0
			for b.Loop() {
				for i, s := range all {
					start := time.Now()
					found += s.find(t.Text)
					took[i] = append(took[i], time.Since(start))
				}
			}
			mb := float64(len(t.Text)) * 1e3 // bytes a nanosecond are GB a second
			for i, s := range all {
				b.ReportMetric(mb/median(took[i]), s.name+"-MB/s")
			}
			b.ReportMetric(median(took[1])/median(took[0]), "holdfast/gitleaks")
			if found > 0 {
				b.Errorf("%d things were found in a clean text", found)
			}
		})
	}
}
