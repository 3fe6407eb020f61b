package holdfast_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// languageCounts is the table of patterns, with the number of matches that the repository may have.
const languageCounts = "testdata/language.tsv"

// Rows of languageCounts that are counted by code instead of by a regular expression.
const (
	singleWordRow = "@single-word-function"
	longLineRow   = "@line-over-120-columns"
)

const (
	maxColumns = 120
	tabColumns = 4 // distance of tab stops
	maxPlaces  = 20
)

var updateLanguage = flag.Bool("update-language", false, "lower the counts in "+languageCounts+" to what is found")

// TestLanguage compares the number of dialect phrases, single-word function names and long lines with the recorded
// counts. A count may only fall: more fails, and fewer fails until the lower count is recorded, so that nothing
// grows back to an old figure.
func TestLanguage(t *testing.T) {
	data, err := os.ReadFile(languageCounts)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parseLanguageRows(string(data))
	if err != nil {
		t.Fatal(err)
	}
	found, err := countLanguage(".", rows)
	if err != nil {
		t.Fatal(err)
	}
	if *updateLanguage {
		if lowered := lowerCounts(string(data), found); lowered != string(data) {
			if err := os.WriteFile(languageCounts, []byte(lowered), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, row := range rows {
		if msg := compareCount(row, found[row.pattern], *updateLanguage); msg != "" {
			t.Error(msg)
		}
	}
}

// languageRow is one line of languageCounts.
type languageRow struct {
	pattern     string
	count       int
	replacement string

	match   *regexp.Regexp // nil in rows that code counts
	literal string         // part of every match: finding it first is much faster than the expression
}

// place is the line of one match.
type place struct {
	path string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.path, p.line) }

// parseLanguageRows reads a header, comments that start with # and rows of pattern, count and replacement.
func parseLanguageRows(data string) ([]languageRow, error) {
	var rows []languageRow
	seen := map[string]bool{}
	for i, line := range strings.Split(strings.TrimSuffix(data, "\n"), "\n") {
		if i == 0 {
			if line != "pattern\tcount\treplacement" {
				return nil, fmt.Errorf("line 1: invalid header %q", line)
			}
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || fields[2] == "" {
			return nil, fmt.Errorf("line %d: expected pattern, count and replacement", i+1)
		}
		count, err := strconv.Atoi(fields[1])
		if err != nil || count < 0 {
			return nil, fmt.Errorf("line %d: invalid count %q", i+1, fields[1])
		}
		row := languageRow{pattern: fields[0], count: count, replacement: fields[2]}
		if seen[row.pattern] {
			return nil, fmt.Errorf("line %d: pattern %q repeats", i+1, row.pattern)
		}
		seen[row.pattern] = true
		if row.pattern != singleWordRow && row.pattern != longLineRow {
			if err := row.compile(); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		}
		rows = append(rows, row)
	}
	for _, name := range []string{singleWordRow, longLineRow} {
		if !seen[name] {
			return nil, fmt.Errorf("no row %s", name)
		}
	}
	return rows, nil
}

// compile makes the expression, which matches whole words of lower-case text.
func (r *languageRow) compile() error {
	if r.pattern != strings.ToLower(r.pattern) {
		return fmt.Errorf("pattern %q is not in lower case", r.pattern)
	}
	expr, err := syntax.Parse(r.pattern, syntax.Perl)
	if err != nil {
		return err
	}
	r.literal = findLiteral(expr.Simplify())
	if len(r.literal) < 3 {
		return fmt.Errorf("pattern %q has no three characters in a row that every match contains", r.pattern)
	}
	r.match, err = regexp.Compile(`\b(?:` + r.pattern + `)\b`)
	return err
}

// findLiteral returns the longest string that every match of expr contains, as far as its outermost parts show.
func findLiteral(expr *syntax.Regexp) string {
	switch expr.Op {
	case syntax.OpLiteral:
		return string(expr.Rune)
	case syntax.OpCapture, syntax.OpPlus:
		return findLiteral(expr.Sub[0])
	case syntax.OpConcat:
		longest := ""
		for _, sub := range expr.Sub {
			if s := findLiteral(sub); len(s) > len(longest) {
				longest = s
			}
		}
		return longest
	}
	return ""
}

// countLanguage returns the places of each row in the Go and Markdown files below root, all modules included. Left
// out are generated files, testdata, this file, and directories that git does not have.
func countLanguage(root string, rows []languageRow) (map[string][]place, error) {
	found := map[string][]place{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && rel != "." && rel != ".ci"
			if hidden || rel == "bin" || d.Name() == "testdata" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		ext := filepath.Ext(rel)
		if !d.Type().IsRegular() || rel == "language_test.go" || ext != ".go" && ext != ".md" {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return countFile(rel, string(src), rows, found)
	})
	return found, err
}

var generatedHeader = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// countFile adds the places in one file.
func countFile(path, src string, rows []languageRow, found map[string][]place) error {
	if generatedHeader.MatchString(src[:min(len(src), 1024)]) {
		return nil
	}
	add := func(pattern string, lines []int) {
		for _, line := range lines {
			found[pattern] = append(found[pattern], place{path, line})
		}
	}
	text := flattenText(path, src)
	for i := range rows {
		if rows[i].match != nil {
			add(rows[i].pattern, text.findPhrase(&rows[i]))
		}
	}
	long := findLongLines(path, src)
	named := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
	if strings.HasSuffix(path, ".go") && (named || len(long) > 0) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if named {
			add(singleWordRow, findSingleWordNames(fset, file))
		}
		if len(long) > 0 {
			rows := findTableRows(fset, file, src)
			long = slices.DeleteFunc(long, func(line int) bool { return rows[line] })
		}
	}
	add(longLineRow, long)
	return nil
}

// flatText is a file in lower case, with line breaks, comment markers and runs of white space as one space each, so
// that a phrase is found where it is broken over lines.
type flatText struct {
	text   string
	starts []int // offset in text of each source line
}

// flattenText also joins a string constant that is split as "…" + "…" at a line break.
func flattenText(path, src string) flatText {
	isGo := strings.HasSuffix(path, ".go")
	out := make([]byte, 0, len(src)+1)
	var starts []int
	for line := range strings.Lines(src) {
		line = strings.TrimSpace(line)
		inString := false
		if isGo {
			line = trimCommentMarker(line)
			inString = strings.HasPrefix(line, `"`) && bytes.HasSuffix(out, []byte(`" +`))
		} else {
			line = strings.TrimLeft(line, "> ")
		}
		switch {
		case inString:
			out, line = out[:len(out)-len(`" +`)], line[1:]
		case len(out) > 0 && out[len(out)-1] != ' ':
			out = append(out, ' ')
		}
		starts = append(starts, len(out))
		for i := range len(line) {
			c := line[i]
			switch {
			case c == ' ' || c == '\t':
				if len(out) == 0 || out[len(out)-1] == ' ' {
					continue
				}
				c = ' '
			case 'A' <= c && c <= 'Z':
				c += 'a' - 'A'
			}
			out = append(out, c)
		}
	}
	return flatText{string(out), starts}
}

func trimCommentMarker(line string) string {
	for _, marker := range []string{"//", "/*", "* "} {
		if rest, ok := strings.CutPrefix(line, marker); ok {
			return strings.TrimLeft(rest, "/ \t")
		}
	}
	return line
}

// findPhrase returns the line on which each match of row begins. Only the surroundings of row.literal are searched:
// a match may reach maxReach bytes to either side of it.
func (f *flatText) findPhrase(row *languageRow) []int {
	const maxReach = 80
	var lines []int
	for from := 0; ; {
		i := strings.Index(f.text[from:], row.literal)
		if i < 0 {
			return lines
		}
		begin, end := max(from, from+i-maxReach), min(len(f.text), from+i+len(row.literal)+maxReach)
		for begin > from && f.text[begin-1] != ' ' {
			begin--
		}
		for end < len(f.text) && f.text[end] != ' ' {
			end++
		}
		from += i + len(row.literal)
		for _, at := range row.match.FindAllStringIndex(f.text[begin:end], -1) {
			line, _ := slices.BinarySearch(f.starts, begin+at[0]+1)
			lines = append(lines, line)
			from = max(from, begin+at[1])
		}
	}
}

// findSingleWordNames returns the lines of functions and methods whose name has only the letters a to z. main and
// init are left out: Go gives them their names.
func findSingleWordNames(fset *token.FileSet, file *ast.File) []int {
	var lines []int
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || strings.Trim(fn.Name.Name, "abcdefghijklmnopqrstuvwxyz") != "" {
			continue
		}
		if fn.Recv == nil && (fn.Name.Name == "init" || fn.Name.Name == "main" && file.Name.Name == "main") {
			continue
		}
		lines = append(lines, fset.Position(fn.Pos()).Line)
	}
	return lines
}

// findLongLines returns the lines above maxColumns. Left out are Markdown tables, headings and verbatim blocks,
// directives, and comments and Markdown text in which one word alone is too long, such as a URL.
func findLongLines(path, src string) []int {
	isGo := strings.HasSuffix(path, ".go")
	var lines []int
	number, fenced := 0, false
	for line := range strings.Lines(src) {
		number++
		line = strings.TrimRight(line, "\r\n")
		text := strings.TrimLeft(line, " \t")
		if !isGo && (strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~")) {
			fenced = !fenced
		}
		if len(line)*tabColumns <= maxColumns || countColumns(line) <= maxColumns || fenced {
			continue
		}
		indent := line[:len(line)-len(text)]
		if isGo {
			if strings.HasPrefix(text, "//go:") || strings.HasPrefix(text, "//lint:") {
				continue
			}
			comment, ok := strings.CutPrefix(text, "//")
			if !ok {
				lines = append(lines, number)
				continue
			}
			indent, text = indent+"// ", strings.TrimLeft(comment, " \t")
		} else if strings.HasPrefix(text, "#") {
			continue
		}
		tooLong := func(word string) bool { return countColumns(indent+word) > maxColumns }
		if !strings.HasPrefix(text, "|") && !slices.ContainsFunc(strings.Fields(text), tooLong) {
			lines = append(lines, number)
		}
	}
	return lines
}

// countColumns counts a character as one column and moves to the next tab stop at a tab.
func countColumns(line string) int {
	if !strings.Contains(line, "\t") {
		return utf8.RuneCountInString(line)
	}
	n := 0
	for _, r := range line {
		if r == '\t' {
			n += tabColumns - n%tabColumns
		} else {
			n++
		}
	}
	return n
}

// findTableRows returns the lines that hold exactly one element of a slice, array or map literal, which may not
// contain a function.
func findTableRows(fset *token.FileSet, file *ast.File, src string) map[int]bool {
	rows := map[int]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		table, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, row := range table.Elts {
			begin, end := fset.Position(row.Pos()), fset.Position(row.End())
			before := src[begin.Offset-(begin.Column-1) : begin.Offset]
			if begin.Line == end.Line && strings.TrimSpace(before) == "" && isTableRow(table, row) {
				rows[begin.Line] = true
			}
		}
		return true
	})
	return rows
}

