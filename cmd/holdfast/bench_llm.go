package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// llmMeasurements are what is measured of the gateway to models.
func llmMeasurements() []measurement {
	with := func(do func(*bench, *modelWays) ([]figure, error)) func(*bench) ([]figure, error) {
		return func(b *bench) (_ []figure, err error) {
			w, err := b.openModelWays()
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, w.close()) }()
			return do(b, w)
		}
	}
	return []measurement{
		{"first", with((*bench).llmFirst)},
		{"streams", with((*bench).llmStreams)},
		{"calls", with((*bench).llmCalls)},
	}
}

func benchLLM(a *app, args []string) error {
	fs := a.flags("bench llm")
	served := fs.Bool("daemon", false, "")
	bare := fs.String("bare", "", "")
	roots := fs.String("roots", "", "")
	return a.measure(fs, args, llmMeasurements(), func() (bool, error) {
		switch {
		case *served:
			return true, a.measuredDaemon()
		case *bare != "":
			return true, a.bareProxy(*bare, *roots)
		}
		return false, nil
	})
}

// modelWays are three ways to a provider over TLS in this process: straight, by a
// reverse proxy that does nothing else, and by the gateway of a daemon; the latter
// two are processes of their own.
type modelWays struct {
	provider *provider
	out      wayOut // of the daemon
	bare     *lineChild
	list     [3]modelWay
}

// modelWay is one of them, with connections of its own.
type modelWay struct {
	client http.Client
	url    string     // that messages are sent to
	child  *lineChild // what it goes through; nil is nothing
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

func (b *bench) openModelWays() (_ *modelWays, err error) {
	dir, err := os.MkdirTemp(b.dir, "llm-")
	if err != nil {
		return nil, err
	}
	w := &modelWays{out: wayOut{state: filepath.Join(dir, "state")}}
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
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	straight := fmt.Sprintf("https://127.0.0.1:%d", w.provider.port)
	if w.bare, err = b.lineChild(self, "bench", "llm", "--bare", straight, "--roots", roots); err != nil {
		return nil, err
	}
	bareAt, err := w.bare.read()
	if err != nil {
		return nil, err
	}
	door, err := w.openDaemon(b, self, dir, roots)
	if err != nil {
		return nil, err
	}
	w.list[wayStraight] = w.way(straight, nil)
	w.list[wayBare] = w.way("http://"+bareAt, w.bare)
	w.list[wayGateway] = w.way("http://"+door+"/llm/anthropic", w.out.daemon)
	return w, nil
}

// openDaemon starts the daemon. Its row is as a person would write it: redacted both
// ways, with a rate; the model has a price (so low that no
// built-in budget ends), and the agent a budget of money and one
// of tokens, so that each call is reserved and settled in both.
func (w *modelWays) openDaemon(b *bench, self, dir, roots string) (door string, err error) {
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
`, benchRepeats, egressHost, w.provider.port, roots, llmModel)
	config := filepath.Join(dir, "holdfast.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", err
	}
	if w.out.daemon, err = b.lineChild(self, "bench", "llm", "--daemon", "--state", w.out.state, "--config", config); err != nil {
		return "", err
	}
	if _, err := w.out.daemon.read(); err != nil {
		return "", fmt.Errorf("the daemon did not start: %w", err)
	}
	s, err := w.out.told()
	if err != nil {
		return "", err
	}
	if len(s.Listeners) != 1 {
		return "", fmt.Errorf("the daemon listens %d times, not once", len(s.Listeners))
	}
	return s.Listeners[0].Address, nil
}

func (w *modelWays) way(base string, child *lineChild) modelWay {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.provider.cert)
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: egressHost}, MaxIdleConnsPerHost: llmConns, DisableCompression: true}
	return modelWay{http.Client{Transport: t, Timeout: time.Minute}, base + "/v1/messages", child}
}

func (w *modelWays) close() error {
	var errs []error
	for _, y := range w.list {
		y.client.CloseIdleConnections()
	}
	if w.bare != nil {
		errs = append(errs, w.bare.end())
	}
	errs = append(errs, w.out.close())
	if w.provider != nil {
		errs = append(errs, w.provider.close())
	}
	return errors.Join(errs...)
}

// processor is what the way's process has used of processors; 0 where it has none.
func (y modelWay) processor() (used time.Duration, err error) {
	if y.child != nil {
		err = y.child.ask("processor", &used)
	}
	return used, err
}
