// Package egress measures the proxy that agents reach the world through.
package egress

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/measured"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/authority"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Subject returns what the benchmark of that name measures.
func Subject() *measure.Subject {
	goproxy := new(string)
	with := func(do func(*measure.Run, *wayOut) ([]measure.Figure, error)) func(*measure.Run) ([]measure.Figure, error) {
		return func(b *measure.Run) (_ []measure.Figure, err error) {
			w, err := openWayOut(b, *goproxy)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, w.close()) }()
			return do(b, w)
		}
	}
	list := []measure.Measurement{
		{Name: "added", Do: with(measureAdded)},
		{Name: "rate", Do: with(measureRate)},
		{Name: "stream", Do: with(measureStream)},
		{Name: "idle", Do: with(measureIdle)},
		{Name: "decide", Do: measureDecide},
		{Name: "record", Do: with(measureRecord)},
	}
	return &measure.Subject{Name: "egress", About: "the proxy that agents reach the world through", Measurements: list, Help: `
Measure the egress proxy on this machine: what it adds to a request that it looks
into, redacts both ways and records, in turns with the same request straight over
TLS and, where it can be had, through goproxy, which looks at nothing; how many
requests there are in a second; how late a stream's events come, and what an idle
one holds; the decision alone; and whether each request was in the ledger before
it left. Client and server are in one process, each proxy in one of its own. It
takes about a minute, uses a state directory of its own that it takes away again,
and never touches yours.

    go run -C bench . egress [flags]

    --only NAME     ` + measure.ListNames(list) + `
    --goproxy FILE  the program bench/goproxy, built; if absent it is built
                    where this is run in the repository
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ go run -C bench . egress --only added
`, AddFlags: func(fs *flag.FlagSet) { fs.StringVar(goproxy, "goproxy", "", "") }}
}

// egressDoors is how many listeners the daemon has: each is a caller of its own,
// of which 256 requests are answered at a time.
const egressDoors = 4

// wayOut is a server over TLS in this process, a daemon of its own whose one
// domain it is, and goproxy where it can be had.
type wayOut struct {
	server *upstream
	daemon *measured.Daemon
	ca     []byte
	doors  []string // addresses of the daemon's listeners

	goproxy   *programs.Child
	goproxyAt string
	goproxyCA []byte
	absent    string // why there is no goproxy
}

func openWayOut(b *measure.Run, goproxy string) (_ *wayOut, err error) {
	dir, err := os.MkdirTemp(b.Dir, "egress-")
	if err != nil {
		return nil, err
	}
	w := &wayOut{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.server, err = openUpstream(); err != nil {
		return nil, err
	}
	roots := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, w.server.cert, 0o600); err != nil {
		return nil, err
	}
	if err := w.openDaemon(b, dir, roots); err != nil {
		return nil, err
	}
	return w, w.openGoproxy(b, goproxy, dir, roots)
}

// openDaemon starts the daemon. Its one row is as a person would write it: TLS
// terminated, both ways redacted, with a rate and a budget.
func (w *wayOut) openDaemon(b *measure.Run, dir, roots string) error {
	var doors []string
	for i := range egressDoors {
		doors = append(doors, fmt.Sprintf(`{address: "127.0.0.1:0", agent: bench-%d}`, i))
	}
	text := fmt.Sprintf(`version: 1
listen: {pages: none}
%s
egress:
  domains:
    %s: {ports: [%d], addresses: [127.0.0.1], roots: %q, rate_limit: 100000, budget: calls}
  listen: [%s]
`, fixture.Repeats, measured.Host, w.server.port, roots, strings.Join(doors, ", "))
	config := filepath.Join(dir, "holdfast.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	var err error
	if w.daemon, err = measured.Start(b, filepath.Join(dir, "state"), config); err != nil {
		return err
	}
	s, err := w.daemon.Told()
	if err != nil {
		return err
	}
	for _, l := range s.Listeners {
		w.doors = append(w.doors, l.Address)
	}
	if len(w.doors) != egressDoors {
		return fmt.Errorf("the daemon listens %d times, not %d", len(w.doors), egressDoors)
	}
	w.ca, err = os.ReadFile(filepath.Join(w.daemon.State, authority.Files()[1]))
	return err
}

func (w *wayOut) close() error {
	var errs []error
	if w.daemon != nil {
		errs = append(errs, w.daemon.End())
	}
	if w.goproxy != nil {
		errs = append(errs, w.goproxy.End())
	}
	if w.server != nil {
		errs = append(errs, w.server.close())
	}
	return errors.Join(errs...)
}

// route is one way to the server: a client with connections of its own.
type route struct {
	*http.Client
	t    *http.Transport
	base string
}

// route is a client that goes through a proxy which shows certificates of ca, or
// straight where proxy is "".
func (w *wayOut) route(proxy string, ca []byte) route {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.server.cert)
	roots.AppendCertsFromPEM(ca)
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 256, DisableCompression: true}
	if proxy == "" {
		t.DialContext = w.server.dial
	} else {
		t.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})
	}
	return route{&http.Client{Transport: t, Timeout: time.Minute}, t, fmt.Sprintf("https://%s:%d", measured.Host, w.server.port)}
}

// routes are all that there are: straight, through Holdfast, and through goproxy
// where it is there.
func (w *wayOut) routes() []route {
	list := []route{w.route("", nil), w.route(w.doors[0], w.ca)}
	if w.goproxy != nil {
		list = append(list, w.route(w.goproxyAt, w.goproxyCA))
	}
	return list
}

// post sends one body and reads all of the answer.
func (y route) post(path string, body []byte) error {
	resp, err := y.Post(y.base+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || len(got) != answerSize {
		return fmt.Errorf("status %d, %d bytes: %s", resp.StatusCode, len(got), excerpt.Printable(string(got[:min(len(got), 500)])))
	}
	return nil
}

// closeIdle ends the connections of all ways.
func closeIdle(list []route) {
	for _, y := range list {
		y.t.CloseIdleConnections()
	}
}

// document is a JSON document of exactly size bytes of ordinary text, in which
// nothing is found.
func document(size int) []byte {
	const head, tail = `{"model":"bench","text":"`, `"}`
	words := strings.Repeat("the function returns what was asked for and nothing else; ", size/50+1)
	return json.RawMessage(head + words[:size-len(head)-len(tail)] + tail)
}
