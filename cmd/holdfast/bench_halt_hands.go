package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/review"
)

// haltHand is one kind of thing that can be in flight.
type haltHand struct {
	name     string
	boundary string // how its crossing's begins
	begin    func(w *haltWorld) (*inFlight, error)
}

// inFlight is one that is. Its effects are seen where they do something: a file
// that is written, a service that is sent to, a client that is given an answer.
type inFlight struct {
	effects *seen
	// over is closed when its last effect was seen; err is then set where it ended
	// otherwise than by being stopped.
	over chan struct{}
	err  error
	end  func()
}

// fly returns something in flight that act is: what it returns ends it.
func fly(effects *seen, end func(), act func(x *inFlight) error) *inFlight {
	x := &inFlight{effects: effects, over: make(chan struct{}), end: end}
	go func() {
		defer close(x.over)
		x.err = act(x)
	}()
	return x
}

// flying waits until the effects of x are seen.
func (x *inFlight) flying() error {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, n, _ := x.effects.look(); n >= 3 {
			return nil
		}
		select {
		case <-x.over:
			return fmt.Errorf("it ended before it was halted: %w", x.err)
		default:
		}
		if time.Since(start) > 2*time.Minute {
			return errors.New("it does not begin")
		}
	}
}

// ended waits until x was stopped. The error says that it goes on, how else it ended,
// or what took effect after the halt was acknowledged.
func (x *inFlight) ended() error {
	select {
	case <-x.over:
	case <-time.After(time.Minute):
		return errors.New("it goes on a minute after it was to be stopped")
	}
	if _, _, late := x.effects.look(); x.err == nil && late != "" {
		return fmt.Errorf("after the halt came %q", late)
	}
	return x.err
}

// haltHands are all that there are; last those whose time in flight is bounded.
func haltHands() []haltHand {
	return append([]haltHand{
		{"a tool call over stdio, at its server", "mcp/stdio/work", (*haltWorld).callStdio},
		{"a tool call over HTTP, at its server", "mcp/http/work", (*haltWorld).callHTTP},
		{"a program of holdfast run, on its tree", "run/sh", (*haltWorld).program},
		{"a download, at its client", "egress/" + egressHost, (*haltWorld).download},
		{"an opaque tunnel, at its host", "egress/opaque." + egressHost, (*haltWorld).tunnel},
		{"a WebSocket, at its host", "egress/" + egressHost, (*haltWorld).webSocket},
		{"a model's answer, at its client", "egress/model." + egressHost, (*haltWorld).model},
		{"a held call that waits for a person, at its client", haltHeld, (*haltWorld).callHeld},
	}, codeHands()...)
}

// haltHeld is the boundary of the call that waits for a person: it never begins.
const haltHeld = "mcp/asks/work"

// begin starts a command, whose end may be waited for.
func (w *haltWorld) begin(cmd *exec.Cmd) (wait func() error, stop func(), err error) {
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	wait = sync.OnceValue(cmd.Wait)
	return wait, func() { _ = cmd.Process.Kill(); _ = wait() }, nil
}

func (w *haltWorld) gateway(name string, flags ...string) []string {
	return append(append([]string{"mcp", "--state", w.state, "--config", w.config, "--agent", w.agent, "--name", name}, flags...), "--", w.self, "bench", "gateway", "--server", w.record(name))
}

// record is where a server notes what it does.
func (w *haltWorld) record(name string) string {
	return filepath.Join(w.records, w.agent+"-"+name+".record")
}

const workCall = `"method":"tools/call","params":{"name":"work","arguments":{}}`

// callStdio is a tool call that works until it is cancelled, and writes when.
func (w *haltWorld) callStdio() (*inFlight, error) {
	p, err := (&bench{ctx: w.ctx}).peer(w.command(w.gateway("stdio")...).Args)
	if err != nil {
		return nil, err
	}
	if _, err := p.send(workCall); err != nil {
		return nil, errors.Join(err, p.end())
	}
	return w.works("stdio", func() { _ = p.end() }, func() ([]byte, error) {
		_, line, err := p.answer()
		return line, err
	}), nil
}

