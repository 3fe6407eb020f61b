package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Provider is a server that answers as both providers do. A request's model names
// the answer, as Read does; the model Spender names one that uses all that it is
// given. Its fields are set before it serves.
type Provider struct {
	// Pause is waited for before each event of a stream.
	Pause time.Duration

	mu     sync.Mutex
	asked  []Asked
	input  int64
	output int64
}

// Spender is the model that says that it used a token for each byte of the messages'
// text, and Spends beside, and as much output as the request allows: the dearest that a
// request can be.
const Spender = "spender"

// Spends is the input of the model Spender beside text, in tokens.
const Spends = 40

// Asked is a request that came.
type Asked struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// Asked returns the requests that came, in their order.
func (p *Provider) Asked() []Asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Asked(nil), p.asked...)
}

// Spent is what Spender has used in all, in tokens.
func (p *Provider) Spent() (input, output int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.input, p.output
}

// asks is what the server reads of a request.
type asks struct {
	Model   string `json:"model"`
	Stream  bool   `json:"stream"`
	Max     int64  `json:"max_tokens"`
	ChatMax int64  `json:"max_completion_tokens"`
	OutMax  int64  `json:"max_output_tokens"`
	Options struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []struct {
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// ServeHTTP answers one request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, Asked{r.Method, r.URL.Path, r.Header.Clone(), body})
	p.mu.Unlock()
	var q asks
	_ = json.Unmarshal(body, &q)
	switch {
	case r.Method == http.MethodGet && r.Header.Get("Anthropic-Version") != "":
		q.Model = "models_anthropic"
	case r.Method == http.MethodGet:
		q.Model = "models_openai"
	case strings.HasSuffix(r.URL.Path, "/count_tokens"):
		q.Model = "count_tokens"
	case strings.HasSuffix(r.URL.Path, "/input_tokens"):
		q.Model = "input_tokens"
	case q.Model == Spender:
		p.spend(w, r, q)
		return
	}
	known := false
	for _, name := range Names() {
		known = known || name == q.Model
	}
	if !known {
		q.Model = "messages_invalid"
	}
	s := Read(q.Model)
	for name, values := range s.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(s.Status)
	p.send(w, r, s, q)
}

// send writes the answer event by event. Usage that nobody asked for is left out of
// streams of chat completions.
func (p *Provider) send(w http.ResponseWriter, r *http.Request, s Shape, q asks) {
	for _, e := range s.Events() {
		if s.Stream() && strings.HasPrefix(s.Name, "chat_") && !q.Options.Usage && bytes.Contains(e, []byte(`"choices": []`)) {
			continue
		}
		if s.Stream() && p.Pause > 0 {
			select {
			case <-time.After(p.Pause):
			case <-r.Context().Done():
				return
			}
		}
		if _, err := w.Write(e); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// spend answers for Spender: it uses all output that the request allows. What it
// uses is counted before a byte of it is sent.
func (p *Provider) spend(w http.ResponseWriter, r *http.Request, q asks) {
	out, in := max(q.Max, q.ChatMax, q.OutMax), int64(Spends)
	for _, m := range q.Messages {
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			in += int64(len(text))
		}
	}
	p.mu.Lock()
	p.input += in
	p.output += out
	p.mu.Unlock()
	usage := fmt.Sprintf(`{"input_tokens":%d,"output_tokens":%d}`, in, out)
	if !q.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":%q,"content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","stop_sequence":null,"usage":%s}`, Spender, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	events := []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"spender","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":` + fmt.Sprint(in) + `,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a word "}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"and another"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":` + usage + `}`,
		`{"type":"message_stop"}`,
	}
	var s strings.Builder
	for _, e := range events {
		var v struct{ Type string }
		_ = json.Unmarshal([]byte(e), &v)
		fmt.Fprintf(&s, "event: %s\ndata: %s\n\n", v.Type, e)
	}
	p.send(w, r, Shape{Name: Spender, Status: 200, Header: w.Header(), Body: []byte(s.String())}, q)
}
