package ruletest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/rulefile"
)

// part is one file of an archive.
type part struct {
	name string
	line int // of the archive, of its first line
	text string
}

// parts splits an archive at its lines of the form "-- NAME --". What stands
// before the first is a comment.
func parts(text string) []part {
	var out []part
	begin, at, line := 0, 0, 1
	end := func() {
		if len(out) > 0 {
			out[len(out)-1].text = text[begin:at]
		}
	}
	for l := range strings.Lines(text) {
		if name, ok := marker(l); ok {
			end()
			out = append(out, part{name: name, line: line + 1})
			begin = at + len(l)
		}
		at, line = at+len(l), line+1
	}
	end()
	return out
}

func marker(line string) (string, bool) {
	line = strings.TrimRight(line, "\r\n")
	rest, ok := strings.CutPrefix(line, "-- ")
	name, ends := strings.CutSuffix(rest, " --")
	name = strings.TrimSpace(name)
	return name, ok && ends && name != ""
}

// wrong is an error at a line of the archive.
func (d *document) wrong(line int, why, hint string) error {
	where := fmt.Sprintf("%s:%d", d.name, line)
	return rulefile.NewLocatedError(holdfast.Error{Kind: holdfast.KindValue, Hint: hint}, where, why)
}

// read reads an archive.
func read(name string, text []byte) (*document, error) {
	d := &document{name: name, named: map[string]*facts{}, used: map[string]bool{}, given: map[string]bool{}, now: noon()}
	if len(text) > MaxArchive {
		return nil, d.wrong(1, fmt.Sprintf("the archive has %d bytes", len(text)), fmt.Sprintf("at most %d are allowed", MaxArchive))
	}
	seen := map[string]bool{}
	var cases *part
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		return nil, d.wrong(1, "the archive begins with a byte order mark, which would hide its first file", "save it as UTF-8 without one")
	}
	all := parts(string(text))
	if len(all) > maxParts {
		return nil, d.wrong(all[maxParts].line-1, fmt.Sprintf("more than %d files", maxParts), "make several archives")
	}
	if n := strings.Count(string(text), "\n"); n > maxLines {
		return nil, d.wrong(maxLines, fmt.Sprintf("the archive has %d lines", n), fmt.Sprintf("at most %d are allowed", maxLines))
	}
	for i := range all {
		p := &all[i]
		if seen[p.name] {
			return nil, d.wrong(p.line-1, "a second file "+p.name, "")
		}
		seen[p.name] = true
		var err error
		base, isFacts := strings.CutSuffix(p.name, ".facts.json")
		switch {
		case p.name == "cases.yaml":
			cases = p
		case p.name == "boundaries.yaml":
			err = d.readBoundaries(p)
		case isFacts:
			err = d.readFacts(base, p)
		case strings.HasSuffix(p.name, ".yaml"), strings.HasSuffix(p.name, ".yml"):
			// Blank lines before it, so that its lines are the archive's.
			d.rules = append(d.rules, constitution.Source{Name: name, Text: []byte(strings.Repeat("\n", p.line-1) + p.text)})
		default:
			err = d.wrong(p.line-1, "nobody reads a file "+p.name, "rules.yaml, boundaries.yaml, cases.yaml, and NAME.facts.json are read")
		}
		if err != nil {
			return nil, err
		}
	}
	if cases == nil {
		return nil, d.wrong(1, "there is no cases.yaml", "a file begins with a line `-- cases.yaml --`")
	}
	if err := d.readCases(cases); err != nil {
		return nil, err
	}
	for name, f := range d.named {
		if !d.used[name] {
			return nil, d.wrong(f.line, "no case takes the facts "+name, "a case names them with `facts: "+name+"`")
		}
	}
	return d, nil
}

// HasRules says whether an archive has rules of its own.
func HasRules(text []byte) bool {
	for _, p := range parts(string(text)) {
		if p.name != "cases.yaml" && p.name != "boundaries.yaml" && (strings.HasSuffix(p.name, ".yaml") || strings.HasSuffix(p.name, ".yml")) {
			return true
		}
	}
	return false
}
