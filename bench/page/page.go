// Package page measures the pages, with a ledger behind them.
package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/daemon"
)

// What stands behind the measured pages.
const (
	pageEntries = 100_000
	pageReviews = 50
	benchHeld   = "mcp/shop/refund"
)

// Subject returns what the benchmark of that name measures.
func Subject() *measure.Subject {
	list := []measure.Measurement{{Name: "first-byte", Do: measureFirstByte}}
	return &measure.Subject{Name: "page", About: "the pages, with a ledger behind them", Measurements: list, Help: `
Measure how long each page's first byte takes, with 100 000 crossings in the
ledger and 50 reviews that wait. It takes about half a minute, uses a state
directory of its own that it takes away again, and never touches yours.

    go run -C bench . page [flags]

    --only NAME     ` + measure.ListNames(list) + `
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the crossings, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ go run -C bench . page
`}
}

// measureFirstByte fills a ledger and asks each page of a daemon that serves them, over
// loopback, as a browser that is signed in.
func measureFirstByte(b *measure.Run) (_ []measure.Figure, err error) {
	config := strings.NewReplacer("listen: {pages: none}", "listen: {pages: '127.0.0.1:0'}", "algorithms: [EdDSA]", "algorithms: [EdDSA], tenants: [local]",
		"boundaries:\n", "boundaries:\n  - {boundary: "+benchHeld+", risk: HIGH}\n").Replace(fixture.NewConfig())
	s, err := fixture.OpenStateWith(b, "page", config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(b.Ctx)
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() { ended <- s.Daemon.Serve(ctx, daemon.Serving{Ready: func(string) { close(ready) }}) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended, s.Daemon.Close())
	}()
	select {
	case <-ready:
	case served := <-ended:
		ended <- nil
		return nil, errors.Join(served, errors.New("the daemon ended"))
	}
	crossing, review, err := fillPages(s, b)
	if err != nil {
		return nil, err
	}
	v, err := signIn(s, b.Ctx)
	if err != nil {
		return nil, err
	}
	var out []measure.Figure
	for _, p := range []struct{ name, path string }{
		{"the queue of reviews", "/"}, {"a review's page", "/review/" + review}, {"a crossing's story", "/crossing/" + crossing}, {"the newest crossings", "/crossings"},
	} {
		var took []time.Duration
		for range b.Rounds(200) {
			d, err := v.get(b.Ctx, p.path)
			if err != nil {
				return nil, err
			}
			took = append(took, d)
		}
		f := measure.Figure{Name: p.name + ", first byte, p99", Measured: measure.Millis(measure.Percentile(took, 99)), Unit: "ms", Target: "<= 50 ms",
			Note: fmt.Sprintf("p50 %s ms, slowest %s, the first one %s", measure.Number(measure.Millis(measure.Percentile(took, 50))), measure.Number(measure.Millis(measure.Percentile(took, 100))), measure.Number(measure.Millis(took[0])))}
		f.Met = f.Measured <= 50
		out = append(out, f)
	}
	return out, nil
}

// fillPages crosses as often as there must be entries, and asks for what a
// person must answer. It returns one crossing of the middle and one review.
func fillPages(s *fixture.State, b *measure.Run) (crossing, review string, err error) {
	const callers = 64
	var left atomic.Int64
	total := int64(b.Rounds(pageEntries))
	left.Store(total)
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for i := range callers {
		tok, err := s.NewTokenOf(holdfast.Local, fmt.Sprint("agent-", i%8))
		if err != nil {
			return "", "", err
		}
		req := holdfast.Request{Boundary: fixture.Order, Payload: fixture.NewPayload(), Token: tok}
		wg.Go(func() {
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				out, err := s.Daemon.Kernel.Cross(b.Ctx, req, fixture.Succeed)
				mu.Lock()
				if n == total/2 {
					crossing = out.Crossing
				}
				errs = append(errs, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return "", "", err
	}
	tok, err := s.NewTokenOf(holdfast.Local, "agent-0")
	if err != nil {
		return "", "", err
	}
	for i := range pageReviews {
		out, err := s.Daemon.Kernel.Cross(b.Ctx, holdfast.Request{Boundary: benchHeld, Payload: fmt.Appendf(nil, `{"order":%d,"amount":42.5,"reason":"arrived broken"}`, i), Token: tok}, fixture.Succeed)
		if holdfast.KindOf(err) != holdfast.KindHeld {
			return "", "", fmt.Errorf("a refund was not held: %v", err)
		}
		review = out.Review
	}
	return crossing, review, nil
}

// visitor is a browser that is signed in.
type visitor struct {
	client *http.Client
	base   string
	cookie *http.Cookie
}

func signIn(s *fixture.State, ctx context.Context) (*visitor, error) {
	link, err := s.Daemon.PageLink("")
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(link)
	if err != nil {
		return nil, err
	}
	v := &visitor{base: "http://" + u.Host, client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, link, nil)
	if err != nil {
		return nil, err
	}
	r, err := v.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) == 0 {
		return nil, fmt.Errorf("signing in was answered %s", r.Status)
	}
	v.cookie = r.Cookies()[0]
	return v, nil
}

// get asks for a page and says after how long its first byte came.
func (v *visitor) get(ctx context.Context, path string) (took time.Duration, err error) {
	var from time.Time
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { took = time.Since(from) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	if err != nil {
		return 0, err
	}
	req.AddCookie(v.cookie)
	from = time.Now()
	r, err := v.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	page, err := io.ReadAll(r.Body)
	if err == nil && (r.StatusCode != http.StatusOK || len(page) < 500) {
		err = fmt.Errorf("%s was answered %s", path, r.Status)
	}
	return took, err
}
