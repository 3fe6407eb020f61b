package modeltext_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/modeltext"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/providertest"
	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
)

type object = map[string]any
type list = []any

// encodeJSON returns v as JSON.
func encodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// stream is an answer that comes as events.
type stream struct {
	events [][]byte
	cut    func(text string) []string
}

func (s *stream) addEvent(event object) { s.events = append(s.events, encodeJSON(event)) }

// addDeltas adds an event for each piece of the text, made by event.
func (s *stream) addDeltas(text string, event func(piece string) object) {
	for _, piece := range s.cut(text) {
		s.addEvent(event(piece))
	}
}

// cutEvery returns a function that cuts a text into pieces of about n bytes, at characters.
func cutEvery(n int) func(string) []string {
	return func(text string) (out []string) {
		for len(text) > 0 {
			end := min(n, len(text))
			for end < len(text) && !utf8.RuneStart(text[end]) {
				end++
			}
			out, text = append(out, text[:end]), text[end:]
		}
		return append(out, "")
	}
}

// words are the texts that an answer is made of; input is a tool's.
type words struct {
	text, thought, argument string
	input                   object
}

// answers make the same answer of the words as one document and as a stream.
var answers = map[dialect.Dialect]func(w words, s *stream) object{
	dialect.Messages: answerMessage, dialect.Chat: answerChat,
	dialect.Responses: answerResponse, dialect.Completions: answerCompletion,
}

func answerMessage(w words, s *stream) object {
	result := object{"type": "web_search_tool_result", "content": list{object{"type": "web_search_result",
		"title": w.text}}}
	blocks := list{
		object{"type": "thinking", "thinking": w.thought, "signature": "c2ln"},
		object{"type": "redacted_thinking", "data": "ZGF0YQ=="},
		object{"type": "text", "text": w.text, "citations": list{object{"cited_text": w.text}}},
		object{"type": "server_tool_use", "id": "a", "name": "b", "input": w.input}, result,
		object{"type": "tool_use", "id": "c", "name": "d", "input": w.input},
		object{"type": "tool_use", "id": "e", "name": "f", "input": object{}},
		object{"type": "block_to_come", "text": w.text},
		object{"type": "compaction", "content": w.thought, "encrypted_content": "ZW5j"},
	}
	message := object{"type": "message", "role": "assistant", "model": "m", "content": blocks,
		"stop_reason": "end_turn"}
	s.addEvent(object{"type": "message_start", "message": object{"role": "assistant", "model": "m", "content": list{}}})
	for i, b := range blocks {
		begin, deltas := object{}, object{}
		for name, v := range b.(object) {
			text, isText := v.(string)
			switch {
			case name == "input":
				begin[name], deltas["partial_json"] = object{}, string(encodeJSON(v))
			case isText && (name == "text" || name == "thinking" || name == "signature") ||
				name == "content" && b.(object)["type"] == "compaction" || name == "encrypted_content":
				begin[name], deltas[name] = "", text
			case name != "citations":
				begin[name] = v
			}
		}
		s.addEvent(object{"type": "content_block_start", "index": i, "content_block": begin})
		for name, text := range deltas {
			s.addDeltas(text.(string), func(piece string) object {
				return object{"delta": object{"type": name + "_delta", name: piece}, "index": i,
					"type": "content_block_delta"}
			})
		}
		s.addEvent(object{"type": "content_block_stop", "index": i})
	}
	s.addEvent(object{"type": "message_delta", "delta": object{"stop_reason": "end_turn"}})
	s.addEvent(object{"type": "message_stop"})
	return message
}

