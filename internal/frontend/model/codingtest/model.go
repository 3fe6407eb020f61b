// Package codingtest is a model for coding hosts in tests: Claude Code, which speaks Anthropic Messages, and Codex,
// which speaks OpenAI Responses. The model works through one task and answers from what it received: addresses,
// tokens and keys in its answers are copied out of the request. Recorded requests of both hosts are with it.
package codingtest

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
)

// Model is a provider with a model that works through the task. Seed is set before it serves.
type Model struct {
	// Seed determines where answers are cut into pieces.
	Seed uint64

	mu    sync.Mutex
	asked []Asked // guarded by mu
}

// Asked is a request that came.
type Asked struct {
	Path   string            `json:"path"`
	Header map[string]string `json:"header,omitempty"`
	Body   json.RawMessage   `json:"body"`
}

// Asked returns the requests that came, in their order.
func (m *Model) Asked() []Asked {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Asked(nil), m.asked...)
}

// ServeHTTP answers one request: with a stream of events, cut into pieces at random places.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	header := map[string]string{}
	for name := range r.Header {
		header[name] = r.Header.Get(name)
	}
	m.mu.Lock()
	m.asked = append(m.asked, Asked{r.URL.Path, header, body})
	random := rand.New(rand.NewPCG(m.Seed, uint64(len(m.asked))))
	m.mu.Unlock()
	var answer string
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[],"models":[]}`)
		return
	case strings.HasSuffix(r.URL.Path, "/v1/messages"):
		answer = answerMessages(body, random)
	case strings.HasSuffix(r.URL.Path, "/v1/responses"):
		answer = answerResponses(body, random)
	default:
		http.Error(w, `{"error":{"type":"not_found_error","message":"no such path"}}`, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, piece := range cutText(answer, 400, random) {
		if _, err := io.WriteString(w, piece); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// cutText returns a text in pieces of at most most bytes.
func cutText(text string, most int, random *rand.Rand) (pieces []string) {
	for len(text) > 0 {
		n := min(len(text), 1+random.IntN(most))
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}

// document is a JSON object.
type document = map[string]any

// writeEvent appends an event with its type as name.
func writeEvent(b *strings.Builder, kind string, members document) {
	members["type"] = kind
	text, err := json.Marshal(members)
	if err != nil {
		panic(err) // of strings, numbers and maps
	}
	b.WriteString("event: " + kind + "\ndata: " + string(text) + "\n\n")
}

// encodeArguments returns arguments as models write JSON: without escapes that need not be.
func encodeArguments(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // of strings, numbers and maps
	}
	return strings.TrimSuffix(b.String(), "\n")
}
