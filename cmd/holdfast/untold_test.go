package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestWhatIsSaidHoldsNoSecretThatItsFormTells(t *testing.T) {
	const token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	for text, want := range map[string]string{
		"there is no agent \"ann@example.com\"":  "there is no agent \"ann@example.com\"",
		"redact does not take \"" + token + "\"": "redact does not take \"[secret redacted]\"",
	} {
		if got := untold(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
	var out bytes.Buffer
	a := &app{err: &out}
	a.say("%s", token)
	a.hint("%s", token)
	code := exitYes
	func() {
		defer a.panicked(&code)
		panic("lost " + token)
	}()
	if strings.Contains(out.String(), token[:20]) || !strings.Contains(out.String(), "panic: lost [secret redacted]") || code != exitError {
		t.Errorf("%d, %s", code, out.String())
	}
}
