// Package console is the door for people's browsers: pages that show what
// waits for a person, what one crossing came to and why, and that take the
// person's answer. It renders on the server, works without script, and turns a
// form into a call on the kernel and nothing else.
//
// Looking needs a session, which a one-time link gives. Deciding needs the
// operator's passphrase besides (D11): the opened key then stays in memory for
// that session, and what it signs is the same operator.Statement that the
// command line signs, bound to the preview whose hash the page showed.
//
// A browser sends a cookie of 127.0.0.1 to every port of 127.0.0.1, so also to
// a server that an agent started and a person opened. Therefore the session's
// cookie is worth no more than a look and a halt (which needs nothing, D11):
// what decides lives under a path of its own that is not to be guessed, /k/...,
// with a cookie that is sent to that path only.
package console

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/survey"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Kernel is what the pages need of the kernel; *kernel.Kernel has it.
type Kernel interface {
	Decide(signed operator.Signed) (review.Review, error)
	Remember(signed operator.Signed) (review.Remembered, error)
	Halt(who, why string) (int, error)
	Resume(signed operator.Signed) error
	Unpause(tenant string, signed operator.Signed) (kernel.Unpaused, error)
	Drifted() []string
	Changed(ctx context.Context, boundary string) (review.Change, error)
	Accept(signed operator.Signed) (review.Change, error)
	Watch() (<-chan struct{}, func())
}

// State is how Holdfast is, as every page says it.
type State struct {
	Halted           bool
	HaltWho, HaltWhy string
	HaltWhen         time.Time
	// Problems, Weakened and Paused are one line each.
	Problems, Weakened, Paused []string
}

// Config is what the pages are made of. All but Now, Host, Anomalies, Attended, Budgets,
// Metrics and Health are required.
type Config struct {
	Kernel Kernel
	// View reads the store; what it is given must not write.
	View func(ctx context.Context, fn func(kernel.Tx) error) error
	// State says how Holdfast is, as far as every page shows it; whole adds
	// Problems, Weakened and Paused.
	State func(ctx context.Context, whole bool) State
	// Open opens the operator's key. A wrong passphrase is a
	// PermissionError.
	Open func(passphrase holdfast.Secret) (operator.Key, error)
	// Runtime is the state's id, to which statements are bound.
	Runtime string
	Version string
	// Address is host:port that is listened on, Host the configured host: a
	// browser may name it beside the loopback names, where it is a name.
	Address, Host string
	// Who is recorded with a halt.
	Who string
	Log *slog.Logger
	Now func() time.Time
	// Anomalies are what holds that is out of the ordinary, the worst first; nil where
	// nobody watches.
	Anomalies func() []story.Anomaly
	// Attended is told of each page that a person asks for with the operator key open.
	// A session that only looks is nobody's sign: its link takes no passphrase, and its
	// cookie is seen by other servers of this machine.
	Attended func()
	// Budgets says in a transaction how those budgets stand that can refuse next; nil
	// shows none.
	Budgets func(tx kernel.Tx, now time.Time) (survey.Standings, error)
	// Metrics answers a scrape; nil serves none. It needs no session, and so
	// shows nothing but numbers, to this machine alone.
	Metrics http.Handler
	// Health is how the day of an instant went, today's so far; nil shows no page of
	// it.
	Health func(ctx context.Context, day time.Time) (health.Report, error)
}

// Console serves the pages. Close it when the server has ended.
type Console struct {
	c        Config
	port     string
	tickets  tickets
	sessions sessions
	opener   opener
	streams  chan struct{} // one place for each open stream
	assets   assets
	pages    map[string]*template.Template
	handler  http.Handler
	done     chan struct{}
}

// Times of links, sessions and opened keys.
const (
	LinkTime = 10 * time.Minute // a one-time link is good for
	LookTime = 12 * time.Hour   // idle time of a session
	KeyTime  = 15 * time.Minute // idle time of an opened key
)

// New makes the pages. It opens nothing and starts one goroutine, which ends
// with Close.
func New(c Config) (*Console, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if net.ParseIP(c.Host) != nil {
		c.Host = "" // an address counts where the connection came in on it
	}
	_, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		return nil, fmt.Errorf("the address of the pages: %w", err)
	}
	s := &Console{c: c, port: port, streams: make(chan struct{}, maxStreams), done: make(chan struct{}), opener: opener{turn: make(chan struct{}, 1)}}
	if s.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if s.pages, err = s.parse(); err != nil {
		return nil, err
	}
	s.handler = s.routes()
	go s.sweep()
	return s, nil
}

