package egress

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// firstEvents begin an answer of Messages and its first text.
var firstEvents = list{
	obj{"type": "message_start", "message": obj{"id": "m", "type": "message", "role": "assistant",
		"model": "claude-x", "content": list{}, "usage": obj{"input_tokens": 9, "output_tokens": 1}}},
	obj{"type": "content_block_start", "index": 0, "content_block": obj{"type": "text", "text": ""}},
}

// pieceOf is an event of Messages with a piece of text.
func pieceOf(text string) any {
	return obj{"type": "content_block_delta", "index": 0, "delta": obj{"type": "text_delta", "text": text}}
}

// startStream posts a question whose answer comes in pieces, and returns the answer as it comes.
func startStream(t *testing.T, w *world, question string) *bufio.Reader {
	t.Helper()
	body := `{"model":"claude-x","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"` +
		jsonEscape(question) + `"}]}`
	r, err := http.NewRequest(http.MethodPost, "https://"+w.at("good.test")+"/v1/messages", strings.NewReader(body))
	w.must(err)
	resp, err := w.client().Do(r)
	w.must(err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%d", resp.StatusCode)
	}
	return bufio.NewReader(resp.Body)
}

// readUntil reads lines until one has want, and returns all of them.
func readUntil(t *testing.T, r *bufio.Reader, want string) string {
	t.Helper()
	var all strings.Builder
	for {
		line, err := r.ReadString('\n')
		all.WriteString(line)
		if strings.Contains(line, want) {
			return all.String()
		}
		if err != nil {
			t.Fatalf("%v after %q", err, all.String())
		}
	}
}

// D25b: while a provider says nothing, what keeps the connection awake comes, and so do the last letters of a word
// that began as no placeholder does.
func TestModelsStreamGoesOnWhileTheProviderIsSilent(t *testing.T) {
	w := newModels(t, setup{})
	var question strings.Builder
	for i := range 300 {
		question.WriteString("to user" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + "@corp-example.com, ")
	}
	goOn := make(chan struct{})
	w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
		asked := w.up.requests()
		p := strings.Fields(asked[len(asked)-1].Body[strings.Index(asked[len(asked)-1].Body, `"to `):])[1]
		rw.Header().Set("Content-Type", "text/event-stream")
		say := func(docs ...any) {
			_, _ = io.WriteString(rw, asEvents(docs...))
			_ = http.NewResponseController(rw).Flush()
		}
		say(append(slices.Clone(firstEvents), pieceOf("I think tha"))...)
		<-goOn
		say(pieceOf("t "+p[:3]), obj{"type": "ping"})
		<-goOn
		say(pieceOf(strings.TrimSuffix(p[3:], ",")), obj{"type": "content_block_stop", "index": 0},
			obj{"type": "message_delta", "delta": obj{"stop_reason": "end_turn"}, "usage": obj{"output_tokens": 3}},
			obj{"type": "message_stop"})
	})
	r := startStream(t, w, question.String())
	all := readUntil(t, r, "I think tha")
	goOn <- struct{}{}
	all += readUntil(t, r, `"ping"`)
	goOn <- struct{}{}
	all += readUntil(t, r, "message_stop")
	if got := joinText(all, "delta", "text"); got != "I think that usera@corp-example.com" {
		t.Errorf("%q", got)
	}
}

// D13a: a request that says a placeholder as real text does not change what an answer that is on its way restores.
func TestModelsAnswerIsRestoredByItsOwnRequest(t *testing.T) {
	w := newModels(t, setup{})
	goOn := make(chan struct{})
	var p [4]string
	w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
		asked := w.up.requests()
		if last := asked[len(asked)-1].Body; !strings.Contains(last, `"stream":true`) {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(rw, anthropicSays(`{"type":"text","text":"ok"}`))
			return
		}
		p = sentWords(t, asked[0].Body)
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, asEvents(append(slices.Clone(firstEvents), pieceOf("to "+p[0]+" "))...))
		_ = http.NewResponseController(rw).Flush()
		<-goOn
		_, _ = io.WriteString(rw, asEvents(obj{"type": "content_block_stop", "index": 0},
			obj{"type": "content_block_start", "index": 1, "content_block": obj{"type": "text", "text": ""}},
			obj{"type": "content_block_delta", "index": 1, "delta": obj{"type": "text_delta", "text": "and " + p[0]}},
			obj{"type": "content_block_stop", "index": 1}, obj{"type": "message_stop"}))
	})
	r := startStream(t, w, ownMaterial)
	all := readUntil(t, r, "to ")
	if resp, body := w.asks(w.client(), `{"role":"user","content":"who is `+p[0]+`?"}`); resp.StatusCode != 200 {
		t.Fatal(body)
	}
	goOn <- struct{}{}
	all += readUntil(t, r, "message_stop")
	if got := joinText(all, "delta", "text"); got != "to "+ownMail+" and "+ownMail {
		t.Errorf("%q", got)
	}
}
