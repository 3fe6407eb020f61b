package config

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/judge"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

const judgesText = `version: 1
boundaries:
  - {boundary: mcp/mail/send, risk: MEDIUM, judge: careful}
judges:
  careful:
    kind: rules
    criteria: {strategic_alignment: "5", autonomy_appropriateness: "5", output_quality: "5", resource_efficiency: "5", learning_application: "5"}
  second:
    kind: command
    command: [/usr/local/bin/score]
`

func TestJudgesBecomePolicy(t *testing.T) {
	l, err := load(t, judgesText)
	if err != nil {
		t.Fatal(err)
	}
	careful, second := judge.FromPolicy(l.Policy)["careful"], judge.FromPolicy(l.Policy)["second"]
	if !careful.Pure || careful.Judge == nil || second.Pure || second.Judge == nil || len(second.Version) != 64 || careful.Version == second.Version {
		t.Errorf("%+v, %+v", careful, second)
	}
	var made []holdfast.Contract
	for _, c := range l.Policy.Contracts {
		if strings.HasPrefix(c.Boundary, "judge/") {
			made = append(made, c)
		}
	}
	if len(made) != 1 || made[0].Boundary != "judge/second" || made[0].Consumes[holdfast.Judgements] != 1 {
		t.Errorf("the boundaries of judges are %+v", made)
	}
	moved, err := load(t, strings.Replace(judgesText, "version: 1\n", "version: 1\n\n\n", 1))
	if err != nil || judge.FromPolicy(moved.Policy)["second"].Version != second.Version {
		t.Errorf("a judge that only moved has another version (%v)", err)
	}
}

func TestMistakesInJudges(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown judge":        {"judge: careful}", "judge: carefull}", `holdfast.yaml:3: there is no judge "carefull"`},
		"a missing criterion":  {`, learning_application: "5"`, ``, "the criterion learning_application is missing"},
		"an unknown criterion": {`learning_application: "5"`, `learning_aplication: "5"`, `did you mean "learning_application"?`},
		"not an expression":    {`strategic_alignment: "5"`, `strategic_alignment: "five"`, `there is no "five"`},
		"no program":           {`command: [/usr/local/bin/score]`, `command: []`, "a command without a program"},
		"other kind":           {`kind: command`, `kind: oracle`, "kind"},
		"misplaced":            {`command: [/usr/local/bin/score]`, "command: [/x]\n    criteria: {output_quality: \"5\"}", "criteria is of kind rules alone"},
		"too long":             {`command: [/usr/local/bin/score]`, "command: [/x]\n    timeout: 21s", "at most 20s"},
		"a judge's boundary":   {`boundary: mcp/mail/send`, `boundary: judge/second`, "is a judge's own"},
		"a value for a name":   {`command: [/usr/local/bin/score]`, "command: [/x]\n    env: [\"KEY=value\"]", "no name of an environment variable"},
	} {
		text := strings.Replace(judgesText, c.from, c.to, 1)
		if text == judgesText {
			t.Fatalf("%s: nothing was changed", name)
		}
		_, err := load(t, text)
		if err == nil {
			t.Fatalf("%s: it was taken", name)
		}
		if _, hint := usage.Explain(err); !strings.Contains(err.Error()+hint, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
