package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/ledger"
)

// The values of a person and of an agent that a provider must not see.
const (
	ownMail  = "alice@corp-example.com"
	ownCard  = "4111 1111 1111 1111"
	ownToken = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	ownWord  = "Maple417!xq"
)

// ownMaterial is what the person says.
var ownMaterial = "Write to " + ownMail + ", card " + ownCard + ".\nGITHUB_TOKEN=" + ownToken +
	"\nDB_PASSWORD=" + ownWord + "\n"

// checkUnseen fails if the provider was sent one of the values, in any encoding.
func checkUnseen(t *testing.T, seen string) {
	t.Helper()
	for _, v := range []string{ownMail, ownCard, ownToken, ownWord} {
		quoted, _ := json.Marshal(v)
		for _, form := range []string{v, string(quoted[1 : len(quoted)-1]), base64.StdEncoding.EncodeToString(
			[]byte(v))[:12], hex.EncodeToString([]byte(v)), url.QueryEscape(v)} {
			if strings.Contains(seen, form) {
				t.Errorf("the provider was sent %q", form)
			}
		}
	}
}

// sentForm is ownMaterial in a request, with placeholders.
var sentForm = regexp.MustCompile(`Write to (\S+), card ([0-9 ]+)\.\\nGITHUB_TOKEN=(\S+?)\\nDB_PASSWORD=(\S+?)\\n`)

// sentWords returns the placeholders of the values in a request: mail, card, token and word.
func sentWords(t *testing.T, body string) [4]string {
	t.Helper()
	m := sentForm.FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("not the request that was sent: %s", body)
	}
	return [4]string{m[1], m[2], m[3], m[4]}
}

// jsonEscape returns a text in the form that it has inside of a JSON string.
func jsonEscape(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

// obj and list are JSON, in the making.
type (
	obj  = map[string]any
	list = []any
)

// encode returns v as JSON.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of strings, numbers and maps
	}
	return string(b)
}

// asEvents returns documents as a stream of events.
func asEvents(docs ...any) string {
	var b strings.Builder
	for _, d := range docs {
		b.WriteString("data: " + encode(d) + "\n\n")
	}
	return b.String()
}

// cutText returns an event for each three bytes of a text.
func cutText(text string, event func(piece string) any) (out list) {
	for len(text) > 0 {
		n := min(3, len(text))
		out = append(out, event(text[:n]))
		text = text[n:]
	}
	return out
}

// lookUp returns what is at a path of names and indices in a document, nil for nothing.
func lookUp(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(obj)
			v = m[p]
		case int:
			l, _ := v.(list)
			if v = nil; p < len(l) {
				v = l[p]
			}
		}
	}
	return v
}

// joinText returns the strings at a path in all documents of an answer, joined.
func joinText(body string, path ...any) string {
	var b strings.Builder
	for line := range strings.Lines(body) {
		var v any
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &v) != nil {
			continue
		}
		switch found := lookUp(v, path...).(type) {
		case string:
			b.WriteString(found)
		case obj:
			b.WriteString(encode(found))
		}
	}
	return b.String()
}

// spoken is how one dialect asks, and how its provider answers with a text and with a tool's arguments.
type spoken struct {
	host, path string
	ask        obj
	document   func(text, arguments string) any
	events     func(text, arguments string) list
	// The paths of text and arguments in a document and in events.
	text, arguments, textPiece, argumentsPiece list
}

func listSpoken() map[string]spoken {
	return map[string]spoken{"messages": speakMessages(), "chat": speakChat(), "responses": speakResponses()}
}

