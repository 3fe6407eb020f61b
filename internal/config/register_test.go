package config

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func revealed(ss []holdfast.Secret) string {
	var out []string
	for _, s := range ss {
		out = append(out, s.Reveal())
	}
	return strings.Join(out, "|")
}

func TestRegisterReadsEverySource(t *testing.T) {
	dir := testfile.Write(t,
		map[string]string{"lines": "first secret \r\n\n  second/secret\n", "whole": "-----\nkey of\ntwo lines\n"})
	t.Setenv("HOLDFAST_TEST_SECRET", "from the environment")
	for from, want := range map[string]string{
		"file:" + dir + "/lines":                          "first secret|second/secret",
		"whole:" + dir + "/whole":                         "-----\nkey of\ntwo lines",
		"env:HOLDFAST_TEST_SECRET":                        "from the environment",
		"cmd:printf 'third one\\nfourth one'; echo x >&2": "third one|fourth one",
	} {
		r, err := ParseRegister(from)
		if err != nil {
			t.Fatal(err)
		}
		var m redact.Memory
		got, err := Register(t.Context(), &m, []RegisterConfig{r})
		if err != nil || revealed(got) != want {
			t.Errorf("%s gives %q, %v", from, revealed(got), err)
		}
	}
}

func TestRegisterRefusesWhatItCannotHold(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"empty": "\n\n",
		"short": "long enough\nabc\n", "large": strings.Repeat("canary-", 10_000), "open": "canary-open"})
	if err := os.Chmod(filepath.Join(dir, "open"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDFAST_TEST_LARGE", strings.Repeat("canary-", 10_000))
	for name, c := range map[string]struct {
		from RegisterConfig
		say  string
	}{
		"nothing in it": {RegisterConfig{File: dir + "/empty"}, "holds none"},
		"too short":     {RegisterConfig{File: dir + "/short"}, "line 2 of "},
		"too large":     {RegisterConfig{File: dir + "/large"}, "more than 65536 bytes"},
		"others read":   {RegisterConfig{File: dir + "/open"}, "open"},
		"no file":       {RegisterConfig{File: dir + "/none"}, "cannot read"},
		"a directory":   {RegisterConfig{File: dir}, "not a regular file"},
		"no variable":   {RegisterConfig{Env: "HOLDFAST_TEST_NONE"}, "is not set"},
		"long variable": {RegisterConfig{Env: "HOLDFAST_TEST_LARGE"}, "more than 65536 bytes"},
		"fails":         {RegisterConfig{Command: []string{"/bin/sh", "-c", "echo canary-out; echo canary-err >&2; exit 3"}}, "exit status 3"},
		"no program":    {RegisterConfig{Command: []string{dir + "/none"}}, "cannot be started"},
		"endless":       {RegisterConfig{Command: []string{"/bin/sh", "-c", "yes canary"}}, "more than 65536 bytes"},
	} {
		var m redact.Memory
		got, err := Register(t.Context(), &m, []RegisterConfig{c.from})
		if err == nil || got != nil || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "canary-") {
			t.Errorf("%s: %d, %v", name, len(got), err)
		}
	}
}

// A command that hangs, and what it left behind with its output open, hold
// nobody up.
func TestRegisterEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var m redact.Memory
	start := time.Now()
	_, err := Register(ctx, &m, []RegisterConfig{{Command: []string{"/bin/sh", "-c", "sleep 30 & sleep 30"}}})
	if err == nil || time.Since(start) > 25*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

func TestParseRegisterTakesNoValue(t *testing.T) {
	for _, text := range []string{"", "canary-hunter2", "file:", "env:", "env:canary-hunter2", "cmd:", "literal:canary-hunter2", "file:a\x00b"} {
		if r, err := ParseRegister(text); holdfast.KindOf(err) != holdfast.KindUsage || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

func TestRedactSectionIsJudgedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"  register: [{}]":                           "holdfast.yaml:3: a source of secrets needs one of",
		"  register:\n    - {env: A, file: b}":       "holdfast.yaml:4: a source of secrets needs one of",
		"  register:\n    - {env: canary-hunter2}":   "holdfast.yaml:4: redact.register: that is no name",
		"  register:\n    - canary-hunter2":          "holdfast.yaml:4: redact.register[0]: no value stands in this file",
		"  register:\n    - {value: canary-hunter2}": `holdfast.yaml:4: unknown key "value"`,
		"  register:\n    - {env: A, whole: true}":   "holdfast.yaml:4: whole belongs to a file",
		"  register:\n    - {command: []}":           "holdfast.yaml:4: a command without a program",
		"  register:\n    - {file: nowhere}":         "holdfast.yaml:4: cannot read",
		"  probable: [everything]":                   "holdfast.yaml:3: redact.probable[0] must be one of",
		"  probable: secrets":                        "holdfast.yaml:3: redact.probable must be a list",
		"  unknown: 1":                               "holdfast.yaml:3: unknown key",
		"  detector: {}":                             `holdfast.yaml:3: "command" is missing`,
		"  detector: {command: []}":                  "holdfast.yaml:3: a command without a program",
		"  detector: {command: [a], timeout: 9ms}":   "redact.detector: invalid timeout: expected 10ms to 30s",
		"  detector: {command: [a], timeout: 31s}":   "redact.detector: invalid timeout: expected 10ms to 30s",
		"  detector: {command: [a], timeout: -1s}":   "holdfast.yaml:3: ",
		"  detector: {command: a}":                   "holdfast.yaml:3: redact.detector.command must be a list",
		"  detector: {command: [a], env: [B]}":       `holdfast.yaml:3: unknown key "env"`,
	} {
		_, err := load(t, "version: 1\nredact:\n"+text+"\n")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// A key that has no effect any longer is accepted and named, with its line; what stays is checked as before.
func TestLoadNamesDeprecatedKeys(t *testing.T) {
	l, err := load(t, `version: 1
redact:
  probable: [names]
egress:
  domains:
    a.example.com: {redact: {guesses: [phones]}}
    b.example.com: {redact: {request: mask}}
`)
	if err != nil || len(l.Deprecated) != 2 || !slices.ContainsFunc(l.Deprecated, func(s string) bool {
		return strings.HasPrefix(s, "holdfast.yaml:3: redact: probable is deprecated and has no effect: ")
	}) || !slices.ContainsFunc(l.Deprecated, func(s string) bool {
		return strings.HasPrefix(s,
			"holdfast.yaml:6: redact: guesses of a.example.com is deprecated and has no effect: ")
	}) {
		t.Errorf("%q, %v", l.Deprecated, err)
	}
	l, err = load(t, "version: 1\nredact: {detector: {command: [find-names], timeout: 2s}}\n")
	if err != nil || l.Deprecated != nil || l.Config.Redact.Detector.Command[0] != "find-names" ||
		l.Config.Redact.Detector.Timeout != Duration(2*time.Second) {
		t.Errorf("%v", err)
	}
}
