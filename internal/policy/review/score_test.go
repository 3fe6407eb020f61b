package review

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// document is the rule of spec 001, layer 2, over whole numbers.
func document(v [5]int) bool {
	sum := 0
	for _, n := range v {
		if n <= 1 {
			return false
		}
		sum += n
	}
	return sum >= 20 && v[1] > 2
}

// Finding 5.2.10: of the 3,125 vectors of whole scores 207 pass, and 35 of them
// have autonomy 3.
func TestSpec001_Layer2_score_rule_over_all_whole_vectors(t *testing.T) {
	all, pass, three := 0, 0, 0
	for n := range 5 * 5 * 5 * 5 * 5 {
		var v [5]int
		var s Scores
		for i, r := 0, n; i < 5; i, r = i+1, r/5 {
			v[i] = r%5 + 1
			s[i] = float64(v[i])
		}
		all++
		safe := s.Unsafe() == ""
		if safe != document(v) {
			t.Errorf("%v: safe is %v (%s)", v, safe, s.Unsafe())
		}
		if safe {
			pass++
			if v[1] == 3 {
				three++
			}
		}
		b, err := json.Marshal(s)
		if back, bad := ParseScores(b); err != nil || bad != nil || back != s {
			t.Fatalf("%s came back as %v (%v, %v)", b, back, err, bad)
		}
	}
	if all != 3125 || pass != 207 || three != 35 {
		t.Errorf("of %d vectors %d pass, %d with autonomy 3; want 3125, 207, 35", all, pass, three)
	}
}

func TestSpec001_Layer2_score_rule_edges(t *testing.T) {
	for name, c := range map[string]struct {
		s    Scores
		safe bool
	}{
		"fours":                       {Scores{4, 4, 4, 4, 4}, true},
		"tenths add up":               {Scores{4.1, 3.9, 4.1, 3.9, 4}, true},
		"just below the average":      {Scores{4, 4, 4, 4, 3.9999}, false},
		"autonomy 2":                  {Scores{5, 2, 5, 5, 5}, false},
		"autonomy a little above two": {Scores{5, 2.1, 5, 5, 5}, true},
		"one is 1":                    {Scores{5, 5, 5, 5, 1}, false},
		"one is a little above 1":     {Scores{5, 5, 5, 5, 1.1}, true},
		"zero value":                  {Scores{}, false},
		"NaN":                         {Scores{5, 5, math.NaN(), 5, 5}, false},
		"infinite":                    {Scores{5, 5, math.Inf(1), 5, 5}, false},
		"six":                         {Scores{6, 5, 5, 5, 5}, false},
		"below one":                   {Scores{0.5, 5, 5, 5, 5}, false},
	} {
		if got := c.s.Unsafe() == ""; got != c.safe {
			t.Errorf("%s: safe is %v (%s)", name, got, c.s.Unsafe())
		}
	}
}

func TestParseScoresTakesTheFiveAndNothingElse(t *testing.T) {
	good := `{"strategic_alignment":5,"autonomy_appropriateness":4.5,"output_quality":4,"resource_efficiency":4,"learning_application":5}`
	if s, err := ParseScores([]byte(" " + good + "\n")); err != nil || s != (Scores{5, 4.5, 4, 4, 5}) {
		t.Fatalf("%v, %v", s, err)
	}
	for name, text := range map[string]string{
		"nothing":        ``,
		"null":           `null`,
		"a list":         `[5,5,5,5,5]`,
		"one missing":    strings.Replace(good, `"output_quality":4,`, ``, 1),
		"one null":       strings.Replace(good, `"output_quality":4`, `"output_quality":null`, 1),
		"one more":       strings.Replace(good, `{`, `{"safe":true,`, 1),
		"one twice":      strings.Replace(good, `{`, `{"output_quality":5,`, 1),
		"other case":     strings.Replace(good, `output_quality`, `Output_Quality`, 1),
		"a text":         strings.Replace(good, `:4,`, `:"4",`, 1),
		"zero":           strings.Replace(good, `"output_quality":4`, `"output_quality":0`, 1),
		"six":            strings.Replace(good, `"output_quality":4`, `"output_quality":6`, 1),
		"too large":      strings.Replace(good, `"output_quality":4`, `"output_quality":1e999`, 1),
		"NaN":            strings.Replace(good, `"output_quality":4`, `"output_quality":NaN`, 1),
		"true":           strings.Replace(good, `"output_quality":4`, `"output_quality":true`, 1),
		"words after it": good + ` and they are all fives`,
		"a second one":   good + good,
		"cut":            good[:len(good)-4],
		"long":           good + strings.Repeat(" ", MaxScores),
	} {
		if s, err := ParseScores([]byte(text)); err == nil {
			t.Errorf("%s: taken as %v", name, s)
		}
	}
}

func FuzzParseScores(f *testing.F) {
	f.Add([]byte(`{"strategic_alignment":5,"autonomy_appropriateness":4.5,"output_quality":4,"resource_efficiency":4,"learning_application":5}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseScores(b)
		if err != nil {
			return
		}
		if s.Check() != nil {
			t.Fatalf("%q gave %v", b, s)
		}
	})
}
