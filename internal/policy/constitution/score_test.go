package constitution

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

func TestScore(t *testing.T) {
	for expr, want := range map[string]float64{
		`0.75`: 0.75,
		`1`:    1,
		`args.path.startsWith("/srv/") ? 0.9 : 0.2`: 0.9,
		`args.count > 5 ? 0 : 1`:                    0,
		`args.nested.deep.n / 3.0`:                  0.5,
		`double(args.count) / 10.0`:                 0.7,
		`has(args.nope) ? args.nope : 0.25`:         0.25,
	} {
		s, err := CompileScore(expr, "holdfast.yaml:7")
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		got, err := s.Eval(t.Context(), someFacts(t))
		if err != nil || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v %v", expr, got, err)
		}
	}
}

func TestScoreFails(t *testing.T) {
	for expr, kind := range map[string]error{
		`2`: failure.ErrValue, `-0.1`: failure.ErrValue, `1.0000001`: failure.ErrValue,
		`0.0 / 0.0`: failure.ErrValue, `1.0 / 0.0`: failure.ErrValue,
		`args.path`: failure.ErrValue, `args.nope`: failure.ErrEval, `args.count / 0`: failure.ErrEval,
		`args.tags`:         failure.ErrValue,
		`double(args.path)`: failure.ErrEval,
	} {
		s, err := CompileScore(expr, "c:1")
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got, err := s.Eval(t.Context(), someFacts(t)); !errors.Is(err, kind) || !math.IsNaN(got) {
			t.Errorf("%s: %v %v", expr, got, err)
		}
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	s, err := CompileScore("1", "c:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Eval(gone, Facts{}); !errors.Is(err, failure.ErrTimeout) {
		t.Error(err)
	}
	for _, zero := range []*Score{nil, {}} {
		if _, err := zero.Eval(t.Context(), Facts{}); err == nil {
			t.Error("a score that was not compiled gave a value")
		}
	}
}

func TestCompileScoreRefuses(t *testing.T) {
	for expr, why := range map[string]string{
		``: "", `"x"`: "yields string", `true`: "yields bool", `output.x`: "before the act", `1 +`: "Syntax error",
		`argz.x`: `no "argz"`, strings.Repeat("1+", 3000) + "1": "bytes",
	} {
		_, err := CompileScore(expr, "c.yaml:9")
		if err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "c.yaml:9") {
			t.Errorf("%.20s: %.200v", expr, err)
		}
		if holdfast.KindOf(err) != holdfast.KindConfidence {
			t.Errorf("%.20s: kind %s", expr, holdfast.KindOf(err))
		}
	}
}
