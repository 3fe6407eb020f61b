package inflighttest

import (
	"crypto/tls"
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

	"github.com/coder/websocket"
)

// Host is the service's name, which is found by the daemon's configuration alone.
const Host = "bench.example.com"

// model is the model that is asked.
const model = "claude-sonnet-4-5"

// The events with which the model's answer begins, and one of text.
const (
	startEvents = `event: message_start
data: {"type":"message_start","message":{"id":"msg_bench_0","type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":900,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

`
	textEvent = `event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}

`
)

// afterHalt is the word of everything that is sent once the halt was acknowledged:
// whoever gets it got something that should have been stopped.
const afterHalt = "AFTER-THE-HALT"

// Effects is when the last effect of something in flight came, and what came that
// should not have.
type Effects struct {
	mu    sync.Mutex
	last  time.Time // guarded by mu
	times int       // guarded by mu
	late  string    // guarded by mu
}

// got notes an effect: bytes that arrived where they do something.
func (s *Effects) got(b []byte) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.times = now, s.times+1
	if at := strings.Index(string(b), afterHalt); at >= 0 && s.late == "" {
		s.late = string(b)
	}
}

// at notes how many effects there were until now, seen elsewhere, and when the last.
func (s *Effects) at(last time.Time, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.times = last, times
}

// tooLate notes what should not have come.
func (s *Effects) tooLate(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = what
}

// Look returns when the last effect came, how many came, and one that should not have.
func (s *Effects) Look() (last time.Time, times int, late string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.times, s.late
}

// service is a host that agents reach: GET /download sends without end, /socket
// is a WebSocket that takes what comes, /v1/messages is a model that speaks without
// end, and POST /sink takes a body of any length.
type service struct {
	srv   *http.Server
	port  int
	cert  []byte // PEM
	after atomic.Bool

	socket, sink Effects
}

func openService() (*service, error) {
	cert, text, err := NewCertificate(Host, "model."+Host)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{port: l.Addr().(*net.TCPAddr).Port, cert: text}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /download", s.download)
	mux.HandleFunc("GET /socket", s.listen)
	mux.HandleFunc("POST /sink", s.take)
	mux.HandleFunc("POST /v1/messages", s.speak)
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	s.srv = &http.Server{Handler: mux, Protocols: &protocols, TLSConfig: &tls.Config{Certificates: []tls.Certificate{*cert}},
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = s.srv.ServeTLS(l, "", "") }()
	return s, nil
}

func (s *service) close() error { return s.srv.Close() }

// begin forgets what was seen in the round before.
func (s *service) begin() {
	s.after.Store(false)
	for _, x := range []*Effects{&s.socket, &s.sink} {
		x.mu.Lock()
		x.last, x.times, x.late = time.Time{}, 0, ""
		x.mu.Unlock()
	}
}

// words is what is sent now.
func (s *service) words() string {
	if s.after.Load() {
		return afterHalt
	}
	return "some more words "
}

func (s *service) download(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	flush := http.NewResponseController(w)
	_ = steadily(r.Context(), func() error { // until the proxy has gone
		_, err := io.WriteString(w, s.words()+"\n")
		return errors.Join(err, flush.Flush())
	})
}

func (s *service) speak(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	flush := http.NewResponseController(w)
	fmt.Fprintf(w, startEvents, model)
	_ = steadily(r.Context(), func() error {
		_, err := fmt.Fprintf(w, textEvent, s.words())
		return errors.Join(err, flush.Flush())
	})
}

func (s *service) listen(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		_, b, err := c.Read(r.Context())
		if err != nil {
			return
		}
		s.socket.got(b)
	}
}

func (s *service) take(_ http.ResponseWriter, r *http.Request) {
	for b := make([]byte, 4<<10); ; {
		n, err := r.Body.Read(b)
		if n > 0 {
			s.sink.got(b[:n])
		}
		if err != nil {
			return
		}
	}
}
