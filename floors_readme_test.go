package holdfast_test

import (
	"maps"
	"os"
	"strings"
	"testing"
	"unicode"
)

// The columns of README's table, in bytes: a floor, a word for what stands on it
// or a package, packages, and what they are.
const (
	wordColumn    = 3
	packageColumn = 11
	aboutColumn   = 55
)

// TestFloorsAreThoseOfTheReadme holds README's table against floors: the same
// packages, on the same floors.
func TestFloorsAreThoseOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, begun := strings.Cut(string(text), "```\n6  cmd/holdfast ")
	table, _, ended := strings.Cut("6  cmd/holdfast "+table, "```\n")
	if !begun || !ended {
		t.Fatal("README.md has no table of floors")
	}
	said := map[string]int{}
	for floor, packages := range tableFloors(t, table) {
		for _, name := range expand(packages) {
			if was, twice := said[name]; twice {
				t.Errorf("README.md has %q on floors %d and %d", name, was, floor)
			}
			said[name] = floor
		}
	}
	if maps.Equal(said, floors) {
		return
	}
	for name, floor := range floors {
		if at, there := said[name]; !there {
			t.Errorf("README.md lacks %q, which is on floor %d", name, floor)
		} else if at != floor {
			t.Errorf("README.md has %q on floor %d, floors on %d", name, at, floor)
		}
	}
	for name := range said {
		if _, there := floors[name]; !there {
			t.Errorf("README.md has %q, which floors lacks", name)
		}
	}
}

// tableFloors is the column of packages, by floor.
func tableFloors(t *testing.T, table string) map[int]string {
	t.Helper()
	out, floor := map[int]string{}, -1
	for line := range strings.Lines(table) {
		if c := line[0]; c >= '0' && c <= '9' {
			floor = int(c - '0')
		}
		if floor < 0 || len(line) < packageColumn {
			t.Fatalf("no line of the table of floors: %q", line)
		}
		packages := line[packageColumn:min(len(line), aboutColumn)]
		if strings.TrimRight(packages, " \n") != "" && !strings.HasSuffix(packages, " ") && len(line) > aboutColumn {
			t.Fatalf("the packages reach into the next column: %q", line)
		}
		switch word := strings.Fields(line[wordColumn:])[0]; {
		case strings.HasPrefix(line, "   ") && line[wordColumn] == ' ':
		case word == "doors" || word == "hands" || word == "tests" || word == "judges" || word == "tools":
		case word == "holdfast":
			packages = "{}" // the root
		default:
			packages = word
		}
		out[floor] += packages + "\n"
	}
	return out
}

// expand is every name that a text of names means: a{b,c/{d,e}} is ab, ac/d and
// ac/e. Spaces part names outside of braces alone.
func expand(text string) []string {
	var out []string
	var flat strings.Builder
	depth := 0
	for _, c := range text {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		}
		if !unicode.IsSpace(c) {
			flat.WriteRune(c)
		} else if depth == 0 {
			flat.WriteByte(' ')
		}
	}
	for _, one := range strings.Fields(flat.String()) {
		out = append(out, braces(one)...)
	}
	return out
}

// braces is every name that one with braces means.
func braces(s string) []string {
	from := strings.IndexByte(s, '{')
	if from < 0 {
		return []string{s}
	}
	var inner []string
	depth, at := 0, from+1
	for i := from; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 || depth == 1 && s[i] == ',' {
			inner = append(inner, s[at:i])
			at = i + 1
		}
		if depth == 0 {
			break
		}
	}
	var out []string
	for _, one := range inner {
		for _, rest := range braces(s[at:]) {
			for _, middle := range braces(one) {
				out = append(out, s[:from]+middle+rest)
			}
		}
	}
	return out
}
