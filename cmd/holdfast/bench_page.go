package main

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
	"github.com/holdfast-dev/holdfast/daemon"
)

// What stands behind the measured pages.
const (
	pageEntries = 100_000
	pageReviews = 50
	benchHeld   = "mcp/shop/refund"
)

func pageMeasurements() []measurement { return []measurement{{"first-byte", (*bench).firstByte}} }

func benchPage(a *app, args []string) error {
	return a.measure(a.flags("bench page"), args, pageMeasurements(), func() (bool, error) { return false, nil })
}

// firstByte fills a ledger and asks each page of a daemon that serves them, over
// loopback, as a browser that is signed in.
func (b *bench) firstByte() (_ []figure, err error) {
	config := strings.NewReplacer("listen: {pages: none}", "listen: {pages: '127.0.0.1:0'}", "algorithms: [EdDSA]", "algorithms: [EdDSA], tenants: [local]",
		"boundaries:\n", "boundaries:\n  - {boundary: "+benchHeld+", risk: HIGH}\n").Replace(benchConfig())
	s, err := b.openWith("page", config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(b.ctx)
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() { ended <- s.d.Serve(ctx, daemon.Serving{Ready: func(string) { close(ready) }}) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended, s.d.Close())
	}()
	select {
	case <-ready:
	case served := <-ended:
		ended <- nil
		return nil, errors.Join(served, errors.New("the daemon ended"))
	}
	crossing, review, err := s.fillPages(b)
	if err != nil {
		return nil, err
	}
	v, err := s.signIn(b.ctx)
	if err != nil {
		return nil, err
	}
	var out []figure
	for _, p := range []struct{ name, path string }{
		{"the queue of reviews", "/"}, {"a review's page", "/review/" + review}, {"a crossing's story", "/crossing/" + crossing}, {"the newest crossings", "/crossings"},
	} {
		var took []time.Duration
		for range b.rounds(200) {
			d, err := v.get(b.ctx, p.path)
			if err != nil {
				return nil, err
			}
			took = append(took, d)
		}
		f := figure{Name: p.name + ", first byte, p99", Measured: millis(at(took, 99)), Unit: "ms", Target: "<= 50 ms",
			Note: fmt.Sprintf("p50 %s ms, slowest %s, the first one %s", number(millis(at(took, 50))), number(millis(at(took, 100))), number(millis(took[0])))}
		f.Met = f.Measured <= 50
		out = append(out, f)
	}
	return out, nil
}

// fillPages crosses as often as there must be entries, and asks for what a
// person must answer. It returns one crossing of the middle and one review.
func (s *benchState) fillPages(b *bench) (crossing, review string, err error) {
	const callers = 64
	var left atomic.Int64
	total := int64(b.rounds(pageEntries))
	left.Store(total)
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for i := range callers {
		tok, err := s.tokenOf(holdfast.Local, fmt.Sprint("agent-", i%8))
		if err != nil {
			return "", "", err
		}
		req := holdfast.Request{Boundary: benchOrder, Payload: benchPayload(), Token: tok}
		wg.Go(func() {
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				out, err := s.d.Kernel.Cross(b.ctx, req, done)
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
	tok, err := s.tokenOf(holdfast.Local, "agent-0")
	if err != nil {
		return "", "", err
	}
	for i := range pageReviews {
		out, err := s.d.Kernel.Cross(b.ctx, holdfast.Request{Boundary: benchHeld, Payload: fmt.Appendf(nil, `{"order":%d,"amount":42.5,"reason":"arrived broken"}`, i), Token: tok}, done)
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

func (s *benchState) signIn(ctx context.Context) (*visitor, error) {
	link, err := s.d.PageLink("")
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