func speakMessages() spoken {
	usage := obj{"input_tokens": 9, "output_tokens": 3}
	message := func(content list) obj {
		return obj{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": content,
			"stop_reason": "tool_use", "usage": usage}
	}
	delta := func(index int, kind, member string) func(string) any {
		return func(p string) any {
			return obj{"type": "content_block_delta", "index": index, "delta": obj{"type": kind, member: p}}
		}
	}
	return spoken{host: "good.test", path: "/v1/messages",
		ask: obj{"model": "claude-x", "max_tokens": 100, "messages": list{obj{"role": "user", "content": ownMaterial}}},
		document: func(text, arguments string) any {
			return message(list{obj{"type": "text", "text": text},
				obj{"type": "tool_use", "id": "t1", "name": "write", "input": json.RawMessage(arguments)}})
		},
		events: func(text, arguments string) list {
			out := list{obj{"type": "message_start", "message": message(list{})},
				obj{"type": "content_block_start", "index": 0, "content_block": obj{"type": "text", "text": ""}}}
			out = append(out, cutText(text, delta(0, "text_delta", "text"))...)
			out = append(out, obj{"type": "content_block_stop", "index": 0}, obj{"type": "content_block_start",
				"index":         1,
				"content_block": obj{"type": "tool_use", "id": "t1", "name": "write", "input": obj{}}})
			out = append(out, cutText(arguments, delta(1, "input_json_delta", "partial_json"))...)
			return append(out, obj{"type": "content_block_stop", "index": 1},
				obj{"type": "message_delta", "delta": obj{"stop_reason": "tool_use"}, "usage": usage},
				obj{"type": "message_stop"})
		},
		text: list{"content", 0, "text"}, arguments: list{"content", 1, "input"},
		textPiece: list{"delta", "text"}, argumentsPiece: list{"delta", "partial_json"}}
}

