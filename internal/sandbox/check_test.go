package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

func good() Spec { return Spec{ID: "r-1", Language: "python3", Code: []byte("print(1)")} }

func never(string) bool { return false }

// Spec 003 2.1, failure predicates 1, 3 and 4, and what a request may not be.
func TestCheckRefuses(t *testing.T) {
	many := map[string][]byte{}
	for i := range MaxFiles + 1 {
		many[fmt.Sprint("f", i)] = nil
	}
	for name, tc := range map[string]struct {
		kind   holdfast.Kind
		change func(*Spec)
	}{
		"no id":               {holdfast.KindProtocol, func(s *Spec) { s.ID = "" }},
		"an id with a path":   {holdfast.KindProtocol, func(s *Spec) { s.ID = "../r" }},
		"a long id":           {holdfast.KindProtocol, func(s *Spec) { s.ID = strings.Repeat("a", 65) }},
		"no language":         {holdfast.KindProtocol, func(s *Spec) { s.Language = "" }},
		"a path for language": {holdfast.KindLanguage, func(s *Spec) { s.Language = "../../bin/sh" }},
		"no code":             {holdfast.KindProtocol, func(s *Spec) { s.Code = nil }},
		"code is not text":    {holdfast.KindProtocol, func(s *Spec) { s.Code = []byte("a\xff") }},
		"code with NUL":       {holdfast.KindProtocol, func(s *Spec) { s.Code = []byte("a\x00") }},
		"large code":          {holdfast.KindCodeSize, func(s *Spec) { s.Code = make([]byte, MaxCode+1) }},
		"a timeout below 0":   {holdfast.KindLimit, func(s *Spec) { s.Timeout = -1 }},
		"a timeout of a year": {holdfast.KindLimit, func(s *Spec) { s.Timeout = 365 * 24 * time.Hour }},
		"just too long":       {holdfast.KindLimit, func(s *Spec) { s.Timeout = MaxTimeout + 1 }},
		"memory below 0":      {holdfast.KindLimit, func(s *Spec) { s.MemoryMB = -1 }},
		"too much memory":     {holdfast.KindLimit, func(s *Spec) { s.MemoryMB = MaxMemoryMB + 1 }},
		"too little memory":   {holdfast.KindLimit, func(s *Spec) { s.MemoryMB = 1 }},
		"three processors":    {holdfast.KindLimit, func(s *Spec) { s.CPUPeriod, s.CPUQuota = time.Second, 3*time.Second }},
		"a quota alone":       {holdfast.KindLimit, func(s *Spec) { s.CPUQuota = time.Second }},
		"a period alone":      {holdfast.KindLimit, func(s *Spec) { s.CPUPeriod = time.Second }},
		"no such wall":        {holdfast.KindLimit, func(s *Spec) { s.Need = []posture.Wall{"moat"} }},
		"too many files":      {holdfast.KindProtocol, func(s *Spec) { s.Files = many }},
		"files too large":     {holdfast.KindProtocol, func(s *Spec) { s.Files = map[string][]byte{"a": make([]byte, MaxFileBytes+1)} }},
		"a file and a folder": {holdfast.KindProtocol, func(s *Spec) { s.Files = map[string][]byte{"a": nil, "a/b": nil} }},
		"a name without word": {holdfast.KindProtocol, func(s *Spec) { s.Environment = map[string]string{"1A": ""} }},
		"the loader's":        {holdfast.KindProtocol, func(s *Spec) { s.Environment = map[string]string{"LD_PRELOAD": "/tmp/x.so"} }},
		"a NUL in it":         {holdfast.KindProtocol, func(s *Spec) { s.Environment = map[string]string{"A": "\x00"} }},
		"a large one":         {holdfast.KindProtocol, func(s *Spec) { s.Environment = map[string]string{"A": strings.Repeat("a", 200_000)} }},
	} {
		s := good()
		tc.change(&s)
		if _, err := Check(s, never); holdfast.KindOf(err) != tc.kind {
			t.Errorf("%s: %v, want %s", name, err, tc.kind)
		}
	}
}

