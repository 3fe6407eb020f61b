package redaction

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
)

// githubToken is composed, so that no scanner takes this file for a leak.
const githubToken = "gh" + "p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

// writeFiles writes files with their paths into a directory.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// listMarks returns the marked stretches of what a reader reads, each as "+value" or "-value".
func listMarks(t *testing.T, read func(string, func(Text) error) error, files map[string]string) (list []string) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, files)
	err := read(dir, func(text Text) error {
		for _, m := range text.Marks {
			sign := "-"
			if m.Secret {
				sign = "+"
			}
			list = append(list, sign+string(text.Body[m.Start:m.End]))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func expectMarks(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("marks are %q, want %q", got, want)
	}
}

func TestReadCredDataMarksValues(t *testing.T) {
	head := "Id,FileID,Domain,RepoName,FilePath,LineStart,LineEnd,GroundTruth,ValueStart,ValueEnd," +
		"CryptographyKey,PredefinedPattern,Category\n"
	got := listMarks(t, readCredData, map[string]string{
		"meta/1.csv": head + "1,f,GitHub,r,data/r/f.py,1,1,T,8,12,,,Password\n" +
			"2,f,GitHub,r,data/r/f.py,2,2,F,,,,,Password\n" +
			"3,f,GitHub,r,data/r/f.py,1,1,F,,,,,Password\n" +
			"4,f,GitHub,r,data/r/f.py,3,6,T,,,,,PEM Private Key\n" +
			"5,g,GitHub,r,data/r/absent.py,1,1,T,0,4,,,Password\n" +
			"6,f,GitHub,r,data/r/f.py,90,91,T,0,4,,,Password\n",
		"data/r/f.py": "é = pw('abcd')\r\npw = get()\nBEGIN\nAAAA\nBBBB\nEND\n",
	})
	expectMarks(t, got, "+abcd", "-pw = get()", "+AAAA\nBBBB")
}

func TestReadCredDataRefusesBrokenLabels(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"meta/1.csv": "Id,FileID\n1\n"})
	if err := readCredData(dir, func(Text) error { return nil }); err == nil {
		t.Error("a file of labels with a short row was accepted")
	}
}

func TestReadTitusMarksGroups(t *testing.T) {
	got := listMarks(t, readTitus, map[string]string{"pkg/rule/rules/a.yml": `
rules:
- id: a
  pattern: |
    (?x) key = # the name
    (?P<key_id>[0-9]+) : (?P<token>[a-z ]+)
  examples: ["key=12:ab c", "no match"]
  negative_examples: ["key=none"]
- id: b
  pattern: 'k(v)?w'
  examples: ["akwa"]
- id: c
  categories: [identifier]
  pattern: 'id'
  examples: ["id"]
`, "pkg/rule/rules/broken.yml": "rules: {"})
	expectMarks(t, got, "+ab c", "-key=none", "+kw")
}

func TestReadTrufflehogEvaluatesTables(t *testing.T) {
	got := listMarks(t, readTrufflehog, map[string]string{
		"pkg/detectors/a/a_test.go": `package a
const token = "abc"
var tests = []struct{ name, input string; want []string }{
	{name: "1", input: "x" + token + "y", want: []string{token}},
	{name: "2", input: fmt.Sprintf("key %s", token), want: []string{token, "absent"}},
	{name: "3", input: "nothing", want: nil},
	{name: "4", input: call(), want: []string{token}},
}`,
		"pkg/detectors/a/a_integration_test.go": `package a; var x = []T{{input: "q", want: nil}}`,
		"pkg/detectors/b/b_test.go":             `package`,
	})
	expectMarks(t, got, "+abc", "+abc", "-nothing")
}

func TestReadDetectSecretsReadsTuples(t *testing.T) {
	got := listMarks(t, readDetectSecrets, map[string]string{"tests/plugins/a_test.py": `
SECRET = 'm{n'
CASES = [
    ('key = "{}"'.format(SECRET), SECRET),
    ('a' 'b' + "c\n", False),  # a comment
    (('https://u:pw@h'), True),
    (r'raw\d', True),
    call('no tuple', 3),
    ('"{secret}"', True),
    ('none', None),
]
`})
	expectMarks(t, got, "+m{n", "-abc\n", "+pw", `+raw\d`, "-none")
}

func TestReadPresidioMarksEntitiesAndTheRest(t *testing.T) {
	got := listMarks(t, readPresidio, map[string]string{
		"a.json": `[{"full_text":"é a@b.cd of Ada","spans":[
			{"entity_type":"EMAIL_ADDRESS","start_position":2,"end_position":8},
			{"entity_type":"PERSON","start_position":12,"end_position":15}]}]`,
		"b.json": `{}`,
	})
	expectMarks(t, got, "+a@b.cd", "-é ", "- of ")
}

