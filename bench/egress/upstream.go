package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measured"
	"github.com/holdfast-dev/holdfast/internal/cli/inflighttest"
)

// answerSize is the size of what the server answers a body with, in bytes.
const answerSize = 2 << 10

// upstream is the server that all ways lead to. It answers:
//
//	/echo    a body, with a document of 2 KB
//	/counted the same, after arrived was called
//	/events  with events, each after the one before was seen or waited for
//	/idle    with one event, and then nothing more until the client goes
type upstream struct {
	srv  *http.Server
	port int
	cert []byte // PEM

	arrived atomic.Pointer[func()]
	pacer   atomic.Pointer[pacer]
	idle    atomic.Int64
}

func openUpstream() (*upstream, error) {
	cert, text, err := inflighttest.NewCertificate(measured.Host)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &upstream{port: l.Addr().(*net.TCPAddr).Port, cert: text}
	answer := document(answerSize)
	mux := http.NewServeMux()
	echo := func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // the client has gone
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}
	mux.HandleFunc("POST /echo", echo)
	mux.HandleFunc("POST /counted", func(w http.ResponseWriter, r *http.Request) {
		if f := u.arrived.Load(); f != nil {
			(*f)()
		}
		echo(w, r)
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		if p := u.pacer.Load(); p != nil {
			p.send(w, r)
		}
	})
	mux.HandleFunc("GET /idle", func(w http.ResponseWriter, r *http.Request) {
		u.idle.Add(1) // before its client can know that it is open
		defer u.idle.Add(-1)
		if event(w, 0) == nil {
			<-r.Context().Done()
		}
	})
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	u.srv = &http.Server{Handler: mux, Protocols: &protocols, TLSConfig: &tls.Config{Certificates: []tls.Certificate{*cert}},
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = u.srv.ServeTLS(l, "", "") }()
	return u, nil
}

func (u *upstream) close() error { return u.srv.Close() }

// dial reaches the server by whatever name.
func (u *upstream) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", u.port))
}

// event sends one event of a stream.
func event(w http.ResponseWriter, n int) error {
	w.Header().Set("Content-Type", "text/event-stream")
	_, err := fmt.Fprintf(w, "event: delta\ndata: {\"index\":%d,\"delta\":{\"text\":\"some more words of an answer \"}}\n\n", n)
	return errors.Join(err, http.NewResponseController(w).Flush())
}

// pacer sends a number of events. After each it waits for the client to have
// seen it, but no longer than patience: what is held back comes with the next,
// and is counted.
type pacer struct {
	events   int
	patience time.Duration
	sent     atomic.Int64
	seen     chan struct{}
}

func (p *pacer) send(w http.ResponseWriter, r *http.Request) {
	for n := range p.events {
		p.sent.Add(1)
		if event(w, n) != nil {
			return
		}
		select {
		case <-p.seen:
		case <-time.After(p.patience):
		case <-r.Context().Done():
			return
		}
	}
}