func TestNamesThatLeave(t *testing.T) {
	for _, name := range []string{"", ".", "..", "/etc/passwd", "../a", "a/../b", "a//b", "a/", "./a", "a\nb", "a\x00", "a\x1b[2J", `a\b`, "a\xff",
		strings.Repeat("a", 256), strings.Repeat("a/", 40) + "b", strings.Repeat("abcdefgh/", 130) + "a"} {
		if GoodName(name) {
			t.Errorf("%q passes", name)
		}
		s := good()
		s.Files = map[string][]byte{name: nil}
		if _, err := Check(s, never); holdfast.KindOf(err) != holdfast.KindProtocol {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"a", "a/b.csv", "..a", "a b", "ä", ".hidden", strings.Repeat("a", 255)} {
		if !GoodName(name) {
			t.Errorf("%q is refused", name)
		}
	}
}

// Spec 003 2.1, the table of limits: defaults and maxima.
func TestCheckDefaults(t *testing.T) {
	s, err := Check(good(), never)
	if err != nil || s.Timeout != 10*time.Second || s.MemoryMB != 256 || s.CPUQuota != s.CPUPeriod || s.CPUPeriod <= 0 {
		t.Errorf("%+v, %v", s, err)
	}
	most := good()
	most.Timeout, most.MemoryMB, most.CPUPeriod, most.CPUQuota, most.Code = 30*time.Second, 512, time.Second, 2*time.Second, []byte(strings.Repeat("#", MaxCode))
	if s, err := Check(most, never); err != nil || s.Timeout != most.Timeout || s.MemoryMB != 512 {
		t.Errorf("%v", err)
	}
	program := good()
	program.Language, program.Code = Static, []byte("\x7fELF\x00")
	if _, err := Check(program, never); err != nil {
		t.Error(err)
	}
}

func TestEnvironmentHoldsNoSecret(t *testing.T) {
	s := good()
	s.Environment = map[string]string{"MODE": "fast", "TOKEN": "hunter22"}
	_, err := Check(s, func(text string) bool { return strings.Contains(text, "hunter22") })
	if holdfast.KindOf(err) != holdfast.KindProtocol || strings.Contains(err.Error(), "hunter22") || !strings.Contains(err.Error(), "TOKEN") {
		t.Error(err)
	}
}

// D20: an empty need is every wall but Landlock.
func TestPostureMissing(t *testing.T) {
	all := posture.Posture{Up: slices.DeleteFunc(posture.Walls(), func(w posture.Wall) bool { return w == posture.WallLandlock })}
	if m := all.Missing(nil); m != nil {
		t.Error(m)
	}
	for _, w := range all.Up {
		p := posture.Posture{Up: slices.DeleteFunc(slices.Clone(all.Up), func(o posture.Wall) bool { return o == w })}
		if m := p.Missing(nil); !slices.Equal(m, []posture.Wall{w}) {
			t.Errorf("without %s: %v", w, m)
		}
		if m := p.Missing([]posture.Wall{w}); !slices.Equal(m, []posture.Wall{w}) {
			t.Errorf("needing %s: %v", w, m)
		}
	}
	if m := (posture.Posture{}).Missing(nil); len(m) != len(posture.Walls())-1 {
		t.Error("the zero posture has walls:", m)
	}
}

// The environment is searched once, and again whenever it has changed since.
func TestEnvironmentIsSearchedOnce(t *testing.T) {
	searched := 0
	count := func(s string) bool { searched++; return strings.Contains(s, "secret") }
	s := good()
	s.Environment = map[string]string{"A": "1", "B": "2"}
	s, err := Check(s, count)
	if err != nil || searched != 2 {
		t.Fatal(err, searched)
	}
	s.Need = []posture.Wall{posture.WallPID} // as the door does between the two
	if _, err = Check(s, count); err != nil || searched != 2 {
		t.Error("searched again:", err, searched)
	}
	for what, env := range map[string]map[string]string{
		"changed": {"A": "1", "B": "secret"},
		"more":    {"A": "1", "B": "2", "C": "secret"},
		"moved":   {"A": "1B", "": "2"},
		"shifted": {"A1": "", "B": "2"},
	} {
		later := s
		later.Environment = env
		before := searched
		if _, err := Check(later, count); searched == before && err == nil {
			t.Errorf("%s: not searched", what)
		}
	}
	s.Environment["B"] = "secret" // the same map
	if _, err := Check(s, count); holdfast.KindOf(err) != holdfast.KindProtocol {
		t.Error("a map that was changed passes:", err)
	}
	fresh := good()
	if _, err := Check(fresh, func(string) bool { return true }); err != nil {
		t.Error("an empty environment holds no secret:", err)
	}
}

// TestLimits_003_2_1_everyRow: the default and the maximum of each row of
// "Resource Limits" that a request can set, and that nothing above is taken.
func TestLimits_003_2_1_everyRow(t *testing.T) {
	s, err := Check(good(), never)
	if err != nil || s.Timeout != 10*time.Second || s.MemoryMB != 256 || s.CPUQuota != s.CPUPeriod {
		t.Errorf("defaults: %+v, %v", s, err)
	}
	if MaxOutput != 1<<20 || OpenFiles != 256 || ScratchBytes != 100<<20 || MaxCode != 10<<20 {
		t.Error("a limit that no request can set is not the document's")
	}
	for name, set := range map[string]func(*Spec, bool){
		"wall-clock time": func(s *Spec, over bool) {
			if s.Timeout = 30 * time.Second; over {
				s.Timeout++
			}
		},
		"memory": func(s *Spec, over bool) {
			if s.MemoryMB = 512; over {
				s.MemoryMB++
			}
		},
		"CPU cores": func(s *Spec, over bool) {
			if s.CPUPeriod, s.CPUQuota = 100*time.Millisecond, 200*time.Millisecond; over {
				s.CPUQuota++
			}
		},
	} {
		s := good()
		if set(&s, false); checked(s) != nil {
			t.Errorf("%s: the maximum is refused: %v", name, checked(s))
		}
		if set(&s, true); holdfast.KindOf(checked(s)) != holdfast.KindLimit {
			t.Errorf("%s: above the maximum: %v", name, checked(s))
		}
	}
}

func checked(s Spec) error {
	_, err := Check(s, never)
	return err
}