func speakChat() spoken {
	usage := obj{"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10}
	call := func(arguments string) list {
		return list{obj{"index": 0, "id": "t1", "type": "function", "function": obj{"name": "write",
			"arguments": arguments}}}
	}
	chunk := func(delta obj) obj {
		return obj{"id": "c", "object": "chat.completion.chunk", "model": "gpt-x", "usage": nil,
			"choices": list{obj{"index": 0, "delta": delta, "finish_reason": nil}}}
	}
	return spoken{host: "other.test", path: "/v1/chat/completions",
		ask: obj{"model": "gpt-x", "messages": list{obj{"role": "user", "content": ownMaterial}}},
		document: func(text, arguments string) any {
			return obj{"id": "c", "object": "chat.completion", "model": "gpt-x", "usage": usage, "choices": list{
				obj{"index": 0, "finish_reason": "tool_calls", "message": obj{"role": "assistant",
					"content": text, "tool_calls": call(arguments)}}}}
		},
		events: func(text, arguments string) list {
			out := cutText(text, func(p string) any { return chunk(obj{"content": p}) })
			out = append(out, chunk(obj{"tool_calls": call("")}))
			out = append(out, cutText(arguments, func(p string) any {
				return chunk(obj{"tool_calls": list{obj{"index": 0, "function": obj{"arguments": p}}}})
			})...)
			last := chunk(obj{})
			last["choices"].(list)[0].(obj)["finish_reason"] = "tool_calls"
			return append(out, last, obj{"id": "c", "object": "chat.completion.chunk", "model": "gpt-x",
				"choices": list{}, "usage": usage})
		},
		text:           list{"choices", 0, "message", "content"},
		arguments:      list{"choices", 0, "message", "tool_calls", 0, "function", "arguments"},
		textPiece:      list{"choices", 0, "delta", "content"},
		argumentsPiece: list{"choices", 0, "delta", "tool_calls", 0, "function", "arguments"}}
}

func speakResponses() spoken {
	usage := obj{"input_tokens": 8, "output_tokens": 2, "total_tokens": 10}
	message := func(text string) obj {
		return obj{"type": "message", "id": "m1", "role": "assistant", "status": "completed",
			"content": list{obj{"type": "output_text", "text": text, "annotations": list{}}}}
	}
	call := func(arguments string) obj {
		return obj{"type": "function_call", "id": "f1", "call_id": "t1", "name": "write",
			"arguments": arguments, "status": "completed"}
	}
	whole := func(text, arguments string) obj {
		return obj{"id": "r", "object": "response", "status": "completed", "model": "gpt-x", "usage": usage,
			"output": list{message(text), call(arguments)}}
	}
	at := func(index int, item, kind string, more obj) obj {
		more["type"], more["item_id"], more["output_index"] = "response."+kind, item, index
		return more
	}
	return spoken{host: "other.test", path: "/v1/responses",
		ask: obj{"model": "gpt-x", "input": list{obj{"type": "message", "role": "user",
			"content": list{obj{"type": "input_text", "text": ownMaterial}}}}},
		document: func(text, arguments string) any { return whole(text, arguments) },
		events: func(text, arguments string) list {
			out := list{obj{"type": "response.created", "response": obj{"id": "r", "object": "response",
				"model": "gpt-x", "output": list{}}},
				at(0, "m1", "output_item.added", obj{"item": message("")})}
			out = append(out, cutText(text, func(p string) any {
				return at(0, "m1", "output_text.delta", obj{"content_index": 0, "delta": p})
			})...)
			out = append(out, at(0, "m1", "output_text.done", obj{"content_index": 0, "text": text}),
				at(1, "f1", "output_item.added", obj{"item": call("")}))
			out = append(out, cutText(arguments, func(p string) any {
				return at(1, "f1", "function_call_arguments.delta", obj{"delta": p})
			})...)
			return append(out, at(1, "f1", "function_call_arguments.done", obj{"arguments": arguments}),
				obj{"type": "response.completed", "response": whole(text, arguments)})
		},
		text: list{"output", 0, "content", 0, "text"}, arguments: list{"output", 1, "arguments"},
		textPiece: list{"text"}, argumentsPiece: list{"arguments"}}
}

// D13a: the provider sees placeholders, and the agent the values: in text, in arguments of tools, in code within
// them, whole and in pieces.
func TestModelsRestoreWhatTheyNeverSaw(t *testing.T) {
	w := newModels(t, setup{})
	client := w.client()
	n := 0
	for name, s := range listSpoken() {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%v", name, stream), func(t *testing.T) {
				var said string
				w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
					asked := w.up.requests()
					said = asked[len(asked)-1].Body
					p := sentWords(t, said)
					text := "To " + p[0] + " with " + p[1] + "; token " + p[2] + " and " + p[3]
					code := "to = \"" + p[0] + "\"\ntoken = '" + p[2] + "'\npassword = \"" + p[3] + "\"\n"
					arguments := encode(obj{"path": "a.py", "content": code})
					rw.Header().Set(refusal.HeaderRedacted, "forged")
					if stream {
						rw.Header().Set("Content-Type", "text/event-stream")
						_, _ = io.WriteString(rw, asEvents(s.events(text, arguments)...))
						return
					}
					rw.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(rw, encode(s.document(text, arguments)))
				})
				s.ask["stream"] = stream
				resp, body := posted(t, client, "https://"+w.at(s.host)+s.path, encode(s.ask))
				n++
				if resp.StatusCode != 200 {
					t.Fatalf("%d %s", resp.StatusCode, body)
				}
				checkUnseen(t, said)
				text, arguments := s.text, s.arguments
				if stream {
					text, arguments = s.textPiece, s.argumentsPiece
				}
				want := "To " + ownMail + " with " + ownCard + "; token " + ownToken + " and " + ownWord
				if got := joinText(body, text...); got != want {
					t.Errorf("text\n got %q\nwant %q", got, want)
				}
				var file struct{ Path, Content string }
				if err := json.Unmarshal([]byte(joinText(body, arguments...)), &file); err != nil {
					t.Fatalf("%v: %s", err, body)
				}
				want = "to = \"" + ownMail + "\"\ntoken = '" + ownToken + "'\npassword = \"" + ownWord + "\"\n"
				if file.Content != want {
					t.Errorf("arguments\n got %q\nwant %q", file.Content, want)
				}
				if joined := joinText(body, "delta"); stream && name == "responses" && joined != joinText(body,
					text...)+joinText(body, arguments...) {
					t.Errorf("in pieces %q", joined)
				}
				got := resp.Header.Values(refusal.HeaderRedacted)
				if len(got) != 1 || !strings.HasPrefix(got[0], "replaced=4; ") || !strings.HasSuffix(got[0],
					"kinds=card,email,secret") {
					t.Errorf("%s: %q", refusal.HeaderRedacted, got)
				}
				w.entries(n)
				w.checkRecorded(7)
			})
		}
	}
}

