package main

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// forTerminal is what a program wrote, as w may have it: on a terminal nothing
// in it moves the cursor, sets a title, answers for the keyboard or hides what
// stands beside it. Anywhere else it is as it was.
func forTerminal(w io.Writer, s string) string {
	if !isTerminal(w) {
		return s
	}
	return screened(s)
}

// colour is a sequence that sets colours and weights (SGR), and does nothing
// else.
var colour = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b\\[[0-9;:]{0,64}m")
})

// screened keeps lines, tabs and colours, and writes every other control
// sequence out. Colours end with the text: what Holdfast says behind it is in
// none of them.
func screened(s string) string {
	var b strings.Builder
	colours := colour().FindAllStringIndex(s, -1)
	at := 0
	for _, c := range colours {
		screen(&b, s[at:c[0]])
		b.WriteString(s[c[0]:c[1]])
		at = c[1]
	}
	screen(&b, s[at:])
	if len(colours) > 0 {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// screen writes a text without colours. A carriage return before a line's end
// is part of that; any other would write over the line.
func screen(b *strings.Builder, s string) {
	for s != "" {
		i := strings.IndexAny(s, "\n\t")
		if i < 0 {
			b.WriteString(clean(s))
			return
		}
		end := s[i : i+1]
		b.WriteString(clean(strings.TrimSuffix(s[:i], map[bool]string{true: "\r"}[end == "\n"])))
		b.WriteString(end)
		s = s[i+1:]
	}
}

// bringOut writes the program's files below dir, over nothing that is there,
// and says which stay behind. A name that other programs act on by itself, such
// as .bashrc or .git/hooks, is written only where dir holds nothing else: there
// nobody looks for it.
func (a *app) bringOut(r *posture.Document, dir string) error {
	if dir == "" {
		a.sayLeft(slices.Sorted(maps.Keys(r.OutputFiles)))
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail("", "%v", err)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return fail("", "%v", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fail("", "%v", err)
	}
	defer root.Close()
	left := 0
	for _, name := range slices.Sorted(maps.Keys(r.OutputFiles)) {
		why := "an odd name, and " + dir + " is not empty"
		if !odd(name) || len(there) == 0 {
			why = writeBelow(root, name, r.OutputFiles[name])
		}
		switch {
		case why != "":
			left++
			a.say("the file %s stays behind: %s", name, why)
		case odd(name):
			a.say("the file %s was written: mind its name", name)
		}
	}
	if left > 0 {
		return fail("name a new directory", "%d of the program's %d files were not brought out to %s", left, len(r.OutputFiles), dir)
	}
	return nil
}

// odd says whether a name, or a folder in it, is one that is hidden, that a
// command would take for an option, or that does not look like what it is.
func odd(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || strings.HasPrefix(part, "-") || strings.TrimSpace(part) != part || strings.HasSuffix(part, ".") || clean(part) != part {
			return true
		}
	}
	return false
}

// writeBelow makes a new file, and returns why it could not.
func writeBelow(root *os.Root, name string, b []byte) string {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err.Error()
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "something of that name is there already"
	}
	if err != nil {
		return err.Error()
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		return err.Error()
	}
	return ""
}
