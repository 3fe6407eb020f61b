package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAHangCanBeRead: where a package runs out of time, the end of what its
// unfinished tests printed is shown, and no more than that.
func TestAHangCanBeRead(t *testing.T) {
	var in, out strings.Builder
	say := func(test, text string) {
		fmt.Fprintf(&in, `{"Action":"output","Package":"p","Test":%q,"Output":%q}`+"\n", test, text)
	}
	fmt.Fprintln(&in, `{"Action":"pass","Package":"p","Test":"TestWell"}`)
	for i := range 10_000 {
		say("TestHangs", fmt.Sprintf("line %d\n", i))
	}
	say("TestHangs", "panic: test timed out after 20m0s\n")
	say("TestHangs", "goroutine 7 [select]:\n")
	say("", "FAIL\tp\t1200.0s\n")
	fmt.Fprintln(&in, `{"Action":"fail","Package":"p","Elapsed":1200}`)
	if code := report(strings.NewReader(in.String()), &out, false, []string{"false"}); code != 1 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"p TestHangs did not end", "test timed out", "goroutine 7 [select]", "no second look: p did not end as its tests did", "line 9999\n", "1 passed, 1 failed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the report", want)
		}
	}
	if n := strings.Count(out.String(), "\n"); n > lastLines+10 {
		t.Errorf("the report has %d lines", n)
	}
}

// TestASkippedTestFailsWhereItMust: only a strict report does not bear one.
func TestASkippedTestFailsWhereItMust(t *testing.T) {
	const in = `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"skip","Package":"p","Test":"TestB"}` + "\n"
	for strict, want := range map[bool]int{false: 0, true: 1} {
		if got := report(strings.NewReader(in), &strings.Builder{}, strict, nil); got != want {
			t.Errorf("strict %v: exit %d", strict, got)
		}
	}
}

// TestASecondLook: a few that failed are run again, alone; what is certain, what
// hung, what are many, and what fails again or is skipped then, has failed.
func TestASecondLook(t *testing.T) {
	event := func(action, test, output string) string {
		return fmt.Sprintf(`{"Action":%q,"Package":"p","Test":%q,"Output":%q}`+"\n", action, test, output)
	}
	fails := func(said string, tests ...string) string {
		text := event("pass", "TestWell", "")
		for _, test := range tests {
			text += event("output", test, said) + event("fail", test, "")
		}
		return text + event("fail", "", "")
	}
	well := event("pass", "TestA/b", "") + event("pass", "TestA", "") + event("pass", "", "")
	many := []string{"T0", "T1", "T2", "T3", "T4", "T5", "T6"}
	for name, c := range map[string]struct {
		first, second string
		code          int
		want          string
	}{
		"passes":         {fails("slow", "TestA/b", "TestA"), well, 0, "1 failed beside others and passed alone: p TestA\n3 passed, 0 failed, 0 skipped\n"},
		"fails again":    {fails("slow", "TestA/b", "TestA"), fails("slow", "TestA/b", "TestA"), 1, "p failed again\n1 passed, 2 failed, 0 skipped\n"},
		"is skipped":     {fails("slow", "TestA"), event("skip", "TestA", "") + event("pass", "", ""), 1, "failed again\n"},
		"does not run":   {fails("slow", "TestA"), event("pass", "", ""), 1, "failed again\n"},
		"is a race":      {fails("WARNING: DATA RACE", "TestA"), well, 1, "no second look: p TestA said DATA RACE\n"},
		"raced long ago": {event("output", "TestA", "WARNING: DATA RACE") + strings.Repeat(event("output", "TestA", "more\n"), 3*lastLines) + fails("slow", "TestA"), well, 1, "no second look: p TestA said DATA RACE\n"},
		"got out":        {fails("suite.go:1: IT GOT THROUGH", "TestA"), well, 1, "no second look"},
		"are many":       {fails("slow", many...), well, 1, "7 tests failed, more than 6"},
		"is not built":   {`{"Action":"build-fail","ImportPath":"p"}` + "\n" + event("fail", "", ""), well, 1, "p does not build"},
		"no test at all": {event("pass", "TestWell", "") + event("fail", "", ""), well, 1, "did not end as its tests did"},
		"a test hung":    {event("output", "TestB", "x") + fails("slow", "TestA"), well, 1, "did not end as its tests did"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, asked := filepath.Join(dir, "second"), filepath.Join(dir, "asked")
			if err := os.WriteFile(file, []byte(c.second), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			code := report(strings.NewReader(c.first), &out, true, []string{"sh", "-c", `echo "$@" >` + asked + `; cat ` + file, "sh"})
			if code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit %d\n%s", code, out.String())
			}
			want := "-parallel=1 -run=^(TestA)$ p\n"
			if strings.Contains(out.String(), "no second look") {
				want = ""
			}
			if b, _ := os.ReadFile(asked); string(b) != want {
				t.Errorf("asked for %q, want %q", b, want)
			}
		})
	}
}
