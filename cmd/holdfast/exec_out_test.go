package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// On a terminal nothing of a program's output does anything but stand there, in
// colours; a pipe gets its bytes.
func TestOutputOnATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain\tline\r\nnext\n":                 "plain\tline\nnext\n",
		"\x1b[1;31mred\x1b[m\n":                 "\x1b[1;31mred\x1b[m\n\x1b[0m",
		"\x1b[38:5:8mgrey":                      "\x1b[38:5:8mgrey\x1b[0m",
		"\x1b]0;title\x07":                      `\x1b]0;title\x07`,
		"\x1b[2J\x1b[H":                         `\x1b[2J\x1b[H`,
		"\x1b[6n\x1b[c\x1bP$q\x1b\\":            `\x1b[6n\x1b[c\x1bP$q\x1b\`,
		"\x1b]52;c;aGk=\x07":                    `\x1b]52;c;aGk=\x07`,
		"over\rwritten\n":                       `over\x0dwritten` + "\n",
		"tab\r\tx":                              `tab\x0d` + "\tx",
		"back\b\b":                              `back\x08\x08`,
		"c1 \u009b2J":                           `c1 \u{9b}2J`,
		"turned \u202egnp.exe":                  `turned \u{202e}gnp.exe`,
		"\x1b[" + strings.Repeat("1", 65) + "m": `\x1b[` + strings.Repeat("1", 65) + "m",
		"\x1b[1\x1b[31mm":                       `\x1b[1` + "\x1b[31mm\x1b[0m",
		"\x1b[>4m":                              `\x1b[>4m`,
		"h\u00e9, \u4e16\n":                     "h\u00e9, \u4e16\n",
		"":                                      "",
	} {
		if got := screened(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
		if got := forTerminal(&bytes.Buffer{}, in); got != in {
			t.Errorf("%q in a pipe is %q", in, got)
		}
	}
}

// What is there stays as it is, odd names go where nothing else is and are
// told, and nothing leaves the directory.
func TestFilesAreBroughtOutOverNothing(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("kept.txt", "mine")
	write(".git/hooks/README", "mine")
	write("sub/deep/kept", "mine")
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(home, "away")); err != nil {
		t.Fatal(err)
	}
	doc := &posture.Document{OutputFiles: map[string][]byte{
		"kept.txt": []byte("theirs"), "sub/deep/kept": []byte("theirs"), ".bashrc": []byte("theirs"), ".git/hooks/post-commit": []byte("theirs"),
		"sub/.env": []byte("theirs"), "-rf": []byte("theirs"), "sly\u202etxt.sh": []byte("theirs"), "away/x": []byte("theirs"), "kept.txt/below": []byte("theirs"),
		"new.txt": []byte("theirs"), "sub/new": []byte("theirs"),
	}}
	said := &bytes.Buffer{}
	a := &app{out: &output{Writer: &bytes.Buffer{}}, err: said}
	if err := a.bringOut(doc, home); err == nil || !strings.Contains(err.Error(), "9 of the program's 11 files were not brought out") {
		t.Error(err)
	}
	for _, name := range []string{"kept.txt", "sub/deep/kept", ".git/hooks/README"} {
		if b, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(b) != "mine" {
			t.Errorf("%s is %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"new.txt", "sub/new"} {
		if b, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(b) != "theirs" {
			t.Errorf("%s is %q, %v", name, b, err)
		}
	}
	for _, name := range []string{".bashrc", ".git/hooks/post-commit", "sub/.env", "-rf", "sly\u202etxt.sh"} {
		if _, err := os.Lstat(filepath.Join(home, name)); err == nil {
			t.Errorf("%s was written", name)
		}
		if !strings.Contains(said.String(), "the file "+clean(name)+" stays behind: an odd name") {
			t.Errorf("%s is not told of: %s", name, said)
		}
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("outside: %v", left)
	}
	said.Reset()
	fresh := filepath.Join(home, "fresh")
	doc.OutputFiles = map[string][]byte{".bashrc": []byte("theirs"), "plain": nil}
	if err := a.bringOut(doc, fresh); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(fresh, ".bashrc")); err != nil || string(b) != "theirs" || said.String() != "holdfast: the file .bashrc was written: mind its name\n" {
		t.Errorf("%q, %v, said %q", b, err, said)
	}
}
