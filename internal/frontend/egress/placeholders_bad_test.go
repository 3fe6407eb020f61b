package egress

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// D13a: a request that cannot be read is refused with a status of the client's mistake, and one that can leaves
// without the values. Nothing is in between.
func TestModelsBadRequestsAreReadOrRefused(t *testing.T) {
	w := newModels(t, setup{})
	w.answers(func(string) string { return anthropicSays(`{"type":"text","text":"ok"}`) })
	m := jsonEscape(ownMaterial)
	body := func(messages string) string {
		return `{"model":"claude-x","max_tokens":100,"messages":[` + messages + `]}`
	}
	said := func(text string) string { return body(`{"role":"user","content":"` + text + `"}`) }
	deep := func(n int) string { return strings.Repeat(`{"a":[`, n/2) + `"` + m + `"` + strings.Repeat(`]}`, n/2) }
	wrapped := []byte(ownToken)
	for range 12 {
		wrapped = []byte(base64.StdEncoding.EncodeToString(wrapped))
	}
	tool := func(input string) string {
		return body(`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":` + input + `}]}`)
	}
	for name, c := range map[string]struct {
		body   string
		passes bool
	}{
		"a name twice at the top":         {`{"messages":[],` + said(m)[1:], false},
		"a name twice in a message":       {body(`{"role":"user","content":"x","content":"` + m + `"}`), false},
		"a name twice, escaped":           {body(`{"role":"user","content":"x","c\u006fntent":"` + m + `"}`), false},
		"a name twice in an input":        {tool(`{"a":"x","a":"` + m + `"}`), false},
		"a name twice in a deep input":    {tool(`{"b":[{"c":{"a":"x","a":"` + m + `"}}]}`), false},
		"a NUL byte":                      {said("a\x00b " + m), false},
		"a NUL, escaped":                  {said(`a\u0000b ` + m), true},
		"a lone surrogate":                {said(`\ud800 ` + m), false},
		"a lone low surrogate":            {said(`\udc00 ` + m), false},
		"a pair of surrogates":            {said(`\ud83d\ude00 ` + m), true},
		"invalid UTF-8":                   {said("\xff\xfe " + m), false},
		"half a character":                {said("\xe2\x82 " + m), false},
		"a huge number":                   {tool(`{"n":1e999999,"a":"` + m + `"}`), true},
		"a long number":                   {tool(`{"n":` + strings.Repeat("9", 100_000) + `,"a":"` + m + `"}`), true},
		"nested 100 levels":               {tool(deep(100)), true},
		"nested 10,000 levels":            {tool(deep(10_000)), false},
		"nested 10,000 lists":             {strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), false},
		"wrapped 12 times":                {said(string(wrapped)), true},
		"two documents":                   {said(m) + said(m), false},
		"cut":                             {said(m)[:60], false},
		"a byte order mark":               {"\ufeff" + said(m), false},
		"a list":                          {"[" + said(m) + "]", false},
		"a string":                        {`"` + m + `"`, false},
		"UTF-16":                          {wide(said(m)), false},
		"NaN":                             {tool(`{"n":NaN,"a":"` + m + `"}`), false},
		"a comment":                       {"/* " + m + " */" + said(m), false},
		"messages that are a string":      {`{"model":"claude-x","max_tokens":9,"messages":"` + m + `"}`, false},
		"a value as the name of a member": {tool(`{"` + ownToken + `":{"` + ownMail + `":1}}`), true},
	} {
		before := len(w.up.requests())
		resp, got := posted(t, w.client(), "https://"+w.at("good.test")+"/v1/messages", c.body)
		asked := w.up.requests()
		switch {
		case resp.StatusCode == 200:
			sent := asked[len(asked)-1].Body
			checkUnseen(t, sent)
			if !json.Valid([]byte(sent)) {
				t.Errorf("%s: sent %.300q", name, sent)
			}
			if !c.passes {
				t.Errorf("%s: passed", name)
			}
		case resp.StatusCode/100 != 4 || len(asked) != before || c.passes:
			t.Errorf("%s: %d %.300s", name, resp.StatusCode, got)
		}
		if strings.Contains(got, ownToken) || strings.Contains(got, ownWord) {
			t.Errorf("%s: the refusal has a value: %.300s", name, got)
		}
	}
}