// D13a, D25b: a value of many lines is restored in a stream of pieces of three bytes.
func TestModelsRestoreALongValueInPieces(t *testing.T) {
	w := newModels(t, setup{})
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("abcdEFGH01234567abcdEFGH01234567\n", 60) +
		"-----END RSA PRIVATE KEY-----"
	s := speakMessages()
	s.ask["stream"] = true
	s.ask["messages"] = list{obj{"role": "user", "content": "keep this: " + key}}
	w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
		asked := w.up.requests()
		var v any
		_ = json.Unmarshal([]byte(asked[len(asked)-1].Body), &v)
		said, _ := lookUp(v, "messages", 0, "content").(string)
		said = strings.TrimPrefix(said, "keep this: ")
		if strings.Contains(said, "abcdEFGH01234567") {
			t.Error("the provider was sent the key")
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, asEvents(s.events(said, encode(obj{"content": said}))...))
	})
	resp, body := posted(t, w.client(), "https://"+w.at(s.host)+s.path, encode(s.ask))
	if resp.StatusCode != 200 || joinText(body, s.textPiece...) != key ||
		joinText(body, s.argumentsPiece...) != encode(obj{"content": key}) {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
}

// newest returns all that the ledger has, and the part of its newest entry.
func (w *world) newest() (all, last []byte) {
	w.t.Helper()
	w.must(w.store.View(context.Background(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		for _, h := range heads {
			err = errors.Join(err, tx.Leaves(h.Tenant, 0, h.Size, func(l ledger.Stored) error {
				if all = append(append(all, l.Record...), l.Part...); l.Kind == ledger.KindEntry {
					last = bytes.Clone(l.Part)
				}
				return nil
			}))
		}
		return err
	}))
	return all, last
}

// checkRecorded fails if the ledger has one of the values, or does not say what was replaced and restored.
func (w *world) checkRecorded(restored int) {
	w.t.Helper()
	all, last := w.newest()
	for _, v := range []string{ownMail, ownToken, ownWord} {
		if bytes.Contains(all, []byte(v)) {
			w.t.Errorf("the ledger has %q", v)
		}
	}
	text, err := ledger.PartContent(last)
	w.must(err)
	p := story.Exchanged(text).Placeholders
	if p == nil || p.Replaced != 4 || strings.Join(p.Kinds, " ") != "card email secret" ||
		p.Restored < restored || p.Altered != 0 {
		w.t.Errorf("recorded %+v in %s", p, text)
	}
}

// answers makes the upstream answer each request with what reply returns for its body. The function returns the
// last request's body.
func (w *world) answers(reply func(asked string) string) func() string {
	last := func() string {
		asked := w.up.requests()
		return asked[len(asked)-1].Body
	}
	w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, reply(last()))
	})
	return last
}

// asks posts a request to the provider that speaks Messages, and returns the answer.
func (w *world) asks(client *http.Client, messages string, more ...string) (*http.Response, string) {
	w.t.Helper()
	body := `{"model":"claude-x","max_tokens":100,` + strings.Join(more, "") + `"messages":[` + messages + `]}`
	return posted(w.t.(*testing.T), client, "https://"+w.at("good.test")+"/v1/messages", body)
}

