// Package llm measures the gateway to models.
package llm

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/measured"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
)

// Subject returns what the benchmark of that name measures.
func Subject() *measure.Subject {
	with := func(do func(*measure.Run, *modelWays) ([]measure.Figure, error)) func(*measure.Run) ([]measure.Figure, error) {
		return func(b *measure.Run) (_ []measure.Figure, err error) {
			w, err := openModelWays(b)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, w.close()) }()
			return do(b, w)
		}
	}
	list := []measure.Measurement{
		{Name: "first", Do: with(measureFirst)},
		{Name: "streams", Do: with(measureStreams)},
		{Name: "calls", Do: with(measureCalls)},
	}
	return &measure.Subject{Name: "llm", About: "the gateway to models", Measurements: list, Help: `
Measure the gateway to models on this machine, in one run with the same requests
straight to a provider over TLS and through a reverse proxy that does nothing else:
what is added until the first word of an answer; how late the events of 200 streams
at once come, and what of a processor it takes; and what a call costs beside the
commit of its record. Client and provider are in one process, each proxy in one of
its own. It takes about a minute, uses a state directory of its own that it takes
away again, and never touches yours.

    go run -C bench . llm [flags]

    --only NAME     ` + measure.ListNames(list) + `
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ go run -C bench . llm --only streams
`}
}

// modelWays are three ways to a provider over TLS in this process: straight, by a
// reverse proxy that does nothing else, and by the gateway of a daemon; the latter
// two are processes of their own.
type modelWays struct {
	provider *provider
	daemon   *measured.Daemon
	bare     *programs.Child
	list     [3]modelWay
}

// modelWay is one of them, with connections of its own.
type modelWay struct {
	client http.Client
	url    string          // that messages are sent to
	child  *programs.Child // what it goes through; nil is nothing
}

// The places of the ways in modelWays.list.
const (
	wayStraight = iota
	wayBare
	wayGateway
)

// llmConns is how many streams there may be at once by each way. The gateway answers
// 256 requests of one caller at a time.
const llmConns = 200

func openModelWays(b *measure.Run) (_ *modelWays, err error) {
	dir, err := os.MkdirTemp(b.Dir, "llm-")
	if err != nil {
		return nil, err
	}
	w := &modelWays{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.provider, err = openProvider(); err != nil {
		return nil, err
	}
	roots := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, w.provider.cert, 0o600); err != nil {
		return nil, err
	}
	straight := fmt.Sprintf("https://127.0.0.1:%d", w.provider.port)
	bareProxy := programs.RoleCommand(BareProxyRole, straight, roots)
	if w.bare, err = programs.StartChild(b, bareProxy[0], bareProxy[1:]...); err != nil {
		return nil, err
	}
	bareAt, err := w.bare.Read()
	if err != nil {
		return nil, err
	}
	door, err := w.openDaemon(b, dir, roots)
	if err != nil {
		return nil, err
	}
	w.list[wayStraight] = w.way(straight, nil)
	w.list[wayBare] = w.way("http://"+bareAt, w.bare)
	w.list[wayGateway] = w.way("http://"+door+"/llm/anthropic", w.daemon.Child)
	return w, nil
}

// openDaemon starts the daemon. Its row is as a person would write it: redacted both
// ways, with a rate; the model has a price (so low that no
// built-in budget ends), and the agent a budget of money and one
// of tokens, so that each call is reserved and settled in both.
func (w *modelWays) openDaemon(b *measure.Run, dir, roots string) (door string, err error) {
	text := fmt.Sprintf(`version: 1
listen: {pages: none}
%s
egress:
  domains:
    '%s:%d': {addresses: [127.0.0.1], roots: %q, type: llm, rate_limit: 100000, models: {provider: anthropic}}
  listen: [{address: "127.0.0.1:0", agent: bench}]
prices:
  version: bench
  models:
    %s: {input: $0.03, output: $0.15, cache_read: $0.003, cache_write: $0.0375, cache_write_long: $0.06}
budgets:
  - {scope: agent, resource: money_micro, amount: 1000000000000, window: 24h}
  - {scope: agent, resource: llm_tokens, amount: 1000000000000, window: 24h}
`, fixture.Repeats, measured.Host, w.provider.port, roots, llmModel)
	config := filepath.Join(dir, "holdfast.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", err
	}
	if w.daemon, err = measured.Start(b, filepath.Join(dir, "state"), config); err != nil {
		return "", err
	}
	s, err := w.daemon.Told()
	if err != nil {
		return "", err
	}
	if len(s.Listeners) != 1 {
		return "", fmt.Errorf("the daemon listens %d times, not once", len(s.Listeners))
	}
	return s.Listeners[0].Address, nil
}

func (w *modelWays) way(base string, child *programs.Child) modelWay {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.provider.cert)
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: measured.Host}, MaxIdleConnsPerHost: llmConns, DisableCompression: true}
	return modelWay{http.Client{Transport: t, Timeout: time.Minute}, base + "/v1/messages", child}
}

func (w *modelWays) close() error {
	var errs []error
	for _, y := range w.list {
		y.client.CloseIdleConnections()
	}
	if w.bare != nil {
		errs = append(errs, w.bare.End())
	}
	if w.daemon != nil {
		errs = append(errs, w.daemon.End())
	}
	if w.provider != nil {
		errs = append(errs, w.provider.close())
	}
	return errors.Join(errs...)
}

// processor is what the way's process has used of processors; 0 where it has none.
func (y modelWay) processor() (used time.Duration, err error) {
	if y.child != nil {
		err = y.child.Ask("processor", &used)
	}
	return used, err
}
