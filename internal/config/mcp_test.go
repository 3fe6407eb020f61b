package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
)

// What is wrong with a server is named with its line, and no value of a header
// can stand in the file.
func TestServersInTheConfiguration(t *testing.T) {
	const head = "version: 1\nmcp:\n  servers:\n    x:\n"
	for text, want := range map[string]string{
		"      cwd: .\n": "holdfast.yaml:5: the server \"x\" has neither a command nor a url",
		"      command: [a]\n      url: https://e.example/mcp\n": "holdfast.yaml:5: the server \"x\" has a command and a url",
		"      command: []\n":                                                                                          "holdfast.yaml:5: a command without a program",
		"      url: http://e.example/mcp\n":                                                                            "holdfast.yaml:5: url: http crosses the network unencrypted",
		"      url: ftp://e.example\n":                                                                                 "the scheme \"ftp\" is not https",
		"      url: https://u:p@e.example/mcp\n":                                                                       "url holds a user or a password",
		"      url: https://e.example\n      env: [A]\n":                                                               "env and cwd belong to a command",
		"      command: [a]\n      headers:\n        A: {env: B}\n":                                                    "headers belong to a url",
		"      url: https://e.example\n      headers:\n        Authorization: Bearer abc\n":                            "holdfast.yaml:7: mcp.servers.x.headers.Authorization: no value stands in this file",
		"      url: https://e.example\n      headers:\n        A: {file: a, env: B}\n":                                 "holdfast.yaml:7: the header A needs one of file and env",
		"      url: https://e.example\n      headers:\n        A:\n":                                                   "mcp.servers.x.headers.A: no value stands in this file",
		"      url: https://e.example\n      headers:\n        A: {value: B}\n":                                        "unknown key \"value\"",
		"      url: https://e.example\n      headers:\n        A: {env: 'B=secret'}\n":                                 "the header A: that is no name of an environment variable",
		"      url: https://e.example\n      headers:\n        'A:b': {env: B}\n":                                      "is not a header",
		"      url: https://e.example\n      headers:\n        Mcp-Session-Id: {env: B}\n":                             "the header Mcp-Session-Id is made by holdfast itself",
		"      url: https://e.example\n      headers:\n        A: {file: absent}\n":                                    "holdfast.yaml:7: cannot read ",
		"      command: [a]\n    x__y:\n      command: [b]\n":                                                          "\"x\" and \"x__y\" could not be told apart",
		"      command: [a]\nreview: {wait: 56s}\n":                                                                    "holdfast.yaml:6: review.wait is longer than 55s",
		"      command: [a]\nreview: {wait: soon}\n":                                                                   "is not a duration",
		"      url: https://e.example\n      headers:\n        A: {file: open}\n":                                      "others can read",
		"      url: https://e.example\n      headers:\n        A: {file: tok}\n        B: {env: X}\n      cwd: here\n": "env and cwd belong to a command",
	} {
		dir := testfile.Write(t, map[string]string{"holdfast.yaml": head + text, "open": "v\n", "tok": "v\n"})
		if err := os.Chmod(filepath.Join(dir, "open"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(filepath.Join(dir, "holdfast.yaml")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n gives %v,\n want %s", text, err, want)
		}
	}
	l, err := load(t, head+"      command: [a]\nreview: {wait: 0s}\n")
	if err != nil || *l.Config.Review.Wait != 0 {
		t.Errorf("no wait at all: %v", err)
	}
	if l, err = load(t, head+"      url: http://127.0.0.1:9/mcp\n"); err != nil || time.Duration(*l.Config.Review.Wait) != 50*time.Second {
		t.Errorf("the default: %v", err)
	}
}

// A header's value is read where the configuration says, and never printed.
func TestHeaderValues(t *testing.T) {
	dir := testfile.Write(t,
		map[string]string{"good": "Bearer abc\nmore", "empty": "\n", "ctl": "a\x01b", "cr": "abc\r\n"})
	t.Setenv("HOLDFAST_TEST_HEADER", "v w")
	for _, c := range []struct {
		h          HeaderConfig
		want, fail string
	}{
		{HeaderConfig{File: filepath.Join(dir, "good")}, "Bearer abc", ""},
		{HeaderConfig{File: filepath.Join(dir, "cr")}, "abc", ""},
		{HeaderConfig{Env: "HOLDFAST_TEST_HEADER"}, "v w", ""},
		{HeaderConfig{File: filepath.Join(dir, "empty")}, "", "does not hold a header's value"},
		{HeaderConfig{File: filepath.Join(dir, "ctl")}, "", "does not hold a header's value"},
		{HeaderConfig{File: filepath.Join(dir, "none")}, "", "cannot read"},
		{HeaderConfig{Env: "HOLDFAST_TEST_NO_HEADER"}, "", "is not set"},
	} {
		v, err := c.h.ReadValue("A")
		if v.Reveal() != c.want || (err != nil) != (c.fail != "") || err != nil && (!strings.Contains(err.Error(), c.fail) || strings.Contains(err.Error(), "abc")) {
			t.Errorf("%+v: %v", c.h, err)
		}
	}
}