// isTableRow reports whether row is data in a table. Go lets a literal leave out its type only inside of slices,
// arrays and maps, so that such a row shows that a named type is one of them.
func isTableRow(table *ast.CompositeLit, row ast.Expr) bool {
	value := row
	if pair, ok := row.(*ast.KeyValueExpr); ok {
		value = pair.Value
	}
	switch table.Type.(type) {
	case *ast.ArrayType, *ast.MapType:
	default:
		if lit, ok := value.(*ast.CompositeLit); !ok || lit.Type != nil {
			return false
		}
	}
	isData := true
	ast.Inspect(row, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			isData = false
		}
		return isData
	})
	return isData
}

// compareCount returns what is wrong with a row, or nothing. The places in the files that changed last come first.
func compareCount(row languageRow, places []place, updated bool) string {
	switch {
	case len(places) < row.count && !updated:
		return fmt.Sprintf("%s: %d places are left of the %d that %s records. Record the lower count:\n"+
			"\tgo test . -run TestLanguage -update-language", row.pattern, len(places), row.count, languageCounts)
	case len(places) > row.count:
		var b strings.Builder
		fmt.Fprintf(&b, "%s: %d places, and %s allows %d. Write instead: %s.\n", row.pattern, len(places),
			languageCounts, row.count, row.replacement)
		shown := sortByChange(places)
		if len(shown) > maxPlaces {
			shown = shown[:maxPlaces]
		}
		fmt.Fprintf(&b, "The first %d of them, files that changed last first:", len(shown))
		for _, p := range shown {
			fmt.Fprintf(&b, "\n\t%s", p)
		}
		if row.match != nil {
			fmt.Fprintf(&b, "\nThose that this branch adds:\n\tgit diff -U0 origin/main | grep -iE '^\\+.*\\b(%s)\\b'",
				row.pattern)
		}
		return b.String()
	}
	return ""
}

