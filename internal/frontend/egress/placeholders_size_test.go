package egress

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// letters is an endless text.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "some words "[i%11]
	}
	return len(p), nil
}

// TestModelsGigabytesAreBounded: a request of a gigabyte is refused, and an answer of one is cut or passes, in bounded
// memory; nothing is restored in what was too long to read.
func TestModelsGigabytesAreBounded(t *testing.T) {
	const most = 150 << 20
	w := newModels(t, setup{})
	long := func(head, foot string) io.Reader {
		return io.MultiReader(strings.NewReader(head), io.LimitReader(letters{}, gigabyte()), strings.NewReader(foot))
	}
	head := `{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"` + jsonEscape(ownMaterial)
	held := mostHeld(func() {
		r, err := http.NewRequest(http.MethodPost, "https://"+w.at("good.test")+"/v1/messages", long(head, `"}]}`))
		w.must(err)
		r.Header.Set("Content-Type", "application/json")
		resp, err := w.client().Do(r)
		if err != nil {
			return // it was refused while it still came
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("a request of a gigabyte: %d", resp.StatusCode)
		}
	})
	if len(w.up.requests()) != 0 || held > most {
		t.Errorf("%d requests went out, %d MB were held", len(w.up.requests()), held>>20)
	}
	for kind, frame := range map[string][2]string{
		"application/json":  {`{"type":"message","content":[{"type":"text","text":"`, `"}]}`},
		"text/event-stream": {`data: {"type":"content_block_delta","index":0,"delta":{"text":"`, "\"}}\n\n"},
	} {
		w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
			asked := w.up.requests()
			p := sentWords(t, asked[len(asked)-1].Body)
			rw.Header().Set("Content-Type", kind)
			_, _ = io.Copy(rw, long(frame[0]+p[0]+" ", frame[1]))
		})
		held := mostHeld(func() {
			resp, err := w.client().Post("https://"+w.at("good.test")+"/v1/messages", "application/json",
				strings.NewReader(head+`"}]}`))
			w.must(err)
			defer resp.Body.Close()
			first := make([]byte, 1<<10)
			n, _ := io.ReadFull(resp.Body, first)
			_, _ = io.Copy(io.Discard, resp.Body)
			if strings.Contains(string(first[:n]), ownMail) {
				t.Errorf("%s: restored in an answer that was not read completely", kind)
			}
		})
		if held > most {
			t.Errorf("%s: %d MB were held", kind, held>>20)
		}
	}
}

// D13a: a stream that is on its way when the mappings are lost is restored completely, and the session continues.
func TestModelsRestartInTheMiddleOfAStream(t *testing.T) {
	w := newModels(t, setup{})
	goOn := make(chan struct{})
	var p [4]string
	w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
		asked := w.up.requests()
		p = sentWords(t, asked[len(asked)-1].Body)
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, asEvents(append(slices.Clone(firstEvents), pieceOf("to "+p[0]+" "),
			pieceOf(p[0][:5]))...))
		_ = http.NewResponseController(rw).Flush()
		<-goOn
		_, _ = io.WriteString(rw, asEvents(pieceOf(p[0][5:]), obj{"type": "content_block_stop", "index": 0},
			obj{"type": "message_stop"}))
	})
	r := startStream(t, w, ownMaterial)
	all := readUntil(t, r, "to ")
	w.restartMappings()
	goOn <- struct{}{}
	all += readUntil(t, r, "message_stop")
	if got := joinText(all, "delta", "text"); got != "to "+ownMail+" "+ownMail {
		t.Errorf("%q", got)
	}
	before := p
	w.answers(func(asked string) string { return anthropicSays(`{"type":"text","text":"` + before[0] + `"}`) })
	question := `{"role":"user","content":"` + jsonEscape(ownMaterial) + `"}`
	if resp, body := w.asks(w.client(), question); resp.StatusCode != 200 ||
		!strings.Contains(body, ownMail) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
