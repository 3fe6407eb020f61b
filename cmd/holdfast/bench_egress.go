package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/egress"
)

// egressMeasurements are what is measured of the way out; goproxy is the
// program to measure beside, "" to build it from the bench folder.
func egressMeasurements(goproxy *string) []measurement {
	with := func(do func(*bench, *wayOut) ([]figure, error)) func(*bench) ([]figure, error) {
		return func(b *bench) (_ []figure, err error) {
			w, err := b.openWayOut(*goproxy)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, w.close()) }()
			return do(b, w)
		}
	}
	return []measurement{
		{"added", with((*bench).egressAdded)},
		{"rate", with((*bench).egressRate)},
		{"stream", with((*bench).egressStream)},
		{"idle", with((*bench).egressIdle)},
		{"decide", (*bench).egressDecide},
		{"record", with((*bench).egressRecord)},
	}
}

func benchEgress(a *app, args []string) error {
	fs := a.flags("bench egress")
	goproxy := fs.String("goproxy", "", "")
	served := fs.Bool("daemon", false, "")
	return a.measure(fs, args, egressMeasurements(goproxy), func() (bool, error) {
		if *served {
			return true, a.measuredDaemon()
		}
		return false, nil
	})
}

// egressHost is the server's name, which is found by the daemon's configuration
// alone.
const egressHost = "bench.example.com"

// egressDoors is how many listeners the daemon has: each is a caller of its own,
// of which 256 requests are answered at a time.
const egressDoors = 4

// wayOut is a server over TLS in this process, a daemon of its own whose one
// domain it is, and goproxy where it can be had.
type wayOut struct {
	server *upstream
	state  string
	daemon *lineChild
	ca     []byte
	doors  []string // addresses of the daemon's listeners

	goproxy   *lineChild
	goproxyAt string
	goproxyCA []byte
	absent    string // why there is no goproxy
}

func (b *bench) openWayOut(goproxy string) (_ *wayOut, err error) {
	dir, err := os.MkdirTemp(b.dir, "egress-")
	if err != nil {
		return nil, err
	}
	w := &wayOut{state: filepath.Join(dir, "state")}
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
func (w *wayOut) openDaemon(b *bench, dir, roots string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
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
`, benchRepeats, egressHost, w.server.port, roots, strings.Join(doors, ", "))
	config := filepath.Join(dir, "holdfast.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	if w.daemon, err = b.lineChild(self, "bench", "egress", "--daemon", "--state", w.state, "--config", config); err != nil {
		return err
	}
	if _, err := w.daemon.read(); err != nil {
		return fmt.Errorf("the daemon did not start: %w", err)
	}
	s, err := w.told()
	if err != nil {
		return err
	}
	for _, l := range s.Listeners {
		w.doors = append(w.doors, l.Address)
	}
	if len(w.doors) != egressDoors {
		return fmt.Errorf("the daemon listens %d times, not %d", len(w.doors), egressDoors)
	}
	w.ca, err = os.ReadFile(filepath.Join(w.state, egress.AuthorityFiles()[1]))
	return err
}

func (w *wayOut) close() error {
	var errs []error
	for _, c := range []*lineChild{w.daemon, w.goproxy} {
		if c != nil {
			errs = append(errs, c.end())
		}
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
	return route{&http.Client{Transport: t, Timeout: time.Minute}, t, fmt.Sprintf("https://%s:%d", egressHost, w.server.port)}
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
		return fmt.Errorf("status %d, %d bytes: %s", resp.StatusCode, len(got), clean(string(got[:min(len(got), 500)])))
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