// A secret is masked where all of its letters and digits are; any other value where a byte is.
func TestMarkIsMaskedWhole(t *testing.T) {
	text := []byte("see abc-def now")
	for _, c := range []struct {
		mark Mark
		list []stretch
		want bool
	}{
		{Mark{Start: 4, End: 11, Secret: true}, []stretch{{4, 11, "secret.x"}}, true},
		{Mark{Start: 4, End: 11, Secret: true}, []stretch{{4, 7, "secret.x"}, {8, 11, "email"}}, true},
		{Mark{Start: 4, End: 11, Secret: true}, []stretch{{4, 7, "secret.x"}}, false},
		{Mark{Start: 4, End: 11, Secret: true, InPart: true}, []stretch{{4, 7, "secret.x"}}, true},
		{Mark{Start: 4, End: 11}, []stretch{{4, 5, "secret.x"}}, true},
		{Mark{Start: 4, End: 11}, []stretch{{4, 5, "email"}}, false},
		{Mark{Start: 4, End: 11, Rules: []string{"email"}}, []stretch{{4, 5, "email"}}, true},
		{Mark{Start: 4, End: 11, Secret: true}, nil, false},
	} {
		if got := c.mark.isMasked(text, c.list); got != c.want {
			t.Errorf("%+v under %v: masked %v, want %v", c.mark, c.list, got, c.want)
		}
	}
}

// Of a JSON string with escapes only the value that was replaced counts.
func TestFindOursNarrowsEscapedStrings(t *testing.T) {
	s, err := newScanner()
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(`{"text":"a \"quoted\" word and ` + githubToken + `"}`)
	list, err := s.findOurs(text)
	if err != nil || len(list) != 1 || string(text[list[0].start:list[0].end]) != githubToken {
		t.Errorf("found %v, %v", list, err)
	}
	if theirs := s.findTheirs(text); len(theirs) != 1 {
		t.Errorf("gitleaks found %v", theirs)
	}
}

func TestMarkInsideKnowsStringsAndComments(t *testing.T) {
	for _, c := range []struct {
		language language
		code     string
		want     string // x marks what is inside
	}{
		{likeC, `a "b\"" 'c' // d`, `  xxxxx xxx xxxx`},
		{likeC, `f<'a>(x) /* y */ z`, `         xxxxxxx  `},
		{likePython, `a = '''b' c''' # d`, `    xxxxxxxxxx xxx`},
		{likePython, `a // 2`, `      `},
		{likeScript, "`a\nb` + 'c", "xxxxx   xx"},
	} {
		got := ""
		for _, in := range markInside([]byte(c.code), c.language)[:len(c.code)] {
			if in {
				got += "x"
			} else {
				got += " "
			}
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.code, got, c.want)
		}
	}
}

func TestIsRightWantsTheKindOfTheRule(t *testing.T) {
	for _, c := range []struct {
		rule, value, before string
		want                bool
	}{
		{"email", "ada@example.com", "", true}, {"email", "ada@", "", false},
		{"card", "4111 1111 1111 1111", "", true}, {"card", "4111 1111 1111 1112", "", false},
		{"pii.phone", "+49 30 1234567", "", true}, {"pii.phone", "id 12", "", false},
		{"secret.assignment", "x", "password: ", true}, {"secret.assignment", "x", "colour: ", false},
		{"pii.field", "Ada", "first_name: ", true}, {"pii.field", "Ada", "x: ", false},
		{"fault", "anything", "", false},
	} {
		if got := isRight(c.rule, c.value, c.before); got != c.want {
			t.Errorf("%s %q behind %q: %v", c.rule, c.value, c.before, got)
		}
	}
}

func TestKeepsShapeComparesAllButStrings(t *testing.T) {
	before := `{"a":[1,"x",null],"b":{"c":true}}`
	for after, want := range map[string]bool{
		`{"b":{"c":true},"a":[1,"y",null]}`:   true,
		`{"a":[1.5,"x",null],"b":{"c":true}}`: false, `{"a":[1,"x"],"b":{"c":true}}`: false,
		`{"a":["1","x",null],"b":{"c":true}}`: false, `{"a":[1,"x",null],"b":"y"}`: false, `{`: false,
	} {
		if keepsShape([]byte(before), []byte(after)) != want {
			t.Errorf("%s: want %v", after, want)
		}
	}
}

