package redaction

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

var titusTargets = map[string]target{every: {atLeast: 85}}

// titusRule is a rule of titus. Its examples contain what its pattern finds.
type titusRule struct {
	ID         string   `yaml:"id"`
	Pattern    string   `yaml:"pattern"`
	Examples   []string `yaml:"examples"`
	Negative   []string `yaml:"negative_examples"`
	Categories []string `yaml:"categories"`
}

// readTitus reads the examples of the rules that find secrets. A pattern that Go does not
// compile, and rules for identifiers and URLs that are no secrets, are left out.
func readTitus(dir string, each func(Text) error) error {
	return walkFiles(dir, hasExtension(".yml", ".yaml"), func(path string, content []byte) error {
		var file struct {
			Rules []titusRule `yaml:"rules"`
		}
		if yaml.Unmarshal(content, &file) != nil {
			return nil
		}
		for _, r := range file.Rules {
			pattern, err := compileExtended(r.Pattern)
			if err != nil || slices.Contains(r.Categories, "identifier") {
				continue
			}
			for _, e := range r.Examples {
				if at := findSecret(pattern, e); at != nil {
					m := Mark{Class: "examples", Start: at[0], End: at[1], Secret: true}
					if err := each(Text{path, []byte(e), []Mark{m}}); err != nil {
						return err
					}
				}
			}
			for _, e := range r.Negative {
				if err := each(Text{path, []byte(e), []Mark{{Class: "negative examples", End: len(e)}}}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// findSecret returns the place of the group that is the secret: the one with such a name,
// else the first one, else the whole match.
func findSecret(pattern *regexp.Regexp, text string) []int {
	at := pattern.FindStringSubmatchIndex(text)
	if at == nil {
		return nil
	}
	for _, word := range []string{"secret", "token", "password", "key", "webhook"} {
		for i, name := range pattern.SubexpNames() {
			name = strings.ToLower(name)
			if strings.Contains(name, word) && !strings.HasSuffix(name, "_id") && at[2*i] >= 0 {
				return at[2*i : 2*i+2]
			}
		}
	}
	for i := 2; i+1 < len(at); i += 2 {
		if at[i] >= 0 {
			return at[i : i+2]
		}
	}
	return at[:2]
}

// compileExtended compiles a pattern in which the flag x may be set: then blanks and
// comments outside of classes are not part of it.
func compileExtended(pattern string) (*regexp.Regexp, error) {
	pattern = strings.TrimSpace(pattern)
	flags := regexp.MustCompile(`^\(\?([a-z]*)x([a-z]*)\)`).FindStringSubmatch(pattern)
	if flags == nil {
		return regexp.Compile(pattern)
	}
	var b strings.Builder
	if set := flags[1] + flags[2]; set != "" {
		b.WriteString("(?" + set + ")")
	}
	in := false // a class
	for rest := pattern[len(flags[0]):]; rest != ""; {
		c, size := rest[0], 1
		switch {
		case c == '\\' && len(rest) > 1:
			size = 2
		case c == '[':
			in = true
		case c == ']':
			in = false
		case in:
		case c == '#':
			comment, _, _ := strings.Cut(rest, "\n")
			rest = rest[len(comment):]
			continue
		case strings.IndexByte(" \t\r\n", c) >= 0:
			rest = rest[1:]
			continue
		}
		b.WriteString(rest[:size])
		rest = rest[size:]
	}
	return regexp.Compile(b.String())
}