// works follows a call by its server's record. It is over when its client was told
// why it was cut, and its server that it is cancelled.
func (w *haltWorld) works(name string, end func(), answer func() ([]byte, error)) *inFlight {
	g := &behind{record: w.record(name)}
	effects := &seen{}
	return fly(effects, end, func(*inFlight) error {
		if err := g.recorded("works", 3, func(when []int64) { effects.at(time.Unix(0, when[len(when)-1]), 3) }); err != nil {
			return err
		}
		line, err := answer()
		if err != nil {
			return err
		}
		if err := w.told(line); err != nil {
			return err
		}
		if err := g.recorded("cancelled", 1, func([]int64) {}); err != nil {
			return err
		}
		return g.recorded("works", 3, func(when []int64) { effects.at(time.Unix(0, when[len(when)-1]), len(when)) })
	})
}

// callHTTP is the same over HTTP, by a gateway that listens.
func (w *haltWorld) callHTTP() (*inFlight, error) {
	cmd := w.command(w.gateway("http", "--http", "127.0.0.1:0")...)
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	_, stop, err := w.begin(cmd)
	if err != nil {
		return nil, err
	}
	at, err := listensAt(said)
	if err != nil {
		stop()
		return nil, err
	}
	c := &mcpOverHTTP{at: at}
	if err := c.initialize(w.ctx); err != nil {
		stop()
		return nil, err
	}
	var line []byte
	answered := make(chan error, 1)
	go func() {
		line, err = c.post(w.ctx, `{"jsonrpc":"2.0","id":7,`+workCall+`}`)
		answered <- err
	}()
	return w.works("http", stop, func() ([]byte, error) { err := <-answered; return line, err }), nil
}

// callHeld is a call that waits for a person. Its one effect is its answer.
func (w *haltWorld) callHeld() (*inFlight, error) {
	before, err := w.held()
	if err != nil {
		return nil, err
	}
	p, err := (&bench{ctx: w.ctx}).peer(w.command(w.gateway("asks", "--wait", "55s")...).Args)
	if err != nil {
		return nil, err
	}
	// No two are alike: those would wait for one answer.
	if _, err := p.send(fmt.Sprintf(`"method":"tools/call","params":{"name":"work","arguments":{"n":%d}}`, time.Now().UnixNano())); err != nil {
		return nil, errors.Join(err, p.end())
	}
	effects := &seen{}
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		now, err := w.held()
		if err == nil && now > before {
			break
		}
		if err != nil || time.Since(start) > time.Minute {
			return nil, errors.Join(err, errors.New("no review was opened"), p.end())
		}
	}
	effects.at(time.Now(), 3)
	return fly(effects, func() { _ = p.end() }, func(*inFlight) error {
		_, line, err := p.answer()
		effects.got(line)
		if err == nil && !strings.Contains(string(line), "held for review, nothing has been done") {
			err = w.told(line)
		}
		return err
	}), nil
}

// held is how many calls wait for a person.
func (w *haltWorld) held() (n int, err error) {
	list, err := w.api.Reviews(w.ctx, holdfast.Local, review.Pending)
	for i := range list {
		if list[i].Boundary == haltHeld {
			n++
		}
	}
	return n, err
}

// program is one of holdfast run that writes into its tree again and again.
func (w *haltWorld) program() (*inFlight, error) {
	effects := &seen{}
	// Each has a file of its own: what one before it wrote last is no word of this one.
	ticks := fmt.Sprint("ticks-", time.Now().UnixNano())
	script := w.harm + `while :; do a=; [ ! -e after ] || a=` + afterHalt + `; echo "works $(date +%s%N) $a" >> ` + ticks + `; done`
	cmd := w.command("run", "--json", "--agent", w.agent, "--dir", w.tree, "--", "sh", "-c", script)
	var said bytes.Buffer
	cmd.Stderr = &said
	wait, stop, err := w.begin(cmd)
	if err != nil {
		return nil, err
	}
	read := func() int {
		b, _ := os.ReadFile(filepath.Join(w.tree, ticks))
		n := 0
		for line := range strings.Lines(string(b)) {
			words := strings.Fields(line)
			if len(words) < 2 {
				continue
			}
			if ns, err := strconv.ParseInt(words[1], 10, 64); err == nil {
				n++
				effects.at(time.Unix(0, ns), n)
			}
			if strings.Contains(line, afterHalt) {
				effects.tooLate(line)
			}
		}
		return n
	}
	return fly(effects, stop, func(*inFlight) error {
		ended := make(chan error, 1)
		go func() { ended <- wait() }()
		for read() < 3 {
			select {
			case <-ended:
				return errors.New(clean(said.String()))
			case <-time.After(10 * time.Millisecond):
			}
		}
		<-ended
		read()
		return w.told(said.Bytes())
	}), nil
}

