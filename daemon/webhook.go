package daemon

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// How a webhook is told.
const (
	hookQueue    = 256              // notices that wait
	hookTries    = 10               // for each, with twice the time between
	hookFirst    = time.Second      // after the first that failed
	hookSlowest  = 5 * time.Minute  // between two
	hookCall     = 10 * time.Second // for one call
	hookLookAt   = 5 * time.Minute  // for open reviews that were never delivered
	hookRemember = 2000             // deliveries that are remembered
)

// push is one notice as the webhook gets it: a preview and hashes, never a
// payload.
type push struct {
	ID       string       `json:"id"` // the same at each try
	At       time.Time    `json:"at"`
	Runtime  string       `json:"runtime"`
	Level    string       `json:"level"`
	Event    string       `json:"event"`
	Tenant   string       `json:"tenant_id,omitempty"`
	Agent    string       `json:"agent,omitempty"`
	Boundary string       `json:"boundary,omitempty"`
	Crossing string       `json:"crossing,omitempty"`
	Why      string       `json:"why"`
	Review   *pushedAsked `json:"review,omitempty"`

	review string
	tries  int
}

// pushedAsked is the question that a push is about.
type pushedAsked struct {
	ID          string       `json:"id"`
	About       string       `json:"about,omitempty"` // empty: a crossing waits for the answer
	State       review.State `json:"state"`
	Risk        string       `json:"risk"`
	Preview     string       `json:"preview"`
	PreviewHash string       `json:"preview_hash"`
	Cut         bool         `json:"cut,omitempty"`
	Masked      bool         `json:"masked,omitempty"`
	Exact       string       `json:"exact_hash"`
	Expires     time.Time    `json:"expires_at,omitzero"` // without: it waits until it is answered
	Reviewer    string       `json:"reviewer_id,omitempty"`
	// URL is the review's page, where there are pages.
	URL string `json:"url,omitempty"`
}

// webhook tells one address of questions, decisions and halts. It holds nobody
// up: what it cannot tell is an alarm in the log and in the status, and a
// question that still waits is told again later.
type webhook struct {
	d    *Daemon
	wake chan struct{}

	mu    sync.Mutex
	queue []*push       // guarded by mu
	why   string        // guarded by mu; why the last call failed
	since time.Time     // guarded by mu; of why
	rest  time.Time     // guarded by mu; until when what failed is left alone
	told  []string      // guarded by mu; reviews whose opening was delivered
	first time.Duration // hookFirst but in tests
}

func (h *webhook) of(d *Daemon) {
	h.d, h.wake, h.first = d, make(chan struct{}, 1), hookFirst
	h.told = h.read()
}

func (h *webhook) file() string { return filepath.Join(h.d.Paths.Dir, "webhook.told") }

// pushed says whether a notice is for the webhook: questions, decisions, and
// what is more than information.
func pushed(n kernel.Notice) bool { return n.Review != "" || n.Level != "info" }

// tell takes a notice without waiting.
func (h *webhook) tell(n kernel.Notice) {
	if h.d == nil || h.d.config().Review.Webhook.URL == "" || !pushed(n) {
		return
	}
	h.put(&push{At: time.Now().UTC(), Runtime: h.d.runtime, Level: n.Level, Event: n.Event, Tenant: n.Tenant, Agent: n.Agent,
		Boundary: n.Boundary, Crossing: n.Crossing, Why: n.Why, review: n.Review})
}

func (h *webhook) put(p *push) {
	if id, err := uuid.NewRandom(); err == nil {
		p.ID = id.String()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.Event == "halted" {
		h.queue = slices.Insert(h.queue, 0, p) // before all that waits
	} else {
		h.queue = append(h.queue, p)
	}
	if len(h.queue) > hookQueue {
		h.failed(errors.New("more notices wait than it can be told"))
		i := h.spare()
		h.queue = slices.Delete(h.queue, i, i+1)
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// spare is what a queue that is too long does without: the oldest but the first,
// which may be under way, and of those one that is neither a question nor a halt,
// since the others an agent can cause as often as it likes. The caller holds the
// lock.
func (h *webhook) spare() int {
	for i, p := range h.queue[1:] {
		if p.review == "" && p.Event != "halted" {
			return i + 1
		}
	}
	return 1
}

// failed notes an alarm. The caller holds the lock.
func (h *webhook) failed(err error) {
	if h.why == "" {
		h.since = time.Now()
	}
	h.why = excerpt.Word(err.Error())
}

// trouble is what status says of it, or "".
func (h *webhook) trouble() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.why == "" {
		return ""
	}
	return fmt.Sprintf("the webhook cannot be told since %s (%d wait): %s", h.since.UTC().Format(time.RFC3339), len(h.queue), h.why)
}

// run tells until ctx ends.
func (h *webhook) run(ctx context.Context) {
	look := time.NewTimer(0)
	defer look.Stop()
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			h.lookAgain(ctx)
			look.Reset(hookLookAt)
		case <-h.wake:
		case <-again:
		}
		again = nil
		if wait := h.drain(ctx); wait > 0 {
			again = time.After(wait)
		}
	}
}