// Handler answers every path that nothing else is bound to.
func (s *Console) Handler() http.Handler { return s.handler }

// Close ends streams and forgets every session, link and key.
func (s *Console) Close() {
	close(s.done)
	s.sessions.clear()
}

// sweep forgets what is too old, so that an opened key does not stay until
// somebody asks.
func (s *Console) sweep() {
	t := time.NewTicker(10 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-t.C:
			s.sessions.sweep(s.c.Now())
			s.tickets.sweep(s.c.Now())
		}
	}
}

// reviewID is how the kernel names reviews.
var reviewID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^rv_[0-9a-f]{10}$`)
})

// Link makes a one-time link that signs a browser in, for ten minutes. It leads
// to a review, or to the queue where review is empty.
func (s *Console) Link(review string) (string, error) {
	to := ""
	if review != "" {
		if !reviewID().MatchString(review) {
			return "", &holdfast.Error{Kind: holdfast.KindUsage, Why: "that is no review's id", Hint: "`holdfast review ls` lists them"}
		}
		to = "?" + url.Values{"review": {review}}.Encode()
	}
	return s.base() + "/in/" + s.tickets.issue(s.c.Now()) + to, nil
}

// ReviewURL is where a review's page is.
func (s *Console) ReviewURL(review string) string {
	return s.base() + "/review/" + url.PathEscape(review)
}

// base is the address that a browser on this machine uses.
func (s *Console) base() string {
	host, _, _ := net.SplitHostPort(s.c.Address)
	if netaddr.IsUnspecifiedHost(host) {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, s.port)
}

// routes binds the paths. What is bound here stands inside of the guard, which
// has looked at the host, the origin and the size.
func (s *Console) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", s.asset)
	mux.HandleFunc("GET /in/{ticket}", s.showLink)
	mux.HandleFunc("POST /in/{ticket}", s.signIn)
	if s.c.Metrics != nil {
		mux.Handle("GET /metrics", s.onlyHere(s.c.Metrics))
	}
	look := func(pattern string, f func(*visit)) { mux.HandleFunc(pattern, s.withSession(f)) }
	look("GET /{$}", s.queue)
	look("GET /review/{id}", s.review)
	look("GET /crossing/{id}", s.crossing)
	look("GET /crossings", s.crossings)
	look("GET /agents", s.agents)
	look("GET /tool", s.tool)
	if s.c.Health != nil {
		look("GET /health", s.health)
	}
	look("GET /halt", s.haltPage)
	look("GET /events", s.events)
	look("POST /unlock", s.unlock)
	look("POST /lock", s.lock)
	look("POST /out", s.signOut)
	look("POST /halt", s.halt)
	look("POST /resume", s.deciding(s.resume))
	look("POST /agent/unpause", s.deciding(s.unpause))
	look("POST /tool/accept", s.deciding(s.accept))
	look("POST /review/{id}/{act}", s.deciding(s.decide))
	look("POST /review/{id}/remember", s.deciding(s.remember))
	look("/", func(v *visit) { v.lost() })
	return s.guarded(s.area(mux))
}

// cookie and keyCookie are the names of the two cookies: one per port, because
// a browser keeps the cookies of all ports of one host together.
func (s *Console) cookie() string    { return "holdfast_" + s.port }
func (s *Console) keyCookie() string { return "holdfast_" + s.port + "_key" }

// asError is the letter in err, or one that keeps an inner cause in the log.
func (s *Console) asError(err error) *holdfast.Error {
	var e *holdfast.Error
	if errors.As(err, &e) && e.Kind != holdfast.KindInternal {
		return e
	}
	if errors.Is(err, kernel.ErrNotFound) {
		return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "there is nothing here by that name"}
	}
	s.c.Log.Error("a page failed", "err", err, "cause", errors.Unwrap(err))
	if e != nil {
		return e
	}
	return &holdfast.Error{Kind: holdfast.KindInternal, Why: "internal error", Hint: "the log has the cause"}
}

// letter is an error for people: why, and what to do.
func letter(e *holdfast.Error) string {
	if e.Hint == "" {
		return e.Why
	}
	return e.Why + " - " + strings.TrimSpace(e.Hint)
}
