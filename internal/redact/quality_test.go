package redact

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

// score is how well an engine did on the texts of one kind.
type score struct {
	kind string
	// texts are those to mask and those to leave.
	mask, leave int
	// labels is what was to be masked, hit how much of it was; findings is how
	// often something was masked, right how often it had to be.
	labels, hit, findings, right int
	rules                        map[string]int
	misses                       []string
}

func (s *score) recall() float64    { return part(s.hit, s.labels) }
func (s *score) precision() float64 { return part(s.right, s.findings) }

func part(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}

// judge runs an engine over a kind's texts. What is labelled is hit when every
// byte of it is masked, whatever rule did so; a finding is right when at least
// half of it is labelled.
func judge(e *Engine, kind string, list []example) *score {
	s := &score{kind: kind, rules: map[string]int{}}
	for _, x := range list {
		found := e.Text([]byte(x.text)).Findings
		if x.want == nil {
			s.leave++
		} else {
			s.mask++
		}
		for _, l := range x.want {
			s.labels++
			if covered(l, found) {
				s.hit++
			} else {
				s.misses = append(s.misses, fmt.Sprintf("%s (%s) left %q of %q, found %v", kind, x.sub, x.text[l.start:l.end], x.text, found))
			}
		}
		for _, f := range found {
			s.findings++
			if labelledHalf(f, x) {
				s.right++
				s.rules[f.Rule]++
				continue
			}
			s.rules["wrong: "+f.Rule]++
			s.misses = append(s.misses, fmt.Sprintf("%s (%s) masked %q of %q by %s", kind, x.sub, x.text[f.Offset:f.Offset+f.Length], x.text, f.Rule))
		}
	}
	return s
}

func covered(l label, found []finding.Finding) bool {
	at := l.start
	for _, f := range found { // in order of offset
		if f.Offset <= at {
			at = max(at, f.Offset+f.Length)
		}
	}
	return at >= l.end
}

func labelledHalf(f finding.Finding, x example) bool {
	n := 0
	allowed := x.want
	if x.may != nil {
		allowed = x.may
	}
	for _, l := range allowed {
		n += max(0, min(f.Offset+f.Length, l.end)-max(f.Offset, l.start))
	}
	return 2*n >= f.Length
}

// total sums scores up.
func total(kind string, all []*score) *score {
	t := &score{kind: kind, rules: map[string]int{}}
	for _, s := range all {
		t.mask, t.leave = t.mask+s.mask, t.leave+s.leave
		t.misses = append(t.misses, s.misses...)
		t.labels, t.hit, t.findings, t.right = t.labels+s.labels, t.hit+s.hit, t.findings+s.findings, t.right+s.right
	}
	return t
}

// row is a line of the table of doc/redaction.md, rounded down.
func (s *score) row() string {
	down := func(v float64) float64 { return math.Floor(v*100+1e-9) / 100 }
	return fmt.Sprintf("| %s | %d | %d | %.2f | %.2f |", s.kind, s.mask, s.leave, down(s.precision()), down(s.recall()))
}

// scores are those of each kind of a set, in order of their names.
func scores(e *Engine, set map[string][]example) (all []*score) {
	for _, kind := range slices.Sorted(maps.Keys(set)) {
		all = append(all, judge(e, kind, set[kind]))
	}
	return all
}

// TestQuality computes precision and recall of each kind over the labelled
// set, prints which rules found what, and wants 0.98 of both of the whole
// set and of each of its kinds. What was missed, or masked by
// mistake, is listed.
func TestQuality(t *testing.T) {
	all := scores(newEngine(t), labelled())
	for _, s := range append(slices.Clone(all), total("all", all)) {
		wants(t, s, 0.98, 0.98)
	}
	list(t, "HOLDFAST_MISSES", all)
}

// wants fails where a kind is not as good as it must be.
func wants(t *testing.T, s *score, precision, recall float64) {
	t.Helper()
	t.Logf("%s %v", s.row(), s.rules)
	if s.precision() >= precision && s.recall() >= recall {
		return
	}
	t.Errorf("%s: precision %.3f and recall %.3f, want %.3f and %.3f", s.kind, s.precision(), s.recall(), precision, recall)
	for _, m := range shown(s.misses) {
		t.Log(m)
	}
}

// shown is at most forty misses, spread over all of them.
func shown(all []string) []string {
	if len(all) <= 40 {
		return all
	}
	var some []string
	for i := range 40 {
		some = append(some, all[i*len(all)/40])
	}
	return some
}

// list writes every miss to the file that a variable names, if it does.
func list(t *testing.T, variable string, all []*score) {
	t.Helper()
	file := os.Getenv(variable)
	if file == "" {
		return
	}
	var b strings.Builder
	for _, s := range all {
		if len(s.misses) > 0 {
			fmt.Fprintf(&b, "%s\n%s\n\n", s.row(), strings.Join(s.misses, "\n"))
		}
	}
	if err := os.WriteFile(filepath.Clean(file), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
