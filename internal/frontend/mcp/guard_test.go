package mcp

import (
	"errors"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	var what, stack string
	hook := func(w, s string) { what, stack = w, s }
	mine := errors.New("mine")
	if err := Guard(hook, func() error { return mine }); err != mine || what != "" {
		t.Errorf("%v, the hook heard %q", err, what)
	}
	err := Guard(hook, func() error { panic("lost canary-hunter2") })
	if !errors.Is(err, ErrPanicked) || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	if what != "lost canary-hunter2" || !strings.Contains(stack, "TestGuard") {
		t.Errorf("the hook heard %q, %s", what, stack)
	}
}
