package inflighttest

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
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Hand is one kind of thing that can be in flight.
type Hand struct {
	Name     string
	Boundary string // how its crossing's begins
	Begin    func(w *World) (*InFlight, error)
}

// InFlight is one that is. Its effects are seen where they do something: a file
// that is written, a service that is sent to, a client that is given an answer.
type InFlight struct {
	Effects *Effects
	// Over is closed when its last effect was seen; err is then set where it ended
	// otherwise than by being stopped.
	Over chan struct{}
	Err  error
	end  func()
}

// fly returns something in flight that act is: what it returns ends it.
func fly(effects *Effects, end func(), act func(x *InFlight) error) *InFlight {
	x := &InFlight{Effects: effects, Over: make(chan struct{}), end: end}
	go func() {
		defer close(x.Over)
		x.Err = act(x)
	}()
	return x
}

// flying waits until the effects of x are seen.
func (x *InFlight) flying() error {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, n, _ := x.Effects.Look(); n >= 3 {
			return nil
		}
		select {
		case <-x.Over:
			return fmt.Errorf("it ended before it was halted: %w", x.Err)
		default:
		}
		if time.Since(start) > 2*time.Minute {
			return errors.New("it does not begin")
		}
	}
}

// Ended waits until x was stopped. The error says that it goes on, how else it ended,
// or what took effect after the halt was acknowledged.
func (x *InFlight) Ended() error {
	select {
	case <-x.Over:
	case <-time.After(time.Minute):
		return errors.New("it goes on a minute after it was to be stopped")
	}
	if _, _, late := x.Effects.Look(); x.Err == nil && late != "" {
		return fmt.Errorf("after the halt came %q", late)
	}
	return x.Err
}

// Hands are all that there are; last those whose time in flight is bounded.
func Hands() []Hand {
	return append([]Hand{
		{"a tool call over stdio, at its server", "mcp/stdio/work", (*World).CallStdio},
		{"a tool call over HTTP, at its server", "mcp/http/work", (*World).callHTTP},
		{"a program of holdfast run, on its tree", "run/sh", (*World).Program},
		{"a download, at its client", "egress/" + Host, (*World).Download},
		{"an opaque tunnel, at its host", "egress/opaque." + Host, (*World).Tunnel},
		{"a WebSocket, at its host", "egress/" + Host, (*World).webSocket},
		{"a model's answer, at its client", "egress/model." + Host, (*World).model},
		{"a held call that waits for a person, at its client", HeldBoundary, (*World).callHeld},
	}, codeHands()...)
}

// HeldBoundary is the boundary of the call that waits for a person: it never begins.
const HeldBoundary = "mcp/asks/work"

// begin starts a command, whose end may be waited for.
func (w *World) begin(cmd *exec.Cmd) (wait func() error, stop func(), err error) {
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	wait = sync.OnceValue(cmd.Wait)
	return wait, func() { _ = cmd.Process.Kill(); _ = wait() }, nil
}

// Gateway returns the arguments of a gateway before a server of that name.
func (w *World) Gateway(name string, flags ...string) []string {
	return append(append([]string{"mcp", "--state", w.State, "--config", w.config, "--agent", w.Agent, "--name", name}, flags...), append(append([]string{"--"}, w.programs.Server...), w.Record(name))...)
}

// Record is where a server notes what it does.
func (w *World) Record(name string) string {
	return filepath.Join(w.Records, w.Agent+"-"+name+".record")
}

const workCall = `"method":"tools/call","params":{"name":"work","arguments":{}}`

// CallStdio is a tool call that works until it is cancelled, and writes when.
func (w *World) CallStdio() (*InFlight, error) {
	p, err := StartClient(w.Ctx, w.Command(w.Gateway("stdio")...).Args)
	if err != nil {
		return nil, err
	}
	if _, err := p.Send(workCall); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return w.works("stdio", func() { _ = p.Close() }, func() ([]byte, error) {
		_, line, err := p.Answer()
		return line, err
	}), nil
}

// works follows a call by its server's record. It is over when its client was told
// why it was cut, and its server that it is cancelled.
func (w *World) works(name string, end func(), answer func() ([]byte, error)) *InFlight {
	record := w.Record(name)
	effects := &Effects{}
	return fly(effects, end, func(*InFlight) error {
		if err := WaitRecorded(record, "works", 3, func(when []int64) { effects.at(time.Unix(0, when[len(when)-1]), 3) }); err != nil {
			return err
		}
		line, err := answer()
		if err != nil {
			return err
		}
		if err := w.Told(line); err != nil {
			return err
		}
		if err := WaitRecorded(record, "cancelled", 1, func([]int64) {}); err != nil {
			return err
		}
		return WaitRecorded(record, "works", 3, func(when []int64) { effects.at(time.Unix(0, when[len(when)-1]), len(when)) })
	})
}

// callHTTP is the same over HTTP, by a gateway that listens.
func (w *World) callHTTP() (*InFlight, error) {
	cmd := w.Command(w.Gateway("http", "--http", "127.0.0.1:0")...)
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
	if err := c.initialize(w.Ctx); err != nil {
		stop()
		return nil, err
	}
	var line []byte
	answered := make(chan error, 1)
	go func() {
		line, err = c.post(w.Ctx, `{"jsonrpc":"2.0","id":7,`+workCall+`}`)
		answered <- err
	}()
	return w.works("http", stop, func() ([]byte, error) { err := <-answered; return line, err }), nil
}