// sortByChange sorts places by the time of change of their files, the newest first.
func sortByChange(places []place) []place {
	changed := map[string]time.Time{}
	for _, p := range places {
		if _, ok := changed[p.path]; ok {
			continue
		}
		changed[p.path] = time.Time{}
		if info, err := os.Stat(p.path); err == nil {
			changed[p.path] = info.ModTime()
		}
	}
	return slices.SortedStableFunc(slices.Values(places), func(a, b place) int {
		return changed[b.path].Compare(changed[a.path])
	})
}

// lowerCounts returns data with every count that is higher than what was found lowered to that; it raises none.
func lowerCounts(data string, found map[string][]place) string {
	lines := strings.Split(data, "\n")
	for i, line := range lines {
		fields := strings.Split(line, "\t")
		if i == 0 || strings.HasPrefix(line, "#") || len(fields) != 3 {
			continue
		}
		if count, err := strconv.Atoi(fields[1]); err == nil && len(found[fields[0]]) < count {
			fields[1] = strconv.Itoa(len(found[fields[0]]))
			lines[i] = strings.Join(fields, "\t")
		}
	}
	return strings.Join(lines, "\n")
}

func TestLanguageFindsPhrases(t *testing.T) {
	for _, c := range []struct {
		name, path, pattern, src string
		want                     []int
	}{
		{"a word", "a.go", "judged", "// It is Judged.\n\nvar judged, misjudged, judgedBy int\n", []int{1, 3}},
		{"the noun is another word", "a.go", "judged", "// The judges are pure.\n", nil},
		{"over a comment's lines", "a.go", "at once", "\t// Ends at\n\t//   once, and at\n\n// once.\n", []int{1, 2}},
		{"over three lines", "a.go", "what came of", "// what\n// came\n// of it\n", []int{1}},
		{"in a block comment", "a.go", "at once", "/* It ends at\n * once. */\n", []int{1}},
		{"in a split string", "a.go", "(is|are) none", "const s = \"there are \" +\n\t\"none\"\n", []int{1}},
		{"over lines of a page", "a.md", "at once", "> It ends at\n> once, and  at   once.\n", []int{1, 2}},
		{"one behind the other", "a.md", "(is|are) told", "is told is told\nare told, island told\n", []int{1, 1, 2}},
		{"inside of words", "a.md", "for ever", "for every one, therefor ever\n", nil},
		{"beside other letters", "a.md", "for ever", "\u0130 for ever: \u00e9\n", []int{1}},
	} {
		row := languageRow{pattern: c.pattern}
		if err := row.compile(); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		text := flattenText(c.path, c.src)
		if got := text.findPhrase(&row); !slices.Equal(got, c.want) {
			t.Errorf("%s: lines %v, want %v", c.name, got, c.want)
		}
	}
	for _, pattern := range []string{"Judged", "a|b", "(", "x*"} {
		if (&languageRow{pattern: pattern}).compile() == nil {
			t.Errorf("pattern %q was accepted", pattern)
		}
	}
}