func answerChat(w words, s *stream) object {
	var choices list
	chunk := func(choice int, delta object) object {
		return object{"object": "chat.completion.chunk", "choices": list{object{"delta": delta, "index": choice}}}
	}
	for i := range 2 {
		texts := object{"content": w.text, "refusal": w.thought, "reasoning_content": w.text}
		for name, text := range texts {
			s.addDeltas(text.(string), func(piece string) object { return chunk(i, object{name: piece}) })
		}
		calls := list{
			object{"id": "a", "type": "function", "function": object{"name": "b", "arguments": w.argument}},
			object{"id": "c", "type": "custom", "custom": object{"name": "d", "input": w.text}},
			object{"id": "e", "type": "function", "function": object{"name": "f", "arguments": w.text}},
		}
		texts["role"], texts["tool_calls"] = "assistant", calls
		for j, call := range [][3]string{{"function", "arguments", w.argument}, {"custom", "input", w.text},
			{"function", "arguments", w.text}} {
			kind, field, text := call[0], call[1], call[2]
			begin := object{"index": j, "id": "a", kind: object{"name": "b", field: ""}}
			s.addEvent(chunk(i, object{"tool_calls": list{begin}}))
			s.addDeltas(text, func(piece string) object {
				return chunk(i, object{"tool_calls": list{object{kind: object{field: piece}, "index": j}}})
			})
		}
		choices = append(choices, object{"index": i, "message": texts, "finish_reason": "tool_calls"})
	}
	for i := range 2 {
		s.addEvent(object{"choices": list{object{"index": i, "delta": object{}, "finish_reason": "tool_calls"}}})
	}
	s.events = append(s.events, []byte("[DONE]"))
	return object{"object": "chat.completion", "choices": choices}
}

func answerCompletion(w words, s *stream) object {
	s.addDeltas(w.text, func(piece string) object { return object{"choices": list{object{"text": piece, "index": 0}}} })
	s.addEvent(object{"choices": list{object{"text": "", "index": 0, "finish_reason": "stop"}}})
	return object{"choices": list{object{"text": w.text, "index": 0, "finish_reason": "stop"}}}
}

func answerResponse(w words, s *stream) object {
	output := list{
		object{"type": "reasoning", "summary": list{object{"type": "summary_text", "text": w.thought}}},
		object{"type": "message", "role": "assistant", "content": list{object{"type": "output_text", "text": w.text},
			object{"type": "refusal", "refusal": w.thought}}},
		object{"type": "function_call", "call_id": "a", "name": "b", "arguments": w.argument},
		object{"type": "custom_tool_call", "call_id": "c", "name": "d", "input": w.text},
		object{"type": "mcp_call", "id": "e", "name": "f", "arguments": w.argument},
		object{"type": "code_interpreter_call", "code": w.text},
	}
	for i, steps := range [][]struct {
		event, field, text string
		part               int
	}{
		{{"reasoning_summary_text", "text", w.thought, 0}}, {{"output_text", "text", w.text, 0},
			{"refusal", "refusal", w.thought, 1}},
		{{"function_call_arguments", "arguments", w.argument, 0}}, {{"custom_tool_call_input", "input", w.text, 0}},
		{{"mcp_call_arguments", "arguments", w.argument, 0}}, {{"code_interpreter_call_code", "code", w.text, 0}},
	} {
		s.addEvent(object{"type": "response.output_item.added", "output_index": i,
			"item": object{"type": output[i].(object)["type"]}})
		for _, step := range steps {
			event := func(end, field, text string) object {
				return object{field: text, "type": "response." + step.event + end, "output_index": i,
					"content_index": step.part}
			}
			s.addDeltas(step.text, func(piece string) object { return event(".delta", "delta", piece) })
			s.addEvent(event(".done", step.field, step.text))
		}
		s.addEvent(object{"type": "response.output_item.done", "output_index": i, "item": output[i]})
	}
	response := object{"object": "response", "status": "completed", "instructions": w.text, "output": output}
	s.addEvent(object{"type": "response.completed", "response": response})
	return response
}

// joined is one text of a stream, put together.
type joined struct {
	kind  modeltext.TextKind
	text  []byte
	whole bool
	event string
}

