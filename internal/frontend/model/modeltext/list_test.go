package modeltext_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/modeltext"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/providertest"
	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
)

// fullRequests are the files of requests with every part that a dialect defines. A text begins with the kind that
// it must have and a number, such as "plain7"; a string that must not be listed begins
// with "not".
var fullRequests = map[string]dialect.Dialect{
	"messages": dialect.Messages, "chat": dialect.Chat, "responses": dialect.Responses,
	"completions": dialect.Completions, "completion": dialect.Completions, "embeddings": dialect.Embeddings,
}

// readTexts returns the contents of a file of testdata/texts.
func readTexts(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestListTextsFindsEveryText: each text is listed once with the kind that it says, and
// structure never is.
func TestListTextsFindsEveryText(t *testing.T) {
	for name, d := range fullRequests {
		body := string(readTexts(t, name))
		checkTexts(t, name, d, body)
		switch d {
		case dialect.Messages:
			checkTexts(t, name, dialect.CountTokens, body)
		case dialect.Responses:
			checkTexts(t, name, dialect.InputTokens, body)
		}
	}
}

func checkTexts(t *testing.T, name string, d dialect.Dialect, body string) {
	t.Helper()
	texts, err := modeltext.ListTexts(d, []byte(body))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	checkSpans(t, []byte(body), texts)
	seen := map[string]bool{}
	for _, s := range texts {
		value := body[s.Start:s.End]
		word := markIn(value)
		want := strings.TrimRight(word, "0123456789")
		if value[0] != '"' {
			checkData(t, s.Kind, value, seen)
			continue
		}
		if got := s.Kind.String(); want != got && !(want == "binaryd" && got == "binary") {
			t.Errorf("%s: %s at %s is %s", name, value, s.Path, got)
		}
		if s.Document != (want == "binaryd") {
			t.Errorf("%s: %s at %s: document %v", name, value, s.Path, s.Document)
		}
		if seen[word] {
			t.Errorf("%s: %s is listed twice", name, word)
		}
		seen[word] = true
	}
	for rest := body; ; {
		i := strings.IndexByte(rest, '"')
		if i < 0 {
			return
		}
		end := strings.IndexByte(rest[i+1:], '"') + i + 2
		word := markIn(rest[i:end])
		if rest = rest[end:]; word != "" && !strings.HasPrefix(word, "not") && !seen[word] {
			t.Errorf("%s: %s is not listed", name, word)
		}
	}
}

// checkData holds that the marks in data that is no string are of its kind, and notes them.
func checkData(t *testing.T, kind modeltext.TextKind, value string, seen map[string]bool) {
	t.Helper()
	for i, part := range strings.Split(value, `"`) {
		word := markIn(part)
		if i%2 == 0 || word == "" {
			continue
		}
		want := strings.TrimRight(word, "0123456789")
		isData := kind == modeltext.Data && (want == "plain" || want == "name" || want == "number")
		if seen[word] || !isData && want != kind.String() {
			t.Errorf("%s is in %s data", word, kind)
		}
		seen[word] = true
	}
}

// markIn returns the mark at the end of a JSON string, such as "plain7"; "" if it has none.
func markIn(value string) string {
	value = strings.Trim(value, `"`)
	if i := strings.LastIndexAny(value, "/,"); i >= 0 {
		value = value[i+1:]
	}
	word := strings.TrimRight(value, "0123456789")
	switch word {
	case "plain", "arguments", "name", "number", "signed", "binary", "binaryd", "served", "not":
		if word != value {
			return value
		}
	}
	return ""
}

// findDialect returns the dialect of a shape of package providertest.
func findDialect(shape string) dialect.Dialect {
	for d := dialect.Messages; d < dialect.Models; d++ {
		if strings.HasPrefix(shape, d.String()) {
			return d
		}
	}
	return dialect.Chat
}

// checkSpans holds that texts are whole JSON values of doc, in order, apart from each other.
func checkSpans(t *testing.T, doc []byte, texts []modeltext.Text) {
	t.Helper()
	last := 0
	for _, s := range texts {
		if s.Start < last || s.End <= s.Start || s.End > len(doc) {
			t.Fatalf("text at %d to %d after %d of %d bytes", s.Start, s.End, last, len(doc))
		}
		last = s.End
		v := jsontext.Value(doc[s.Start:s.End])
		isString := v.Kind() == jsontext.KindString
		if !v.IsValid() || !isString && s.Kind != modeltext.Data && s.Kind != modeltext.Served &&
			s.Kind != modeltext.Signed ||
			len(v) == 2 && isString || doc[s.Start] == ' ' {
			t.Fatalf("%s text %q at %s", s.Kind, v, s.Path)
		}
		if len(s.Path) > 128 || s.Kind > modeltext.Served ||
			s.Kind != modeltext.Binary && (s.Media != "" || s.Document) {
			t.Fatalf("%+v", s)
		}
	}
}

func TestListTextsNamesPlacesAndMedia(t *testing.T) {
	for _, c := range []struct {
		d    dialect.Dialect
		body string
		want []string
	}{
		{dialect.Messages, `{"system":"a","messages":[{"content":"b"},{"content":[
			{"type":"text","text":"c"},
			{"type":"tool_result","content":[{"source":{"type":"base64","media_type":"image/png","data":"d"}}]},
			{"type":"tool_use","input":{"ghp_key":{"x":["e"]}}},
			{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"f"}},
			{"type":"to_come","ghp_other":"g"}]}]}`, []string{
			"system", "messages[0].content", "messages[1].content[0].text",
			"messages[1].content[1].content[0].source.data=image/png",
			"messages[1].content[2].input",
			"messages[1].content[3].source.data=application/pdf", "messages[1].content[4]"}},
		{dialect.Chat, `{"messages":[{"content":[{"type":"input_audio","input_audio":{"format":"wav","data":"a"}},
			{"image_url":{"url":"data:image\/png;base64,b"}}],
			"tool_calls":[{"function":{"arguments":"c"}}]}]}`, []string{
			"messages[0].content[0].input_audio.data=audio/wav", "messages[0].content[1].image_url.url=image/png",
			"messages[0].tool_calls[0].function.arguments"}},
		{dialect.Responses, `{"input":[{"type":"reasoning","summary":[{"text":"a"}]},
			{"type":"function_call_output","output":"b"},{"action":{"command":["c"]}},
			{"result":"d","type":"image_generation_call","output_format":"png"}],
			"prompt":{"variables":{"ghp_var":"e"}}}`,
			[]string{"input[0].summary[0].text", "input[1].output", "input[2].action", "input[3].result=image/png",
				"prompt.variables"}},
		{dialect.Completions, `{"prompt":["a","b"]}`, []string{"prompt[0]", "prompt[1]"}},
	} {
		texts, err := modeltext.ListTexts(c.d, []byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range texts {
			place := s.Path
			if s.Media != "" {
				place += "=" + s.Media
			}
			got = append(got, place)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.d, got, c.want)
		}
	}
}

func TestListTextsRejectsWhatCannotBeRead(t *testing.T) {
	deep := strings.Repeat(`{"content":[`, 70) + strings.Repeat(`]}`, 70)
	lists := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	objects := strings.Repeat(`{"a":`, 130) + `1` + strings.Repeat("}", 130)
	many := `{"input":[` + strings.Repeat(`"a",`, 1<<16) + `"a"]}`
	for name, c := range map[string]struct {
		d    dialect.Dialect
		body string
		kind holdfast.Kind
	}{
		"a list":      {dialect.Messages, `[]`, holdfast.KindValidation},
		"nothing":     {dialect.Messages, ``, holdfast.KindValidation},
		"a torn body": {dialect.Chat, `{"messages":[`, holdfast.KindValidation},
		"a name twice": {dialect.Chat, `{"messages":[{"content":"a","c\u006fntent":"b"}]}`,
			holdfast.KindValidation},
		"a name twice below": {dialect.Messages, `{"tools":[{"a":1,"a":2}]}`, holdfast.KindValidation},
		"invalid UTF-8":      {dialect.Responses, "{\"input\":\"\xff\"}", holdfast.KindValidation},
		"trailing data":      {dialect.Responses, `{} {}`, holdfast.KindValidation},
		"too deep":           {dialect.Messages, `{"messages":[` + deep + `]}`, holdfast.KindPayloadTooLarge},
		"too many texts":     {dialect.Embeddings, many, holdfast.KindPayloadTooLarge},
		"an unknown dialect": {dialect.Unknown, `{}`, holdfast.KindValidation},
		"models with a body": {dialect.Models, `{}`, holdfast.KindValidation},
		"too deep structure": {dialect.Messages, `{"tools":` + lists + `}`, holdfast.KindPayloadTooLarge},
		"too deep tool input": {dialect.Messages, `{"messages":[{"input":` + objects + `}]}`,
			holdfast.KindPayloadTooLarge},
	} {
		_, err := modeltext.ListTexts(c.d, []byte(c.body))
		_, answerErr := modeltext.ListAnswerTexts(c.d, []byte(strings.Replace(c.body, `"input":[`, `"output":[`, 1)))
		for _, err := range []error{err, answerErr} {
			var e *holdfast.Error
			if !errors.As(err, &e) || e.Kind != c.kind {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if texts, err := modeltext.ListTexts(dialect.Embeddings, []byte(strings.Replace(many, `"a",`, "",
		1))); err != nil || len(texts) != 1<<16 {
		t.Errorf("%d texts, %v", len(texts), err)
	}
	if texts, err := modeltext.ListTexts(dialect.Models, nil); err != nil || texts != nil {
		t.Errorf("%v, %v", texts, err)
	}
}

// contentOf returns a request with n blocks, each with a comma behind it.
func contentOf(block string, n int) []byte {
	return []byte(`{"messages":[{"content":[` + strings.TrimSuffix(strings.Repeat(block, n), ",") + `]}]}`)
}

// TestListTextsReadsOnce: time is linear in the size of the body, whatever it holds.
func TestListTextsReadsOnce(t *testing.T) {
	for name, piece := range map[string]string{
		"texts":  `{"type":"text","text":"abc \" def"},`,
		"served": `{"content":[{"content":[{"content":"x","type":"a_tool_result"}],"type":"a_tool_result"}]},`,
		"input":  `{"type":"tool_use","input":{"a":[1,2,{"b":"c"}]}},`,
		"data":   `{"type":"image","source":{"type":"base64","data":"` + strings.Repeat("QUJD", 64) + `"}},`,
	} {
		testgrowth.Linear(t, 1<<17, func(n int) func() {
			n = min(n/len(piece), 1<<12)
			body := contentOf(piece, n)
			return func() {
				if _, err := modeltext.ListTexts(dialect.Messages, body); err != nil {
					t.Fatal(name, err)
				}
			}
		})
	}
}

// TestListTextsAllocatesLittle: what is allocated does not grow with every text.
func TestListTextsAllocatesLittle(t *testing.T) {
	body := contentOf(`{"type":"text","text":"abc"},`, 1000)
	if n := testing.AllocsPerRun(10, func() { _, _ = modeltext.ListTexts(dialect.Messages, body) }); n > 100 {
		t.Errorf("%v allocations for 1000 texts", n)
	}
}

// FuzzListTexts: texts are whole values of the document, and what Parse accepts has texts.
func FuzzListTexts(f *testing.F) {
	for name, d := range fullRequests {
		f.Add(readTexts(f, name), uint8(d))
	}
	for _, s := range []string{
		`{"messages":[{"content":[{"type":"tool_use","input":{"\ud83d\ude00":[-0.5e-3,"\u0022"]}}]}]}`,
		`{"input":{"type":"x","data":{"data":"x"}},"prompt":{"variables":{"data":5,"index":"x"}}}`,
	} {
		f.Add([]byte(s), uint8(dialect.Responses))
	}
	for _, name := range providertest.Names() {
		f.Add(providertest.Read(name).Body, uint8(findDialect(name)))
	}
	f.Fuzz(func(t *testing.T, body []byte, d uint8) {
		one := dialect.Dialect(d % 9)
		texts, err := modeltext.ListTexts(one, body)
		if err != nil {
			var e *holdfast.Error
			if _, parse := dialect.Parse(one, body); parse == nil && !(errors.As(err, &e) &&
				e.Kind == holdfast.KindPayloadTooLarge) {
				t.Fatalf("Parse accepts what has no texts: %v", err)
			}
		}
		checkSpans(t, body, texts)
		texts, _ = modeltext.ListAnswerTexts(one, body)
		checkSpans(t, body, texts)
	})
}

// TestListTextsMarksThoughts: what a model thought is marked by its member or the type of its block, and nothing else.
func TestListTextsMarksThoughts(t *testing.T) {
	for _, c := range []struct {
		d    dialect.Dialect
		body string
		want []string
	}{
		{dialect.Messages, `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"a"},
			{"type":"text","text":"b"}]},{"role":"user","content":"c"}]}`, []string{"messages[0].content[0].thinking"}},
		{dialect.Chat, `{"messages":[{"role":"assistant","reasoning_content":"a","content":"b"},
			{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"c"}]},
			{"role":"user","content":"thinking of reasoning"}]}`,
			[]string{"messages[0].reasoning_content", "messages[1].reasoning_details[0].text"}},
		{dialect.Responses, `{"input":[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"b"}]}]}`,
			[]string{"input[0].summary[0].text"}},
	} {
		texts, err := modeltext.ListTexts(c.d, []byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range texts {
			if s.Thought {
				got = append(got, s.Path)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.d, got, c.want)
		}
	}
}
