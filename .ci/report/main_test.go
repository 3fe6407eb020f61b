package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestReportShowsAHang: if a package times out, the end of what its unfinished tests
// printed is shown, and no more than that.
func TestReportShowsAHang(t *testing.T) {
	var in, out strings.Builder
	write := func(test, text string) {
		fmt.Fprintf(&in, `{"Action":"output","Package":"p","Test":%q,"Output":%q}`+"\n", test, text)
	}
	fmt.Fprintln(&in, `{"Action":"pass","Package":"p","Test":"TestWell"}`)
	for i := range 10_000 {
		write("TestHangs", fmt.Sprintf("line %d\n", i))
	}
	write("TestHangs", "panic: test timed out after 20m0s\n")
	write("TestHangs", "goroutine 7 [select]:\n")
	write("", "FAIL\tp\t1200.0s\n")
	fmt.Fprintln(&in, `{"Action":"fail","Package":"p","Elapsed":1200}`)
	if code := report([]io.Reader{strings.NewReader(in.String())}, &out, false); code != 1 {
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

// TestReportFails: a failure, a package that is not built and a run without a test
// fail; a skipped test fails only if the report is strict.
func TestReportFails(t *testing.T) {
	event := func(action, test string) string {
		return fmt.Sprintf(`{"Action":%q,"Package":"p","Test":%q}`+"\n", action, test)
	}
	well := event("pass", "TestA") + event("pass", "")
	for name, c := range map[string]struct {
		in     string
		strict bool
		code   int
	}{
		"passes":            {well, true, 0},
		"fails":             {well + event("fail", "TestB") + event("fail", ""), false, 1},
		"a package fails":   {event("pass", "TestA") + event("fail", ""), false, 1},
		"is not built":      {well + `{"Action":"build-fail","ImportPath":"p"}` + "\n", false, 1},
		"no test":           {event("pass", ""), false, 1},
		"skipped":           {well + event("skip", "TestB"), false, 0},
		"skipped, strictly": {well + event("skip", "TestB"), true, 1},
		"cannot be read":    {well + strings.Repeat("x", longestEvent+1), false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if code := report([]io.Reader{strings.NewReader(c.in)}, &out, c.strict); code != c.code {
				t.Errorf("exit %d, want %d\n%s", code, c.code, out.String())
			}
		})
	}
}

// TestReportOfManyStreams: the results of all streams count, and each must have a test.
func TestReportOfManyStreams(t *testing.T) {
	event := func(action, test string) io.Reader {
		return strings.NewReader(fmt.Sprintf(`{"Action":%q,"Package":"p","Test":%q}`+"\n", action, test))
	}
	for name, c := range map[string]struct {
		from []io.Reader
		code int
		last string
	}{
		"pass":            {[]io.Reader{event("pass", "TestA"), event("pass", "TestA")}, 0, "2 passed, 0 failed, 0 skipped\n"},
		"the first fails": {[]io.Reader{event("fail", "TestA"), event("pass", "TestA")}, 1, "1 passed, 1 failed, 0 skipped\n"},
		"one is empty":    {[]io.Reader{event("pass", "TestA"), event("pass", "")}, 1, "1 passed, 0 failed, 0 skipped\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if code := report(c.from, &out, false); code != c.code || !strings.HasSuffix(out.String(), c.last) {
				t.Errorf("exit %d, want %d\n%s", code, c.code, out.String())
			}
		})
	}
}