// joinPieces returns the texts of a stream. It holds that each ends once, with the kind
// that it began with.
func joinPieces(t *testing.T, d dialect.Dialect, events [][]byte) []joined {
	t.Helper()
	r := modeltext.NewPieceReader(d)
	at, ended := map[string]int{}, map[string]bool{}
	var out []joined
	for _, event := range events {
		pieces, err := r.ListPieces(event)
		if err != nil {
			t.Fatalf("%v: %s", err, event)
		}
		var spans []modeltext.Text
		for _, p := range pieces {
			if ended[p.Key] {
				t.Fatalf("%s has ended before %s", p.Key, event)
			}
			ended[p.Key] = p.Ends
			i, began := at[p.Key]
			if !began {
				i, at[p.Key] = len(out), len(out)
				out = append(out, joined{kind: p.Kind, whole: p.Ends, event: string(event)})
			}
			if out[i].kind != p.Kind || !began && p.End == 0 {
				t.Fatalf("%s is %s and %s", p.Key, out[i].kind, p.Kind)
			}
			if p.End > 0 {
				spans = append(spans, p.Text)
				if event[p.Start] == '"' {
					out[i].text, _ = jsontext.AppendUnquote(out[i].text, event[p.Start:p.End])
				} else {
					out[i].text = event[p.Start:p.End]
				}
			}
		}
		checkSpans(t, event, spans)
	}
	for key, is := range ended {
		if !is {
			t.Fatalf("%s has no end", key)
		}
	}
	return out
}

// listWords returns the texts of a document as "kind text".
func listWords(t *testing.T, d dialect.Dialect, doc []byte) (out []string) {
	t.Helper()
	texts, err := modeltext.ListAnswerTexts(d, doc)
	if err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	checkSpans(t, doc, texts)
	for _, s := range texts {
		text := doc[s.Start:s.End]
		if text[0] == '"' {
			text, _ = jsontext.AppendUnquote(nil, text)
		}
		out = append(out, fmt.Sprintf("%s %s", s.Kind, text))
	}
	slices.Sort(out)
	return out
}

