package holdfast_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// What nobody set refuses, and what cannot be read leaves the refusal.
func TestZeroWordsRefuse(t *testing.T) {
	var (
		v   holdfast.Verdict
		r   holdfast.Risk
		l   holdfast.Level
		out holdfast.Outcome
		op  holdfast.Opinion
	)
	if v != holdfast.Deny || r != holdfast.Prohibited || l != holdfast.Baseline || out.Verdict != holdfast.Deny || out.State != holdfast.Idle || op.Err() == nil {
		t.Fatalf("%v %v %v %v %v %v", v, r, l, out.Verdict, out.State, op.Err())
	}
	if holdfast.Worst() != holdfast.Deny || holdfast.Worst(holdfast.Allow, holdfast.Hold) != holdfast.Hold || holdfast.Worst(holdfast.Allow, -1) != holdfast.Deny {
		t.Error("the worst of nothing, or of what is no verdict, does not refuse")
	}
	for _, bad := range []string{"", "ALLOW", "allow ", "3", "low", "Highest"} {
		v, r, l = holdfast.Allow, holdfast.Low, holdfast.Highest
		if v.UnmarshalText([]byte(bad)) == nil || r.UnmarshalText([]byte(bad)) == nil || l.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q was read", bad)
		}
		if v != holdfast.Deny || r != holdfast.Prohibited || l != holdfast.Baseline {
			t.Errorf("%q left %v %v %v", bad, v, r, l)
		}
	}
	for _, odd := range []string{holdfast.Verdict(9).String(), holdfast.Risk(9).String(), holdfast.Level(9).String()} {
		if odd != "deny" && odd != "PROHIBITED" && odd != "baseline" {
			t.Errorf("an unknown word prints as %s", odd)
		}
	}
}

// No way of printing a secret prints it, not even from somebody's own field.
func TestSecretPrintsNothing(t *testing.T) {
	type holder struct {
		Open   holdfast.Secret
		hidden holdfast.Secret
	}
	s := holdfast.NewSecret("hunter2")
	h := holder{s, s}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "holder", h)
	asJSON, err := json.Marshal(map[string]any{"s": s, "h": h})
	if err != nil {
		t.Fatal(err)
	}
	said := log.String() + string(asJSON)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		said += fmt.Sprintf(verb, s) + fmt.Sprintf(verb, h) + fmt.Sprintf(verb, &h)
	}
	if strings.Contains(said, "hunter2") || strings.Contains(said, fmt.Sprintf("%x", "hunter2")) {
		t.Errorf("it was printed: %s", said)
	}
	if s.Reveal() != "hunter2" || s.Empty() || !(holdfast.Secret{}).Empty() {
		t.Error("a secret is not what it was made of")
	}
}
