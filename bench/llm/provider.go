package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measured"
	"github.com/holdfast-dev/holdfast/internal/cli/inflighttest"
)

const (
	// llmModel is the model that is asked.
	llmModel = "claude-sonnet-4-5"
	// llmApart is the time between a stream's events: 50 come in a second.
	llmApart = 20 * time.Millisecond
)

// provider is a server of models in this process, which streams messages in
// Anthropic's events. What it says is set before it is asked.
type provider struct {
	srv  *http.Server
	port int
	cert []byte // PEM

	words atomic.Int64 // how many events of text each answer has
	apart atomic.Int64 // the time between them; 0 sends all of an answer at once

	mu   sync.Mutex
	said []*spoken // by the number in the message's identity
}

// spoken is when one answer's events of text left.
type spoken struct {
	at   []time.Time // each is written before its event leaves
	sent atomic.Int64
}

func openProvider() (*provider, error) {
	cert, text, err := inflighttest.NewCertificate(measured.Host)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &provider{port: l.Addr().(*net.TCPAddr).Port, cert: text}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", p.messages)
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	p.srv = &http.Server{Handler: mux, Protocols: &protocols, TLSConfig: &tls.Config{Certificates: []tls.Certificate{*cert}},
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = p.srv.ServeTLS(l, "", "") }()
	return p, nil
}

func (p *provider) close() error { return p.srv.Close() }

// answers says what each answer is from now on, and forgets those before.
func (p *provider) answers(words int, apart time.Duration) {
	p.words.Store(int64(words))
	p.apart.Store(int64(apart))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = nil
}

// number is the answer of that number.
func (p *provider) number(n int) (*spoken, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n < 0 || n >= len(p.said) {
		return nil, fmt.Errorf("no answer has the number %d", n)
	}
	return p.said[n], nil
}

func (p *provider) begin(words int) (n int, s *spoken) {
	s = &spoken{at: make([]time.Time, words)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, s)
	return len(p.said) - 1, s
}

// messages answers one request.
func (p *provider) messages(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &asked) != nil || asked.Model != llmModel {
		http.Error(w, "this is not what was sent", http.StatusBadRequest)
		return
	}
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, wholeAnswer, llmModel, question(2<<10, true), 500)
		return
	}
	words, apart := int(p.words.Load()), time.Duration(p.apart.Load())
	n, s := p.begin(words)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_ = s.speak(r.Context(), w, n, apart) // whoever has gone away hears no more
}

// speak sends the answer's events, each of text at its own time after the first.
func (s *spoken) speak(ctx context.Context, w http.ResponseWriter, n int, apart time.Duration) error {
	var piece bytes.Buffer
	flush := func() error {
		_, err := w.Write(piece.Bytes())
		piece.Reset()
		return errors.Join(err, http.NewResponseController(w).Flush())
	}
	fmt.Fprintf(&piece, startEvent, n, llmModel)
	from := time.Now()
	for i := range s.at {
		if apart > 0 && i > 0 {
			select {
			case <-time.After(time.Until(from.Add(time.Duration(i) * apart))):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		text, err := json.Marshal(tokenOf(i))
		if err != nil {
			return err
		}
		fmt.Fprintf(&piece, deltaEvent, text)
		s.at[i] = time.Now()
		s.sent.Add(1)
		if apart > 0 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(&piece, endEvents, len(s.at))
	return flush()
}

// The events of an answer, and one that is a document.
const (
	wholeAnswer = `{"id":"msg_bench","type":"message","role":"assistant","model":%q,"content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":900,"output_tokens":%d}}`
	startEvent  = `event: message_start
data: {"type":"message_start","message":{"id":"msg_bench_%d","type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":900,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

`
	deltaEvent = `event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}

`
	endEvents = `event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}}

event: message_stop
data: {"type":"message_stop"}

`
)

// tokenOf is the i-th piece of an answer: words, ends of words, marks and code, with
// the space before them, as models say them.
func tokenOf(i int) string {
	return llmTokens()[i%len(llmTokens())]
}

func llmTokens() []string {
	return strings.Split("The| function| reads| the| file| line| by| line|,| and| un|marsh|als| each| one| into| a| `|struct|`|.\n\n|if| err| :=| read|(|path|);| err| !=| nil| {|\n\treturn| err|\n}\n|\nThat| is| all| it| needs|.| ", "|")
}
