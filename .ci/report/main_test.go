package main

import (
	"fmt"
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
	if code := report(strings.NewReader(in.String()), &out, false); code != 1 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"p TestHangs did not end", "test timed out", "goroutine 7 [select]", "line 9999\n", "1 passed, 1 failed"} {
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
		if got := report(strings.NewReader(in), &strings.Builder{}, strict); got != want {
			t.Errorf("strict %v: exit %d", strict, got)
		}
	}
}