// client is an HTTP client that goes through the proxy.
func (w *haltWorld) client() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.authority)
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.doors[w.agent]}), TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
}

func (w *haltWorld) host(path string) string {
	return fmt.Sprintf("https://%s:%d%s", egressHost, w.service.port, path)
}

// reads notes what comes of an answer until it ends, as it must not by itself.
func reads(resp *http.Response, effects *seen) error {
	if resp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(io.LimitReader(resp.Body, 500))
		return errors.Join(fmt.Errorf("status %d: %s", resp.StatusCode, clean(string(b))), err)
	}
	for b := make([]byte, 16<<10); ; {
		n, err := resp.Body.Read(b)
		if n > 0 {
			effects.got(b[:n])
		}
		if err == io.EOF {
			return errors.New("what was cut looks whole")
		}
		if err != nil {
			return nil
		}
	}
}

func (w *haltWorld) asks(r *http.Request, err error) (*inFlight, error) {
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(w.ctx)
	effects := &seen{}
	return fly(effects, cancel, func(*inFlight) error {
		resp, err := w.client().Do(r.WithContext(ctx))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return reads(resp, effects)
	}), nil
}

func (w *haltWorld) download() (*inFlight, error) {
	return w.asks(http.NewRequest(http.MethodGet, w.host("/download"), nil))
}

// model asks a model by the gateway, which is where the proxy is.
func (w *haltWorld) model() (*inFlight, error) {
	r, err := http.NewRequest(http.MethodPost, "http://"+w.doors[w.agent]+"/llm/anthropic/v1/messages",
		strings.NewReader(`{"model":"`+llmModel+`","max_tokens":1000,"stream":true,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	effects := &seen{}
	ctx, cancel := context.WithCancel(w.ctx)
	return fly(effects, cancel, func(*inFlight) error {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r.WithContext(ctx))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return reads(resp, effects)
	}), nil
}

// tunnel sends a body without end in TLS of its own, which the proxy cannot look
// into.
func (w *haltWorld) tunnel() (*inFlight, error) {
	host := fmt.Sprintf("opaque.%s:%d", egressHost, w.service.port)
	c, err := (&net.Dialer{}).DialContext(w.ctx, "tcp", w.doors[w.agent])
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host)
	b := make([]byte, 512)
	n, err := c.Read(b)
	if err != nil || !strings.HasPrefix(string(b[:n]), "HTTP/1.1 200") {
		return nil, errors.Join(fmt.Errorf("the proxy said %q", b[:n]), err, c.Close())
	}
	t := tls.Client(c, &tls.Config{ServerName: "opaque." + egressHost, InsecureSkipVerify: true}) // the certificate is another name's; nothing is trusted by it
	if _, err := fmt.Fprintf(t, "POST /sink HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000000000\r\n\r\n", host); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return fly(&w.service.sink, func() { c.Close() }, func(*inFlight) error {
		_ = steadily(w.ctx, func() error { _, err := io.WriteString(t, w.service.words()); return err })
		return nil
	}), nil
}

// webSocket sends messages.
func (w *haltWorld) webSocket() (*inFlight, error) {
	c, _, err := websocket.Dial(w.ctx, w.host("/socket"), &websocket.DialOptions{HTTPClient: w.client()})
	if err != nil {
		return nil, err
	}
	return fly(&w.service.socket, func() { c.CloseNow() }, func(*inFlight) error {
		_ = steadily(w.ctx, func() error { return c.Write(w.ctx, websocket.MessageText, []byte(w.service.words())) })
		return nil
	}), nil
}