func anthropicSays(content string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[` + content +
		`],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}`
}

// D13a: in the next turn the history holds what was restored, without a name; it leaves as the same placeholder,
// and the earlier part of the request is unchanged.
func TestModelsSeeTheSamePlaceholdersInTheHistory(t *testing.T) {
	w := newModels(t, setup{})
	client := w.client()
	last := w.answers(func(string) string { return anthropicSays(`{"type":"text","text":"ok"}`) })
	first := `{"role":"user","content":"` + jsonEscape(ownMaterial) + `"}`
	w.asks(client, first)
	before := last()
	p := sentWords(t, before)
	turns := first + `,{"role":"assistant","content":[{"type":"text","text":"I use ` + ownWord +
		`"},{"type":"tool_use","id":"t1","name":"bash","input":{"command":"login ` + ownWord + ` ` + ownMail +
		`","` + ownToken + `":1}}]}` +
		`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text",` +
		`"text":"welcome, ` + ownWord + `"}]}]}`
	w.asks(client, turns)
	after := last()
	checkUnseen(t, after)
	for _, want := range []string{
		`"text":"I use ` + p[3] + `"`, `"command":"login ` + p[3] + ` ` + p[0] + `"`, `"` + p[2] + `":1`,
		`"text":"welcome, ` + p[3] + `"`,
		strings.TrimSuffix(before, "]}"),
	} {
		if !strings.Contains(after, want) {
			t.Errorf("%s\nis not in\n%s", want, after)
		}
	}
}

// D13a: structure is not searched, and what holds nothing passes byte for byte.
func TestModelsToolDefinitionsPassUnchanged(t *testing.T) {
	w := newModels(t, setup{})
	client := w.client()
	last := w.answers(func(string) string { return anthropicSays(`{"type":"text","text":"ok"}`) })
	tools := `"tools":[{"name":"login","description":"mail to alice@corp-example.com",` +
		`"input_schema":{"type":"object","properties":{"password":{"type":"string","default":"Maple417!xq"},` +
		`"token":{"type":"string"},"first_name":{"type":"string"}},"required":["password"]}}],` +
		`"metadata":{"user_id":"alice@corp-example.com"},`
	w.asks(client, `{"role":"user","content":"seed 4180299172130199493 for acme/rocket, next page CAUQAA"}`, tools)
	if got := last(); got != `{"model":"claude-x","max_tokens":100,`+tools+`"messages":[{"role":"user",`+
		`"content":"seed 4180299172130199493 for acme/rocket, next page CAUQAA"}]}` {
		t.Errorf("changed: %s", got)
	}
}

// D13a: what the provider runs itself gets no values, nor do ids and signed parts.
func TestModelsRestoreNothingForTheProvider(t *testing.T) {
	w := newModels(t, setup{})
	client := w.client()
	var p [4]string
	last := w.answers(func(asked string) string {
		p = sentWords(t, asked)
		return anthropicSays(`{"type":"thinking","thinking":"of ` + p[0] + `","signature":"c2lnbmF0dXJl"},` +
			`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"` + p[0] + `"}},` +
			`{"type":"text","text":"found","citations":[{"type":"web_search_result_location",` +
			`"url":"https://x.test/?q=` + p[0] + `","cited_text":"` + p[0] + `"}]}`)
	})
	question := `{"role":"user","content":"` + jsonEscape(ownMaterial) + `"}`
	_, body := w.asks(client, question)
	if strings.Contains(body, ownMail) || strings.Count(body, p[0]) != 4 {
		t.Errorf("restored where it must not be: %s", body)
	}
	// The signed part goes back byte for byte, and its placeholder has the same value.
	before := p[0]
	answer := body[strings.Index(body, `"content":[`)+len(`"content":[`) : strings.Index(body, `],"stop_reason"`)]
	resp, got := w.asks(client, question+`,{"role":"assistant","content":[`+answer+`]},{"role":"user",`+
		`"content":"continue"}`)
	if resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, got)
	}
	if !strings.Contains(last(), `"thinking":"of `+before+`","signature":"c2lnbmF0dXJl"`) || !strings.Contains(
		last(), "Write to "+before) {
		t.Errorf("changed: %s", last())
	}
}