// countSource counts one file with one pattern.
func countSource(t *testing.T, path, src string) map[string][]place {
	t.Helper()
	rows, err := parseLanguageRows(languageSample)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]place{}
	if err := countFile(path, src, rows, found); err != nil {
		t.Fatal(err)
	}
	return found
}

const languageSample = "pattern\tcount\treplacement\n" +
	"# a comment\tof\tthree\n" +
	"@single-word-function\t2\tverb and noun\n" +
	"@line-over-120-columns\t2\ta break\n" +
	"at once\t2\timmediately\n"

func TestLanguageFindsSingleWordNames(t *testing.T) {
	const src = `package main
func main() {}
func init() {}
func take() {}
func takeSlot() { take := func() {}; take() }
func (x T[K, V]) of() {}
func (T[K, V]) main() {}
func cut[V any](V) {}
func Take() {}
func take2() {}
`
	names := countSource(t, "a.go", src)[singleWordRow]
	if want := []place{{"a.go", 4}, {"a.go", 6}, {"a.go", 7}, {"a.go", 8}}; !slices.Equal(names, want) {
		t.Errorf("found %v, want %v", names, want)
	}
	for path, src := range map[string]string{
		"a_test.go": src,
		"b.go":      "// Code generated by a program; DO NOT EDIT.\n\n" + src,
	} {
		if names := countSource(t, path, src)[singleWordRow]; names != nil {
			t.Errorf("%s: found %v", path, names)
		}
	}
}