// checkStream holds that a stream has the texts of the document.
func checkStream(t *testing.T, d dialect.Dialect, w words, cut func(string) []string) {
	t.Helper()
	s := &stream{cut: cut}
	doc := encodeJSON(answers[d](w, s))
	want := listWords(t, d, doc)
	var got, repeated []string
	for _, j := range joinPieces(t, d, s.events) {
		word := fmt.Sprintf("%s %s", j.kind, j.text)
		switch {
		case d == dialect.Messages && bytes.HasPrefix(j.text, []byte(`{"`)) && !j.whole && len(w.input) > 0 &&
			string(j.text) == string(encodeJSON(w.input)):
			kind := map[modeltext.TextKind]string{modeltext.Arguments: "tool_use",
				modeltext.Served: "server_tool_use"}[j.kind]
			got = append(got, listWords(t, d, encodeJSON(object{"content": list{object{"type": kind,
				"input": w.input}}}))...)
		case d == dialect.Messages && string(j.text) == "{}": // an input of nothing
		case j.whole && d == dialect.Responses:
			if strings.Contains(j.event, `"response.completed"`) {
				repeated = append(repeated, word)
			}
		default:
			got = append(got, word)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: in a stream\n%q, in a document\n%q", d, got, want)
	}
	slices.Sort(repeated)
	if d == dialect.Responses && !slices.Equal(repeated, want) {
		t.Fatalf("at the end %q, not %q", repeated, want)
	}
}

// TestPiecesJoinToTheAnswersTexts: a stream, cut anywhere, has the texts of the same
// answer as one document.
func TestPiecesJoinToTheAnswersTexts(t *testing.T) {
	w := words{text: "Hello \"wörld\" \n", thought: "hm 🤔 \\", argument: `{"to":"a@b.example"}`,
		input: object{"to": "a@b.example", "n": 4111, "list": list{"x", object{"deep": "ü"}}}}
	for d := range answers {
		for _, n := range []int{1, 3, 1000} {
			checkStream(t, d, w, cutEvery(n))
		}
	}
}

// TestAnswerTextsHaveTheirKinds: what the provider runs is never restored, what it signs
// is not changed, and errors and citations are not listed.
func TestAnswerTextsHaveTheirKinds(t *testing.T) {
	s := &stream{cut: cutEvery(100)}
	w := words{text: "T", thought: "H", argument: "A", input: object{"N": "V", "M": 5}}
	for d, want := range map[dialect.Dialect][]string{
		dialect.Messages: {`data {"M":5,"N":"V"}`, "plain T", "served T",
			"served T", `served {"M":5,"N":"V"}`, "signed H", "signed H", "signed ZGF0YQ==", "signed ZW5j",
			"signed c2ln"},
		dialect.Chat: {"arguments A", "arguments A", "arguments T", "arguments T", "plain H",
			"plain H", "plain T", "plain T", "plain T", "plain T", "plain T", "plain T"},
		dialect.Responses:   {"arguments A", "plain H", "plain H", "plain T", "plain T", "served A", "served T"},
		dialect.Completions: {"plain T"},
	} {
		if got := listWords(t, d, encodeJSON(answers[d](w, s))); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	for _, c := range []struct {
		d    dialect.Dialect
		doc  string
		want []string
	}{
		{dialect.Messages, `{"type":"error","error":{"type":"a","message":"b"}}`, nil},
		{dialect.Chat, `{"error":{"message":"a","code":"b"}}`, nil},
		{dialect.Chat, `{"choices":[{"message":{"content":"a","annotations":[{"url_citation":{"title":"b"}}],
			"extra":"c","audio":{"id":"d","data":"e","transcript":"f"}},"logprobs":{"content":[{"token":"g"}]}}]}`,
			[]string{"binary e", "plain a", "plain f", "served c", "served g"}},
		{dialect.Chat, `{"choices":[{"message":{"reasoning_details":[{"text":"a","type":"reasoning.text"}]}}]}`,
			[]string{"signed a"}},
		{dialect.Completions, `{"choices":[{"text":"a","logprobs":{"tokens":["b"]}}]}`, []string{"plain a",
			"served b"}},
		{dialect.Responses, `{"error":{"message":"a"},"instructions":"b","tools":[{"description":"c"}],"output":[
			{"type":"local_shell_call","action":{"type":"exec","command":["d"],"env":{"E":"f"}}},
			{"type":"shell_call","action":{"commands":["g"]},"environment":{"type":"container_reference"}},
			{"type":"shell_call","action":{"commands":["h"]},"environment":{"type":"local"}},
			{"type":"apply_patch_call","operation":{"type":"create_file","path":"i","diff":"j"}},
			{"type":"image_generation_call","result":"k"},{"type":"function_call_output","output":"l"},
			{"type":"compaction","encrypted_content":"m"}]}`,
			[]string{"binary k", `data {"E":"f"}`, "plain d", "plain h", "plain i", "plain j", "served g",
				"served l", "signed m"}},
		{dialect.Embeddings, `{"data":[{"embedding":[0.5]}]}`, nil},
		{dialect.CountTokens, `{"input_tokens":5}`, nil},
	} {
		if got := listWords(t, c.d, []byte(c.doc)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.doc, got, c.want)
		}
	}
}

// TestPiecesKeepTheirSafeKinds: a piece whose block is the provider's, unknown or did not
// begin is Served.
func TestPiecesKeepTheirSafeKinds(t *testing.T) {
	start := func(block string) string {
		return `{"type":"content_block_start","index":1,"content_block":{` + block + `}}`
	}
	const (
		input = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}`
		text  = `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}`
		extra = `{"type":"content_block_delta","index":1,"delta":{"type":"x_delta","x":"a"}}`
		shell = `{"type":"response.shell_call_command.delta","output_index":1,"command_index":2,"delta":"a"}`
	)
	const output = `{"type":"response.output_text.delta","output_index":1,"delta":"a"}`
	call := func(kind string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[{` + kind + `"function":{"arguments":"a"}}]}}]}`
	}
	added := func(item string) string {
		return `{"type":"response.output_item.added","output_index":1,"item":{` + item + `}}`
	}
	for _, c := range []struct {
		d      dialect.Dialect
		events []string
		want   modeltext.TextKind
	}{
		{dialect.Messages, []string{input}, modeltext.Served},
		{dialect.Messages, []string{text}, modeltext.Served},
		{dialect.Messages, []string{start(`"type":"tool_use"`), input}, modeltext.Arguments},
		{dialect.Messages, []string{start(`"type":"mcp_tool_use"`), input}, modeltext.Served},
		{dialect.Messages, []string{start(`"type":"tool_to_come"`), input}, modeltext.Served},
		{dialect.Messages, []string{start(`"type":"text"`), text}, modeltext.Plain},
		{dialect.Messages, []string{start(`"type":"thinking"`), text}, modeltext.Signed},
		{dialect.Messages, []string{start(`"type":"text"`), extra}, modeltext.Served},
		{dialect.Messages, []string{start(`"type":"text"`), `{"type":"content_block_stop","index":1}`, text},
			modeltext.Served},
		{dialect.Messages, []string{start(`"type":"x_tool_use"`), start(`"type":"tool_use"`), input}, modeltext.Served},
		{dialect.Messages, []string{start(`"type":"tool_use"`), start(`"type":"x_tool_use"`), input}, modeltext.Served},
		{dialect.Chat, []string{call(`"type":"mcp",`), call("")}, modeltext.Served},
		{dialect.Responses, []string{added(`"type":"web_search_call"`), output}, modeltext.Served},
		{dialect.Responses, []string{output}, modeltext.Plain},
		{dialect.Responses, []string{shell}, modeltext.Served},
		{dialect.Responses, []string{added(`"type":"shell_call","environment":{"type":"local"}`), shell},
			modeltext.Plain},
		{dialect.Responses, []string{added(`"type":"shell_call","environment":{"type":"container_auto"}`), shell},
			modeltext.Served},
		{dialect.Responses, []string{`{"type":"response.to_come.delta","delta":"a"}`}, modeltext.Served},
		{dialect.Responses, []string{`{"type":"response.to_come.done","text":"a"}`}, modeltext.Served},
		{dialect.Responses, []string{`{"type":"response.audio.delta","delta":"a"}`}, modeltext.Binary},
		{dialect.Responses, []string{`{"delta":"a","type":"response.function_call_arguments.delta"}`},
			modeltext.Arguments},
	} {
		r := modeltext.NewPieceReader(c.d)
		var last []modeltext.Piece
		for _, event := range c.events {
			var err error
			if last, err = r.ListPieces([]byte(event)); err != nil {
				t.Fatal(err)
			}
		}
		if len(last) != 1 || last[0].Kind != c.want {
			t.Errorf("%q: %+v, want %s", c.events, last, c.want)
		}
	}
}