// callHeld is a call that waits for a person. Its one effect is its answer.
func (w *World) callHeld() (*InFlight, error) {
	before, err := w.held()
	if err != nil {
		return nil, err
	}
	p, err := StartClient(w.Ctx, w.Command(w.Gateway("asks", "--wait", "55s")...).Args)
	if err != nil {
		return nil, err
	}
	// No two are alike: those would wait for one answer.
	if _, err := p.Send(fmt.Sprintf(`"method":"tools/call","params":{"name":"work","arguments":{"n":%d}}`, time.Now().UnixNano())); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	effects := &Effects{}
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		now, err := w.held()
		if err == nil && now > before {
			break
		}
		if err != nil || time.Since(start) > time.Minute {
			return nil, errors.Join(err, errors.New("no review was opened"), p.Close())
		}
	}
	effects.at(time.Now(), 3)
	return fly(effects, func() { _ = p.Close() }, func(*InFlight) error {
		_, line, err := p.Answer()
		effects.got(line)
		if err == nil && !strings.Contains(string(line), "held for review, nothing has been done") {
			err = w.Told(line)
		}
		return err
	}), nil
}

// held is how many calls wait for a person.
func (w *World) held() (n int, err error) {
	list, err := w.API.Reviews(w.Ctx, holdfast.Local, review.Pending)
	for i := range list {
		if list[i].Boundary == HeldBoundary {
			n++
		}
	}
	return n, err
}

// Program is one of holdfast run that writes into its tree again and again.
func (w *World) Program() (*InFlight, error) {
	effects := &Effects{}
	// Each has a file of its own: what one before it wrote last is no word of this one.
	ticks := fmt.Sprint("ticks-", time.Now().UnixNano())
	script := w.Harm + `while :; do a=; [ ! -e after ] || a=` + afterHalt + `; echo "works $(date +%s%N) $a" >> ` + ticks + `; done`
	cmd := w.Command("run", "--json", "--agent", w.Agent, "--dir", w.Tree, "--", "sh", "-c", script)
	var said bytes.Buffer
	cmd.Stderr = &said
	wait, stop, err := w.begin(cmd)
	if err != nil {
		return nil, err
	}
	read := func() int {
		b, _ := os.ReadFile(filepath.Join(w.Tree, ticks))
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
	return fly(effects, stop, func(*InFlight) error {
		ended := make(chan error, 1)
		go func() { ended <- wait() }()
		for read() < 3 {
			select {
			case <-ended:
				return errors.New(excerpt.Printable(said.String()))
			case <-time.After(10 * time.Millisecond):
			}
		}
		<-ended
		read()
		return w.Told(said.Bytes())
	}), nil
}

// client is an HTTP client that goes through the proxy.
func (w *World) client() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.authority)
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.doors[w.Agent]}), TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
}

func (w *World) host(path string) string {
	return fmt.Sprintf("https://%s:%d%s", Host, w.service.port, path)
}

// reads notes what comes of an answer until it ends, as it must not by itself.
func reads(resp *http.Response, effects *Effects) error {
	if resp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(io.LimitReader(resp.Body, 500))
		return errors.Join(fmt.Errorf("status %d: %s", resp.StatusCode, excerpt.Printable(string(b))), err)
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

func (w *World) asks(r *http.Request, err error) (*InFlight, error) {
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(w.Ctx)
	effects := &Effects{}
	return fly(effects, cancel, func(*InFlight) error {
		resp, err := w.client().Do(r.WithContext(ctx))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return reads(resp, effects)
	}), nil
}

func (w *World) Download() (*InFlight, error) {
	return w.asks(http.NewRequest(http.MethodGet, w.host("/download"), nil))
}

// model asks a model by the gateway, which is where the proxy is.
func (w *World) model() (*InFlight, error) {
	r, err := http.NewRequest(http.MethodPost, "http://"+w.doors[w.Agent]+"/llm/anthropic/v1/messages",
		strings.NewReader(`{"model":"`+model+`","max_tokens":1000,"stream":true,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	effects := &Effects{}
	ctx, cancel := context.WithCancel(w.Ctx)
	return fly(effects, cancel, func(*InFlight) error {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r.WithContext(ctx))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return reads(resp, effects)
	}), nil
}

// Tunnel sends a body without end in TLS of its own, which the proxy cannot look
// into.
func (w *World) Tunnel() (*InFlight, error) {
	host := fmt.Sprintf("opaque.%s:%d", Host, w.service.port)
	c, err := (&net.Dialer{}).DialContext(w.Ctx, "tcp", w.doors[w.Agent])
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host)
	b := make([]byte, 512)
	n, err := c.Read(b)
	if err != nil || !strings.HasPrefix(string(b[:n]), "HTTP/1.1 200") {
		return nil, errors.Join(fmt.Errorf("the proxy said %q", b[:n]), err, c.Close())
	}
	t := tls.Client(c, &tls.Config{ServerName: "opaque." + Host, InsecureSkipVerify: true}) // the certificate is another name's; nothing is trusted by it
	if _, err := fmt.Fprintf(t, "POST /sink HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000000000\r\n\r\n", host); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return fly(&w.service.sink, func() { c.Close() }, func(*InFlight) error {
		_ = steadily(w.Ctx, func() error { _, err := io.WriteString(t, w.service.words()); return err })
		return nil
	}), nil
}

// webSocket sends messages.
func (w *World) webSocket() (*InFlight, error) {
	c, _, err := websocket.Dial(w.Ctx, w.host("/socket"), &websocket.DialOptions{HTTPClient: w.client()})
	if err != nil {
		return nil, err
	}
	return fly(&w.service.socket, func() { c.CloseNow() }, func(*InFlight) error {
		_ = steadily(w.Ctx, func() error { return c.Write(w.Ctx, websocket.MessageText, []byte(w.service.words())) })
		return nil
	}), nil
}