func TestLanguageFindsLongLines(t *testing.T) {
	const head = "package a\n"
	x, words := strings.Repeat("x", 100), strings.Repeat("word ", 24) // 120 columns without the last space
	for _, c := range []struct {
		name, path, src string
		want            int // line, or 0
	}{
		{"120 columns", "a.go", head + "// " + words[:117] + "\n", 0},
		{"121 columns", "a.go", head + "// " + words[:118] + "x\n", 2},
		{"121 characters", "a.md", strings.Repeat("\u00e9 ", 60) + "x\n", 1},
		{"120 characters of more bytes", "a.md", strings.Repeat("\u00e9 ", 60) + "\n", 0},
		{"tabs up to 120", "a.go", head + "func f() {\n\t\tg(`" + x + "1234567`)\n}\n", 0},
		{"tabs beyond 120", "a.go", head + "func f() {\n\t\tg(`" + x + "12345678`)\n}\n", 3},
		{"URL", "a.go", head + "// See https://example.com/" + x + "\n", 0},
		{"text with a short URL", "a.go", head + "// See https://example.com/ " + words + "\n", 2},
		{"directive", "a.go", head + "//go:generate " + words + "\n", 0},
		{"row of a page", "a.md", "| " + words + " |\n", 0},
		{"text of a page", "a.md", words + words + "\n", 1},
		{"heading", "a.md", "# " + words + "\n", 0},
		{"verbatim block", "a.md", "```\n" + words + "x\n```\n", 0},
		{"text after a block", "a.md", "```\n```\n" + words + "x\n", 3},
		{"row of a slice", "a.go", head + "var s = []string{\n\t\"" + words + "\",\n}\n", 0},
		{"row of a map", "a.go", head + "var s = map[string]string{\n\t\"a\": \"" + words + "\",\n}\n", 0},
		{"row of a named table", "a.go", head + "var s = table{\n\t{1, \"" + words + "\"},\n}\n", 0},
		{"row with a function", "a.go", head + "var s = []any{\n\tfunc() { f(\"" + words + "\") },\n}\n", 3},
		{"field of a struct", "a.go", head + "var s = row{\n\tname: \"" + words + "\",\n}\n", 3},
		{"table on one line", "a.go", head + "var s = []string{\"" + words + "\"}\n", 2},
	} {
		var want []place
		if c.want > 0 {
			want = []place{{c.path, c.want}}
		}
		if got := countSource(t, c.path, c.src)[longLineRow]; !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", c.name, got, want)
		}
	}
}

func TestLanguageCountsOnlyFall(t *testing.T) {
	rows, err := parseLanguageRows(languageSample)
	if err != nil {
		t.Fatal(err)
	}
	places := []place{{"a.go", 1}, {"b.go", 2}, {"c.go", 3}}
	found := map[string][]place{singleWordRow: places, longLineRow: places[:2], "at once": places[:1]}
	want := strings.Replace(languageSample, "at once\t2", "at once\t1", 1)
	if got := lowerCounts(languageSample, found); got != want {
		t.Errorf("lowered to %q, want %q", got, want)
	}
	for _, updated := range []bool{false, true} {
		msg := compareCount(rows[0], places, updated)
		if !strings.Contains(msg, "allows 2") || !strings.Contains(msg, "c.go:3") {
			t.Errorf("more than recorded: %q", msg)
		}
		if msg := compareCount(rows[1], places[:2], updated); msg != "" {
			t.Errorf("as recorded: %q", msg)
		}
		if msg := compareCount(rows[2], places[:1], updated); strings.Contains(msg, "-update-language") == updated {
			t.Errorf("fewer than recorded, updated %v: %q", updated, msg)
		}
	}
	for _, bad := range []string{
		"",
		"at once\t1\tnow\n",
		languageSample + "at once\t1\tnow\n",
		languageSample + "no more\t-1\tx\n",
		languageSample + "no more\t1\n",
		strings.Replace(languageSample, longLineRow, "long", 1),
	} {
		if _, err := parseLanguageRows(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestLanguageLeavesOut(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"a.go", "bench/a.go", ".ci/a.go", "a.md", // counted
		"a.txt", "language_test.go", "bin/a.go", ".git/a.go", "x/testdata/a.go", "x/testdata/a.md"} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("package a // at once\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := parseLanguageRows(languageSample)
	if err != nil {
		t.Fatal(err)
	}
	found, err := countLanguage(root, rows)
	want := []place{{".ci/a.go", 1}, {"a.go", 1}, {"a.md", 1}, {"bench/a.go", 1}}
	if err != nil || !slices.Equal(found["at once"], want) {
		t.Errorf("found %v, %v, want %v", found["at once"], err, want)
	}
}