// A schema under the name of a secret stays as it is; a token in a question is replaced.
func TestCheckRequestKeepsToolDefinitions(t *testing.T) {
	s, err := newScanner()
	if err != nil {
		t.Fatal(err)
	}
	line := `{"question":[[{"role":"user","content":"use ` + githubToken +
		`"}]],"function":[{"name":"f","description":"d",
		"parameters":{"type":"dict","properties":{"password":{"type":"string"},"x":{"type":"float"}}}}]}`
	list := newToolRequests([]byte(line))
	if len(list) != 2 || newToolRequests([]byte(`{"id":1}`)) != nil {
		t.Fatalf("%d requests", len(list))
	}
	for _, b := range list {
		if bytes.Contains(b.content, []byte(`"dict"`)) || !bytes.Contains(b.content, []byte(`"number"`)) {
			t.Errorf("types of Python are left: %s", b.content)
		}
		if wrong, changed := s.checkRequest(b); wrong != "" || !changed {
			t.Errorf("%v: %q, changed %v", b.dialect, wrong, changed)
		}
	}
}

func TestCassettesHaveBodies(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"pydantic-ai/tests/cassettes/a.yaml": `
interactions:
- request:
    headers: {content-type: [application/json]}
    method: POST
    uri: https://api.openai.com/v1/chat/completions
    parsed_body: {model: m, messages: [{role: user, content: hello}]}
  response:
    headers: {content-type: [image/png]}
    body: {string: "x"}
- request: {method: GET, uri: "https://x.example/", body: null}
  response: {body: {string: 'data: {}'}}
`, "pydantic-ai/tests/cassettes/broken.yaml": "interactions: ["})
	figures := runMeasurement(t, dir, "pydantic-ai")
	if len(figures) != 2 || figures[0].Halves.Used.Of+figures[0].Halves.Unused.Of != 1 ||
		figures[1].Halves.Used.Of+figures[1].Halves.Unused.Of != 2 || !figures[0].Met || !figures[1].Met {
		t.Errorf("%+v", figures)
	}
	r := recorded{URI: "https://api.anthropic.com/v1/messages", Method: "POST", Parsed: map[string]any{"a": 1}}
	if b, ok := r.newBody(); !ok || b.dialect != dialect.Messages {
		t.Errorf("%+v, %v", b, ok)
	}
}

// runMeasurement runs one measurement of the command.
func runMeasurement(t *testing.T, dir, only string) (list []measure.Figure) {
	t.Helper()
	var out bytes.Buffer
	err := Subject().Execute(context.Background(), []string{"--sets", dir, "--only", only, "--json", "--short",
		"--dir", t.TempDir()}, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// A set that is absent or has none of its files is listed as not run.
func TestAbsentSetsAreListed(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"titus/README.md": "", "sources/r/README.md": "",
		"gorilla/README.md": "", "detect-secrets/README.md": "",
		"trufflehog/README.md": ""})
	for _, s := range listSets() {
		list := runMeasurement(t, dir, s.name)
		if len(list) != 1 || !strings.HasPrefix(list[0].Note, "not run") {
			t.Errorf("%s: %+v", s.name, list)
		}
	}
}

func TestSourcesCountsOutsideOfStrings(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"sources/r/a.py": "x = '" + githubToken + "'\n" + githubToken + "\n"})
	f := runMeasurement(t, dir, "sources")[0]
	if n := f.Halves.Used.Holdfast + f.Halves.Unused.Holdfast; n != 1 {
		t.Errorf("%d findings outside", n)
	}
}

func TestMissesAreOfTheUsedHalf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "misses")
	c := &command{misses: file}
	if err := c.checkFlags(); err != nil {
		t.Fatal(err)
	}
	halves := map[int]int{}
	for _, path := range []string{"a", "b", "c", "d", "e", "f"} {
		c.noteMiss("set", "missed x", path, "excerpt of "+path)
		halves[halfOf(path)]++
	}
	got, err := os.ReadFile(file)
	if err != nil || bytes.Count(got, []byte("\n")) != halves[0] || halves[0] == 0 || halves[1] == 0 {
		t.Errorf("%v: %d halves\n%s", err, halves, got)
	}
}

// TestPageHasTheTable holds the table of doc/redaction.md against the recorded output.
func TestPageHasTheTable(t *testing.T) {
	recorded, err := os.ReadFile("testdata/figures.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []measure.Figure
	if err := json.Unmarshal(recorded, &list); err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := drawHalves(&table, list); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "doc", "redaction.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, table.Bytes()) {
		t.Errorf("doc/redaction.md lacks this table:\n%s", table.Bytes())
	}
	for _, s := range append(listSets(), set{name: "random"}) {
		if !slices.ContainsFunc(list, func(f measure.Figure) bool {
			return strings.HasPrefix(f.Name, s.name) &&
				f.Halves != nil
		}) {
			t.Errorf("testdata/figures.json has no figures of %s", s.name)
		}
	}
}