// D13a: in an answer that cannot be read nothing is restored; what can be is, in every encoding of the body.
func TestModelsBadAnswersAreRestoredOrLeft(t *testing.T) {
	w := newModels(t, setup{})
	var p [4]string
	answer := func(text string) string { return anthropicSays(`{"type":"text","text":"` + text + `"}`) }
	for name, c := range map[string]struct {
		answer   func() string
		coding   string
		restored bool
	}{
		"plain":            {func() string { return answer("to " + p[0]) }, "", true},
		"gzip":             {func() string { return answer("to " + p[0]) }, "gzip", true},
		"br":               {func() string { return answer("to " + p[0]) }, "br", true},
		"zstd":             {func() string { return answer("to " + p[0]) }, "zstd", true},
		"deflate":          {func() string { return answer("to " + p[0]) }, "deflate", true},
		"escaped":          {func() string { return answer(strings.ReplaceAll("to "+p[0], "@", `\u0040`)) }, "", true},
		"a lone surrogate": {func() string { return answer(`\ud800 to ` + p[0]) }, "", false},
		"invalid UTF-8":    {func() string { return answer("\xff to " + p[0]) }, "", false},
		"a NUL":            {func() string { return answer("\x00 to " + p[0]) }, "", false},
		"a name twice": {func() string {
			return strings.Replace(answer("to "+p[0]), `"content":`, `"content":[],"content":`, 1)
		}, "", false},
		"a name twice in a block": {func() string {
			return strings.Replace(answer("to "+p[0]), `"text":"to`, `"text":"x","text":"to`, 1)
		}, "", false},
		"nested 10,000 levels": {func() string {
			return strings.Replace(answer("to "+p[0]), `"content":`,
				`"x":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)+`,"content":`, 1)
		}, "", false},
		"cut":           {func() string { return answer("to " + p[0])[:120+len(p[0])] }, "", false},
		"two documents": {func() string { return answer("to "+p[0]) + answer("to "+p[0]) }, "", false},
	} {
		var sent string
		w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
			asked := w.up.requests()
			p = sentWords(t, asked[len(asked)-1].Body)
			rw.Header().Set("Content-Type", "application/json")
			sent = c.answer()
			b := []byte(sent)
			if c.coding != "" {
				rw.Header().Set("Content-Encoding", c.coding)
				b = packed(t, c.coding, sent)
			}
			_, _ = rw.Write(b)
		})
		resp, got := w.asks(w.client(), `{"role":"user","content":"`+jsonEscape(ownMaterial)+`"}`)
		switch {
		case c.restored && (resp.StatusCode != 200 || !strings.Contains(got, "to "+ownMail) ||
			!json.Valid([]byte(got))):
			t.Errorf("%s: %d %.300q", name, resp.StatusCode, got)
		case !c.restored && strings.Contains(got, ownMail):
			t.Errorf("%s: restored %.300q", name, got)
		case !c.restored && resp.StatusCode == 200 && got != sent:
			t.Errorf("%s: changed %.300q", name, got)
		}
	}
}

// D13a: nothing is restored in what the provider runs itself, whole or in pieces.
func TestModelsRestoreNothingInToolsOfTheProvider(t *testing.T) {
	w := newModels(t, setup{rows: windowRows})
	for name, c := range map[string]struct {
		ask   spoken
		parts func(p string) list
	}{
		"messages": {speakMessages(), func(p string) list {
			in := obj{"query": p, "code": "mail " + p}
			return list{
				obj{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": in},
				obj{"type": "server_tool_use", "id": "s2", "name": "code_execution", "input": in},
				obj{"type": "web_search_tool_result", "tool_use_id": "s1", "content": list{obj{
					"type": "web_search_result", "url": "https://a.test/" + p, "title": p, "encrypted_content": p}}},
				obj{"type": "code_execution_tool_result", "tool_use_id": "s2", "content": obj{
					"type": "code_execution_result", "stdout": p, "stderr": p}},
				obj{"type": "bash_code_execution_tool_result", "tool_use_id": "s3", "content": obj{"stdout": p}},
				obj{"type": "mcp_tool_use", "id": "m1", "name": "send", "server_name": "mail", "input": in},
				obj{"type": "mcp_tool_result", "tool_use_id": "m1", "content": list{obj{"type": "text", "text": p}}},
				obj{"type": "unknown_block", "text": p, "input": in},
			}
		}},
		"responses": {speakResponses(), func(p string) list {
			return list{
				obj{"type": "web_search_call", "id": "w1", "status": "completed", "action": obj{"query": p}},
				obj{"type": "file_search_call", "id": "f1", "queries": list{p}, "results": list{obj{"text": p}}},
				obj{"type": "code_interpreter_call", "id": "c1", "code": p,
					"outputs": list{obj{"type": "logs", "logs": p}}},
				obj{"type": "mcp_call", "id": "m1", "name": "send", "server_label": "mail", "output": p,
					"arguments": encode(obj{"to": p})},
				obj{"type": "mcp_approval_request", "id": "a1", "name": "send", "arguments": encode(obj{"to": p})},
				obj{"type": "image_generation_call", "id": "i1", "revised_prompt": p},
				obj{"type": "unknown_item", "text": p},
			}
		}},
	} {
		for _, stream := range []bool{false, true} {
			var p, sent string
			w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
				asked := w.up.requests()
				p = sentWords(t, asked[len(asked)-1].Body)[0]
				if !stream {
					doc := obj{"id": "m", "type": "message", "role": "assistant", "model": "claude-x",
						"content": c.parts(p), "usage": obj{"input_tokens": 9, "output_tokens": 3}}
					if name == "responses" {
						doc = obj{"id": "r", "object": "response", "status": "completed", "model": "gpt-x",
							"output": c.parts(p),
							"usage":  obj{"input_tokens": 8, "output_tokens": 2, "total_tokens": 10}}
					}
					sent = encode(doc)
					rw.Header().Set("Content-Type", "application/json")
				} else {
					sent = asEvents(streamParts(name, c.parts(p), p)...)
					rw.Header().Set("Content-Type", "text/event-stream")
				}
				_, _ = io.WriteString(rw, sent)
			})
			c.ask.ask["stream"] = stream
			resp, got := posted(t, w.client(), "https://"+w.at(c.ask.host)+c.ask.path, encode(c.ask.ask))
			if resp.StatusCode != 200 || strings.Contains(got, ownMail) ||
				strings.Count(got, p) != strings.Count(sent, p) {
				t.Errorf("%s, stream %v: %d %.2000s", name, stream, resp.StatusCode, got)
			}
		}
	}
}

// streamParts returns the events that begin and end blocks or items, and bring their input in pieces.
func streamParts(dialect string, parts list, p string) (out list) {
	for i, part := range parts {
		if dialect == "messages" {
			out = append(out, obj{"type": "content_block_start", "index": i, "content_block": part})
			out = append(out, cutText(encode(obj{"query": p}), func(piece string) any {
				return obj{"type": "content_block_delta", "index": i,
					"delta": obj{"type": "input_json_delta", "partial_json": piece}}
			})...)
			out = append(out, obj{"type": "content_block_stop", "index": i})
			continue
		}
		at := func(kind string, more obj) obj {
			more["type"], more["output_index"], more["item_id"] = "response."+kind, i, part.(obj)["id"]
			return more
		}
		out = append(out, at("output_item.added", obj{"item": part}), at("mcp_call_arguments.delta", obj{"delta": p}),
			at("mcp_call_arguments.done", obj{"arguments": p}), at("code_interpreter_call_code.delta", obj{"delta": p}),
			at("code_interpreter_call_code.done", obj{"code": p}), at("output_item.done", obj{"item": part}))
	}
	return out
}

// D10: a model call is not replayed. The same key twice asks twice, and no restored answer is kept.
func TestModelsAnswersAreNotKeptForReplay(t *testing.T) {
	w := newModels(t, setup{rows: windowRows})
	p := w.asksForValues()
	for range 2 {
		body := `{"model":"gpt-x","max_output_tokens":50,"previous_response_id":"r0","input":"continue"}`
		resp, got := posted(t, w.client(), "https://"+w.at("other.test")+"/v1/responses", body,
			"Idempotency-Key", "one", "X-Idempotency-Key", "one")
		if resp.StatusCode != 200 || !strings.Contains(got, ownMail) {
			t.Fatalf("%d %s", resp.StatusCode, got)
		}
	}
	if n := len(w.up.requests()); n != 3 {
		t.Errorf("the provider got %d requests", n)
	}
	w.entries(3)
	w.checkStateHasNo(ownMail, ownToken, ownWord, p[0])
	all, _ := w.readNewest()
	for _, v := range []string{ownMail, ownToken, ownWord} {
		if bytes.Contains(all, []byte(v)) {
			t.Errorf("the ledger has %q", v)
		}
	}
}

// D13a: what a model does not see is masked or refused in the messages of a WebSocket too, also if it was mapped after
// the handshake; a row whose answers restore placeholders has no WebSocket.
func TestMappedValuesDoNotLeaveOnAWebSocket(t *testing.T) {
	w := newModels(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		rows := modelRows(tls, plain)
		rows[1].WebSocket, rows[1].Models.Unmetered = true, true
		return append(rows, domain.Domain{Name: "refuse.wild.test", Ports: []uint16{tls}, WebSocket: true},
			domain.Domain{Name: "mask.wild.test", Ports: []uint16{tls}, WebSocket: true, Request: domain.Mask})
	}})
	seen := make(chan string, 20)
	serve := echoing(t, seen)
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			serve(rw, r)
			return
		}
		_, _ = io.WriteString(rw, anthropicSays(`{"type":"text","text":"ok"}`))
	})
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	dial := func(host string) (*websocket.Conn, *http.Response, error) {
		return websocket.Dial(ctx, "wss://"+w.at(host)+"/v1/responses", &websocket.DialOptions{HTTPClient: w.client()})
	}
	if _, resp, err := dial("other.test"); err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("a WebSocket to a row with placeholders: %v", err)
	}
	conns := map[string]*websocket.Conn{}
	for _, host := range []string{"mask.wild.test", "refuse.wild.test"} {
		c, _, err := dial(host)
		w.must(err)
		defer c.CloseNow()
		conns[host] = c
		<-seen
	}
	question := `{"role":"user","content":"` + jsonEscape(ownMaterial) + `"}`
	if resp, body := w.asks(w.client(), question); resp.StatusCode != 200 {
		t.Fatal(body)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(ownWord))
	for _, text := range []string{"see " + ownWord + " there", "see " + encoded + " there",
		`{"note":"` + ownWord + `"}`} {
		w.must(conns["mask.wild.test"].Write(ctx, websocket.MessageText, []byte(text)))
		if got := <-seen; strings.Contains(got, ownWord) || strings.Contains(got, encoded) ||
			!strings.Contains(got, "[") {
			t.Errorf("sent %q", got)
		}
	}
	w.must(conns["refuse.wild.test"].Write(ctx, websocket.MessageText, []byte("nothing of it")))
	if got := <-seen; got != "nothing of it" {
		t.Errorf("sent %q", got)
	}
	_, _, err := conns["refuse.wild.test"].Read(ctx)
	w.must(err)
	w.must(conns["refuse.wild.test"].Write(ctx, websocket.MessageText, []byte("see "+ownWord+" there")))
	if _, _, err := conns["refuse.wild.test"].Read(ctx); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("the socket ended with %v", err)
	}
	select {
	case got := <-seen:
		t.Errorf("sent %q", got)
	default:
	}
}