// TestPiecesEndWithTheirText: the event that ends a text says so, also if it has text.
func TestPiecesEndWithTheirText(t *testing.T) {
	const (
		start = `{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`
		text  = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`
		chat  = `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`
		delta = `{"type":"response.refusal.delta","output_index":1,"content_index":2,"delta":"a"}`
	)
	for _, c := range []struct {
		d           dialect.Dialect
		first, last string
		pieces      int // of the last event
	}{
		{dialect.Messages, text, `{"type":"content_block_stop","index":0}`, 1},
		{dialect.Messages, text, `{"type":"message_stop"}`, 1},
		{dialect.Messages, text, `{"type":"error","error":{"message":"b"}}`, 1},
		{dialect.Messages, text, "[DONE]", 1},
		{dialect.Chat, chat, `{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`, 1},
		{dialect.Chat, chat, `{"choices":[{"delta":{},"finish_reason":"length"}]}`, 1},
		{dialect.Chat, chat, " [DONE] ", 1},
		{dialect.Responses, delta,
			`{"refusal":"a","type":"response.refusal.done","output_index":1,"content_index":2}`, 2},
		{dialect.Responses, delta, `{"type":"response.output_item.done","output_index":1,"item":{}}`, 1},
		{dialect.Responses, delta, `{"type":"response.failed","response":{}}`, 1},
	} {
		r := modeltext.NewPieceReader(c.d)
		var first, last []modeltext.Piece
		for _, event := range []string{start, c.first} {
			first, _ = r.ListPieces([]byte(event))
		}
		last, err := r.ListPieces([]byte(c.last))
		if err != nil || len(first) != 1 || first[0].Ends || len(last) != c.pieces {
			t.Fatalf("%s: %+v, %+v, %v", c.last, first, last, err)
		}
		if end := last[len(last)-1]; !end.Ends || end.Key != first[0].Key || end.Kind != first[0].Kind {
			t.Errorf("%s: %+v after %+v", c.last, end, first[0])
		}
	}
}

// TestAnswerPathsSurviveLeftOutNumbers: numbers of a server's tool are left out, and the
// texts after them keep their places.
func TestAnswerPathsSurviveLeftOutNumbers(t *testing.T) {
	texts, err := modeltext.ListAnswerTexts(dialect.Responses, []byte(`{"output":[
		{"results":[{"attributes":{"n":5},"text":"a"}],"type":"file_search_call"}]}`))
	if err != nil || len(texts) != 2 || texts[0].Path != "output[0].results[0].attributes" ||
		texts[1].Path != "output[0].results[0].text" {
		t.Errorf("%+v, %v", texts, err)
	}
}

// TestPiecesOfAllShapesEnd: every event of the providers' documented streams is read.
func TestPiecesOfAllShapesEnd(t *testing.T) {
	for _, name := range providertest.Names() {
		s := providertest.Read(name)
		if !s.Stream() {
			if _, err := modeltext.ListAnswerTexts(findDialect(name), s.Body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		r := modeltext.NewPieceReader(findDialect(name))
		open := map[string]bool{}
		for _, e := range s.Events() {
			_, data, _ := bytes.Cut(e, []byte("data: "))
			pieces, err := r.ListPieces(data)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, p := range pieces {
				if open[p.Key] = true; p.Ends {
					delete(open, p.Key)
				}
			}
		}
		if len(open) > 0 && !strings.Contains(name, "broken") {
			t.Errorf("%s: %v did not end", name, open)
		}
	}
}

func TestPiecesAreBounded(t *testing.T) {
	r := modeltext.NewPieceReader(dialect.Chat)
	for i := range 1 << 13 {
		_, err := r.ListPieces(fmt.Appendf(nil, `{"choices":[{"index":%d,"delta":{"content":"a"}}]}`, i))
		if err != nil {
			return
		}
	}
	t.Error("8192 texts are open at a time")
}

// TestPiecesAreReadOnce: time is linear in the number of events, and of texts in one.
func TestPiecesAreReadOnce(t *testing.T) {
	const events = 1 << 12
	testgrowth.Linear(t, events, func(n int) func() {
		return func() {
			r := modeltext.NewPieceReader(dialect.Chat)
			for range n {
				_, _ = r.ListPieces([]byte(`{"choices":[{"index":0,"delta":{"content":"abc"}}]}`))
			}
		}
	})
	testgrowth.Linear(t, events, func(n int) func() {
		var choices list
		for i := range n {
			choices = append(choices, object{"index": i, "delta": object{"content": "a"}, "finish_reason": "stop"})
		}
		event := encodeJSON(object{"choices": choices})
		return func() {
			if out, err := modeltext.NewPieceReader(dialect.Chat).ListPieces(event); len(out) != n || !out[0].Ends {
				t.Fatal(len(out), err)
			}
		}
	})
}

// FuzzPieces: whatever an answer says and however it is cut, its stream has its texts.
func FuzzPieces(f *testing.F) {
	f.Add("Hello \"x\"", "hm", `{"a":1}`, "key", "value", uint8(3))
	f.Add("🤔\\u", "\n", "", "", "{}", uint8(0))
	f.Fuzz(func(t *testing.T, text, thought, argument, name, value string, n uint8) {
		fix := func(s string) string { return strings.ToValidUTF8(s, "?") }
		w := words{text: fix(text) + "t", thought: fix(thought) + "h", argument: fix(argument) + "a",
			input: object{fix(name) + "n": list{fix(value), 5}}}
		for d := range answers {
			checkStream(t, d, w, cutEvery(int(n)+1))
		}
	})
}