// D13a: a signed part that holds a value and did not come from the provider is refused, with its place.
func TestModelsRefuseASignedPartThatHoldsASecret(t *testing.T) {
	w := newModels(t, setup{})
	resp, body := w.asks(w.client(),
		`{"role":"assistant","content":[{"type":"thinking","thinking":"`+ownToken+`","signature":"c2lnbmF0dXJl"}`+
			`]},{"role":"user","content":"continue"}`)
	if resp.StatusCode == 200 || !strings.Contains(body, "messages[0].content[0].thinking") || len(
		w.up.requests()) != 0 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
}

// D13a: a provider's error passes as it came.
func TestModelsErrorsPassUnchanged(t *testing.T) {
	w := newModels(t, setup{})
	const failure = `{"type":"error","error":{"type":"invalid_request_error","message":"messages.0: to ` +
		`bob@corp-example.com, password: hunter2x"}}`
	w.up.answer(says(400, "application/json", failure))
	resp, body := w.asks(w.client(), `{"role":"user","content":"hello"}`)
	if resp.StatusCode != 400 || body != failure {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
}

// D13a: no other agent gets a value, whatever it says.
func TestModelsPlaceholdersBelongToOneAgent(t *testing.T) {
	w := newModels(t, setup{})
	w.answers(func(asked string) string { return anthropicSays(`{"type":"text","text":"ok"}`) })
	w.asks(w.client(), `{"role":"user","content":"`+jsonEscape(ownMaterial)+`"}`)
	asked := w.up.requests()
	p := sentWords(t, asked[len(asked)-1].Body)
	w.answers(func(string) string { return anthropicSays(`{"type":"text","text":"` + p[0] + ` ` + p[3] + `"}`) })
	proxy := http.ProxyURL(mustURL("http://" + w.listenFor("bob")))
	other := &http.Client{Transport: &http.Transport{Proxy: proxy,
		TLSClientConfig: &tls.Config{RootCAs: w.roots}}, Timeout: longest}
	t.Cleanup(other.CloseIdleConnections)
	if _, body := w.asks(other, `{"role":"user","content":"what is behind `+p[0]+`?"}`); strings.Contains(body,
		ownMail) || strings.Contains(body, ownWord) {
		t.Fatalf("another agent got a value: %s", body)
	}
	if _, body := w.asks(w.client(), `{"role":"user","content":"continue"}`); !strings.Contains(body,
		ownMail+" "+ownWord) {
		t.Fatalf("the agent itself did not: %s", body)
	}
}

// D12: a rule on outputs sees all of an answer whose placeholders are restored, also behind its first 4 KB.
func TestModelsRulesSeeAllOfARestoredAnswer(t *testing.T) {
	for name, rows := range map[string]func(tls, plain uint16) []domain.Domain{"restored": modelRows,
		"masked": maskRows} {
		w := newModels(t, setup{rows: rows, policy: func(p *kernel.Policy) {
			modelPrices(p)
			set, err := constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte(`rules:
  - id: no-word
    on: output
    boundary: "egress/*"
    when: "has(output.text) && output.text.contains('zqxforbidden')"
    message: that word is not said here
`)}})
			if err != nil {
				t.Fatal(err)
			}
			p.Rules = set
		}})
		w.answers(func(string) string {
			return anthropicSays(`{"type":"text","text":"` + strings.Repeat("word ", 2<<10) + `zqxforbidden"}`)
		})
		if resp, body := w.asks(w.client(), `{"role":"user","content":"hello"}`); resp.StatusCode == 200 ||
			strings.Contains(body, "zqxforbidden") {
			t.Errorf("%s: %d, %d bytes", name, resp.StatusCode, len(body))
		}
	}
}