// lookAgain takes up the questions that wait and were never delivered: those of
// before a restart, and those that were given up.
func (h *webhook) lookAgain(ctx context.Context) {
	if h.d.config().Review.Webhook.URL == "" {
		return
	}
	var open []review.Review
	for _, state := range []review.State{review.Pending, review.Deferred} {
		rs, err := h.d.Kernel.Reviews(ctx, "", state)
		if err != nil {
			h.d.log.Error("the questions that wait could not be read", "err", err)
			return
		}
		open = append(open, rs...)
	}
	h.mu.Lock()
	known := slices.Clone(h.told)
	for _, p := range h.queue {
		known = append(known, p.review)
	}
	h.mu.Unlock()
	for _, r := range slices.Backward(open) {
		if !slices.Contains(known, r.ID) && r.Waiting(time.Now()) {
			h.tell(kernel.Opened(&r))
		}
	}
}

// drain delivers what waits, in order, and returns how long to wait after one
// that failed; 0 when nothing waits.
func (h *webhook) drain(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		h.mu.Lock()
		if len(h.queue) == 0 {
			h.mu.Unlock()
			return 0
		}
		p := h.queue[0]
		wait := time.Until(h.rest)
		h.mu.Unlock()
		if p.tries > 0 && wait > 0 {
			return wait
		}
		err := h.deliver(ctx, p)
		if ctx.Err() != nil {
			return 0
		}
		if wait := h.done(p, err); wait > 0 {
			return wait
		}
		if err == nil && kernel.Opens(p.Event) {
			h.remember(p.review)
		}
	}
	return 0
}

// done takes a notice off the queue once it is delivered or given up.
func (h *webhook) done(p *push, err error) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.tries++
	if err != nil {
		if h.why == "" {
			h.d.log.Error("the webhook cannot be told", "event", p.Event, "review", p.review, "err", err)
		}
		h.failed(err)
		if p.tries < hookTries {
			wait := min(h.first<<(p.tries-1), hookSlowest)
			h.rest = time.Now().Add(wait)
			return wait
		}
		h.d.log.Error("a notice was given up: the webhook cannot be told", "event", p.Event, "review", p.review, "err", err)
	} else {
		if h.why != "" {
			h.d.log.Info("the webhook is told again")
		}
		h.why = ""
	}
	if i := slices.Index(h.queue, p); i >= 0 {
		h.queue = slices.Delete(h.queue, i, i+1)
	}
	return 0
}

// deliver makes one call. Anything but a 2xx is a failure.
func (h *webhook) deliver(ctx context.Context, p *push) error {
	c := h.d.config()
	w := c.Review.Webhook
	if w.URL == "" {
		return nil // it is gone from the configuration
	}
	secret, err := w.ReadSecret()
	if err != nil {
		return err
	}
	h.about(ctx, p)
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hookCall)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "holdfast/"+h.d.opt.Version)
	req.Header.Set("Holdfast-Delivery", p.ID)
	req.Header.Set("Holdfast-Signature", signature(secret, time.Now(), body))
	client := &http.Client{Transport: hookTransport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return plainError(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("it answered %d", resp.StatusCode)
	}
	return nil
}

// plainError is a call's error without its address, which may hold a token.
func plainError(err error) error {
	var u interface{ Unwrap() error }
	if errors.As(err, &u) && u.Unwrap() != nil {
		return u.Unwrap()
	}
	return err
}

func hookTransport() *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, TLSHandshakeTimeout: 5 * time.Second,
		ResponseHeaderTimeout: hookCall, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true}
}

// signature is how a receiver knows who called, and when: it computes the same
// of the raw body, compares in constant time, and refuses an old t.
func signature(secret holdfast.Secret, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	m := hmac.New(sha256.New, []byte(secret.Reveal()))
	m.Write([]byte(t + "."))
	m.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(m.Sum(nil))
}

// about adds what the review says now.
func (h *webhook) about(ctx context.Context, p *push) {
	if p.review == "" {
		return
	}
	r, err := h.d.Kernel.Review(ctx, p.review)
	if err != nil {
		return
	}
	p.Review = &pushedAsked{ID: r.ID, About: r.About, State: r.State, Risk: r.Risk.String(), Preview: r.Preview, PreviewHash: r.PreviewHash, Cut: r.Cut, Masked: r.Masked,
		Exact: r.Exact, Expires: r.Expires, Reviewer: r.Reviewer}
	if at, _ := h.d.pagesAt(); at != "" {
		p.Review.URL = at + "/review/" + r.ID
	}
}

// remember keeps which questions were delivered, so that a restart does not
// tell them again. What cannot be kept is told twice, which a receiver sees by
// the review's id.
func (h *webhook) remember(id string) {
	h.mu.Lock()
	h.told = append(h.told, id)
	if n := len(h.told) - hookRemember; n > 0 {
		h.told = slices.Delete(h.told, 0, n)
	}
	b, err := json.Marshal(h.told)
	h.mu.Unlock()
	if err == nil {
		err = durable.ReplaceFile(h.file(), b, 0o600)
	}
	if err != nil {
		h.d.log.Error("what the webhook was told could not be kept", "err", err)
	}
}

func (h *webhook) read() []string {
	b, err := guard.ReadRegular(h.file(), 1<<20, guard.CheckPrivate(h.file()))
	var out []string
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil && !missing(err) {
		h.d.log.Error("what the webhook was told could not be read", "err", err)
		return nil
	}
	return out
}
