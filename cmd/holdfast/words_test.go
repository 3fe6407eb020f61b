package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

// TestHelp holds every command's help to the house's form: one line for the
// list, how it is called, and an example that begins with a prompt.
func TestHelp(t *testing.T) {
	var walk func(path string, cs []command)
	walk = func(path string, cs []command) {
		for _, c := range cs {
			name := join(path, c.name)
			if c.about == "" || strings.HasSuffix(c.about, ".") || strings.ToLower(c.about[:1]) != c.about[:1] {
				t.Errorf("%s: the line %q is not lower case without a full stop", name, c.about)
			}
			if c.run != nil && (!strings.Contains(c.help, "$ ") || !strings.Contains(c.help, "holdfast "+name)) {
				t.Errorf("%s: the help has no example of it", name)
			}
			for line := range strings.Lines(c.help) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 84 && !strings.Contains(line, "$ ") {
					t.Errorf("%s: a line of the help has %d columns: %s", name, n, line)
				}
			}
			if (c.run == nil) == (c.sub == nil) {
				t.Errorf("%s is neither a command nor a group", name)
			}
			walk(name, c.sub)
		}
	}
	walk("", commands())
}

// TestClean shows that what an agent writes cannot act on the terminal.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain ünï":             "plain ünï",
		"red \x1b[31m":          `red \x1b[31m`,
		"two\nlines\r":          `two\x0alines\x0d`,
		"turned \u202eround":    `turned \u{202e}round`,
		"no \u200bwidth":        `no \u{200b}width`,
		"broken \xff":           `broken \xff`,
		"replacement \ufffd ok": "replacement \ufffd ok",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		v    holdfast.Verdict
		kind holdfast.Kind
		want int
	}{
		{holdfast.Allow, "", exitYes}, {holdfast.Hold, "", exitHeld}, {holdfast.Deny, holdfast.KindPermission, exitRefused},
		{holdfast.Deny, "", exitRefused}, {holdfast.Deny, holdfast.KindHalted, exitHalted}, {holdfast.Allow, holdfast.KindEvalFailure, exitError},
		{holdfast.Verdict(7), "", exitRefused},
	} {
		if got := verdictCode(c.v, c.kind); got != c.want {
			t.Errorf("%s %s: exit code %d, want %d", c.v, c.kind, got, c.want)
		}
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitYes}, {usage("", "x"), exitUsage}, {fail("", "x"), exitError}, {status(4), exitHeld},
		{&holdfast.Error{Kind: holdfast.KindHalted}, exitHalted}, {&holdfast.Error{Kind: holdfast.KindSelfApproval}, exitRefused},
		{&holdfast.Error{Kind: holdfast.KindUsage, Why: "a configuration's mistake"}, exitError},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

// TestInterrupt shows that a command that waits for its input can be ended.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, held := io.Pipe()
	defer held.Close()
	var out, said bytes.Buffer
	a := &app{ctx: ctx, in: in, out: &out, err: &said, lookup: func(string) (string, bool) { return "", false }}
	time.AfterFunc(20*time.Millisecond, cancel)
	if code := a.run([]string{"key"}); code != exitError || !strings.Contains(said.String(), "interrupted") || out.Len() > 0 {
		t.Errorf("exit code %d, said %q", code, said.String())
	}
}

// TestAskedForAYes shows that only a yes is one, and that the question can be
// interrupted.
func TestAskedForAYes(t *testing.T) {
	for in, want := range map[string]bool{"y\n": true, "YES\n": true, "yes": true, "n\n": false, "\n": false, "": false, "yesterday\n": false} {
		a := &app{ctx: t.Context()}
		if err := a.said(strings.NewReader(in), io.Discard, "really"); (err == nil) != want {
			t.Errorf("%q: %v", in, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, held := io.Pipe()
	defer held.Close()
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := (&app{ctx: ctx}).said(in, io.Discard, "really"); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestNotes(t *testing.T) {
	one, two := "o1\n1\nr\n\n— k s\n", "o2\n2\nr\n\n— k s\n— w s\n"
	got := notes([]byte("\n" + one + "\n" + two + "\n\n"))
	if len(got) != 2 || string(got[0]) != one || string(got[1]) != two {
		t.Errorf("%q", got)
	}
}

func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{"/a/b": "/a/b", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'"} {
		if got := quoted(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
