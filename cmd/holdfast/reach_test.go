package main

import (
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestCutOff: a daemon that ends in the middle of its answer is said to have, with where
// to look; any other error stays what it is.
func TestCutOff(t *testing.T) {
	asked := &url.Error{Op: "Post", URL: "http://holdfast/v1/rollback", Err: io.EOF}
	var e *holdfast.Error
	if !errors.As(cutOff(asked), &e) || !strings.Contains(e.Why, "the daemon ended before it answered") || strings.Contains(e.Why, "http") || !strings.Contains(e.Hint, "holdfast status") {
		t.Errorf("%+v", e)
	}
	for _, err := range []error{nil, io.EOF, errors.New("other"), &url.Error{Op: "Post", Err: errors.New("other")}} {
		if got := cutOff(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}
