package main

import (
	"context"
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

// afterHalt is the word of everything that is sent once the halt was acknowledged:
// whoever gets it got something that should have been stopped.
const afterHalt = "AFTER-THE-HALT"

// seen is when the last effect of something in flight came, and what came that
// should not have.
type seen struct {
	mu    sync.Mutex
	last  time.Time // guarded by mu
	times int       // guarded by mu
	late  string    // guarded by mu
}

// got notes an effect: bytes that arrived where they do something.
func (s *seen) got(b []byte) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.times = now, s.times+1
	if at := strings.Index(string(b), afterHalt); at >= 0 && s.late == "" {
		s.late = string(b)
	}
}

// at notes how many effects there were until now, seen elsewhere, and when the last.
func (s *seen) at(last time.Time, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.times = last, times
}

// tooLate notes what should not have come.
func (s *seen) tooLate(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = what
}

func (s *seen) look() (last time.Time, times int, late string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.times, s.late
}

// haltService is a host that agents reach: GET /download sends without end, /socket
// is a WebSocket that takes what comes, /v1/messages is a model that speaks without
// end, and POST /sink takes a body of any length.
type haltService struct {
	srv   *http.Server
	port  int
	cert  []byte // PEM
	after atomic.Bool

	socket, sink seen
}

func openHaltService() (*haltService, error) {
	cert, text, err := selfSigned(egressHost, "model."+egressHost)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &haltService{port: l.Addr().(*net.TCPAddr).Port, cert: text}
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

func (s *haltService) close() error { return s.srv.Close() }

// begin forgets what was seen in the round before.
func (s *haltService) begin() {
	s.after.Store(false)
	for _, x := range []*seen{&s.socket, &s.sink} {
		x.mu.Lock()
		x.last, x.times, x.late = time.Time{}, 0, ""
		x.mu.Unlock()
	}
}

// words is what is sent now.
func (s *haltService) words() string {
	if s.after.Load() {
		return afterHalt
	}
	return "some more words "
}

// haltApart is the time between two effects of everything in flight.
const haltApart = time.Millisecond

// steadily calls f again and again until it fails or ctx ends.
func steadily(ctx context.Context, f func() error) error {
	t := time.NewTicker(haltApart)
	defer t.Stop()
	for {
		if err := f(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

func (s *haltService) download(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	flush := http.NewResponseController(w)
	_ = steadily(r.Context(), func() error { // until the proxy has gone
		_, err := io.WriteString(w, s.words()+"\n")
		return errors.Join(err, flush.Flush())
	})
}

func (s *haltService) speak(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	flush := http.NewResponseController(w)
	fmt.Fprintf(w, startEvent, 0, llmModel)
	_ = steadily(r.Context(), func() error {
		_, err := fmt.Fprintf(w, deltaEvent, fmt.Sprintf("%q", s.words()))
		return errors.Join(err, flush.Flush())
	})
}

func (s *haltService) listen(w http.ResponseWriter, r *http.Request) {
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

func (s *haltService) take(_ http.ResponseWriter, r *http.Request) {
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
