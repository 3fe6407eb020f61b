package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/streamable"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
)

// maxFronts bounds the configured servers that were ever asked for by name, and
// maxHolders the identities whose newest token is kept.
const (
	maxFronts  = 256
	maxHolders = 4096
)

// bearers lets requests in by their bearer token.
type bearers struct {
	d *Daemon
	// what is the boundary under which a request without a good token is
	// recorded.
	what string
}

// visitor is who was let in: group is the caller's, and token gives the token of
// one crossing.
type visitor struct {
	group       string
	agent, kind string
	token       func(context.Context) (holdfast.Secret, error)
}

// enter returns the front's way in. Requests of one verified identity share
// sessions; of the tokens it brought, the one that lives longest and is not revoked
// is what its crossings are made with, so that a client can renew it in the middle
// of a session.
func (b bearers) enter(run func(visitor) func(context.Context, gateway.Client) error) func(*http.Request) (string, func(context.Context, gateway.Client) error, error) {
	return func(r *http.Request) (string, func(context.Context, gateway.Client) error, error) {
		tok, id, err := b.verify(r.Context(), r.Header.Values("Authorization"))
		if err != nil {
			return "", nil, err
		}
		who := same(id)
		h := b.d.holders.keep(who, held{tok: tok, id: id.TokenID, until: id.Expires}, func(old string) bool {
			return b.revoked(r.Context(), holdfast.Identity{Tenant: id.Tenant, TokenID: old}) != nil
		})
		return who, run(visitor{group: groupOf(who), agent: id.Agent, kind: id.Kind, token: h.token}), nil
	}
}

// verify returns who asks, from the values of the authorization header. A
// request whose token is none is recorded as every request is that cannot be
// verified: the kernel judges it, and refuses it.
func (b bearers) verify(ctx context.Context, header []string) (holdfast.Secret, holdfast.Identity, error) {
	tok, err := token.Bearer(header)
	var id holdfast.Identity
	if err == nil {
		id, err = b.d.verifies.Verify(ctx, tok, time.Now())
	}
	if err == nil && (id.Agent == "" || id.Session == "") {
		err = &holdfast.Error{Kind: holdfast.KindTenantContext, Gate: holdfast.K2, Why: "the token names no agent or no session"}
	}
	if err == nil {
		err = b.revoked(ctx, id)
	}
	if err == nil {
		return tok, id, nil
	}
	no := holdfast.Opinion{Gate: holdfast.K2, Kind: holdfast.KindOf(err), Why: err.Error()} // no contract lists a door, which is not what is wrong
	if e, ok := errors.AsType[*holdfast.Error](err); ok {
		no.Why, no.Hint = e.Why, e.Hint
	}
	_, judged := b.d.Kernel.Cross(ctx, holdfast.Request{Boundary: b.what, Payload: []byte("{}"), Token: tok, Denials: []holdfast.Opinion{no}},
		func(context.Context) (holdfast.Output, error) {
			return holdfast.Output{}, errors.New("nobody may cross without a good token")
		})
	if judged == nil {
		b.d.log.Error("a token that was refused at the door passed the gates", "boundary", b.what)
	}
	return holdfast.Secret{}, holdfast.Identity{}, err
}

// revoked is an error where the token is worthless for ever: a newer one of the
// same identity must not carry it.
func (b bearers) revoked(ctx context.Context, id holdfast.Identity) error {
	gone := false
	err := b.d.store.View(ctx, func(tx kernel.Tx) (err error) { gone, err = tx.Revoked(id.Tenant, id.TokenID); return err })
	if err == nil && gone {
		return &holdfast.Error{Kind: holdfast.KindRevokedToken, Gate: holdfast.K2, Why: "the token was revoked", Hint: "a revocation is for ever; ask for a new token"}
	}
	return err
}

// same is equal for tokens that say the same of who asks. It begins with the
// group of the caller, which is equal for all sessions of one agent, whatever
// else its tokens say.
func same(id holdfast.Identity) string {
	id.TokenID, id.Expires = "", time.Time{}
	return callerOf(id) + "." + hashed(id)
}

// callerOf names an agent of a principal, over all its sessions.
func callerOf(id holdfast.Identity) string {
	return hashed([]string{id.Issuer, id.Tenant, id.Principal, id.Agent})
}

// groupOf is the caller that what same returned belongs to.
func groupOf(who string) string {
	group, _, _ := strings.Cut(who, ".")
	return group
}

// hashed is the hash of a value's JSON, in hexadecimal digits.
func hashed(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts can be written
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// held is one verified token; id names it where it is revoked.
type held struct {
	tok   holdfast.Secret
	id    string
	until time.Time
}

// holder has the token of one identity.
type holder struct {
	mu sync.Mutex
	held
}

func (h *holder) token(context.Context) (holdfast.Secret, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tok, nil
}

// take keeps t in the place of a token that ends before it, or that is revoked.
func (h *holder) take(t held, revoked func(id string) bool) {
	h.mu.Lock()
	old := h.held
	h.mu.Unlock()
	// The store is asked without the lock: it may be slow.
	gone := old.tok.Empty() || (old.id != t.id && revoked(old.id))
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.until.After(h.until) || (gone && h.id == old.id) {
		h.held = t
	}
}

// holders are the identities that came lately. The zero value has none.
type holders struct {
	mu sync.Mutex
	m  map[string]*holder // guarded by mu; by identity
}

// keep remembers a verified token. A client that holds an older one as well
// does not take the newer one back, unless that has been revoked since. One that
// is forgotten for want of room goes on with what it has.
func (s *holders) keep(who string, t held, revoked func(id string) bool) *holder {
	s.mu.Lock()
	if s.m == nil {
		s.m = map[string]*holder{}
	}
	h := s.m[who]
	if h == nil {
		if len(s.m) >= maxHolders {
			s.tidy(time.Now())
		}
		h = &holder{}
		s.m[who] = h
	}
	s.mu.Unlock()
	h.take(t, revoked)
	return h
}

// tidy forgets the identities whose tokens have expired, or all of them where
// that is not enough. The caller holds mu.
func (s *holders) tidy(now time.Time) {
	for who, h := range s.m {
		h.mu.Lock()
		over := !now.Before(h.until)
		h.mu.Unlock()
		if over {
			delete(s.m, who)
		}
	}
	if len(s.m) >= maxHolders {
		clear(s.m)
	}
}

// fronts are the endpoints of the pages' address by their name.
type fronts struct {
	host string
	end  context.CancelFunc

	mu     sync.Mutex
	m      map[string]*streamable.Handler // guarded by mu
	closed bool                           // guarded by mu
}

func (f *fronts) of(name string, fresh func() *streamable.Handler) (*streamable.Handler, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.m[name]; h != nil {
		return h, nil
	}
	if f.closed || len(f.m) >= maxFronts {
		return nil, errors.New("busy: there are too many endpoints")
	}
	if f.m == nil {
		f.m = map[string]*streamable.Handler{}
	}
	f.m[name] = fresh()
	return f.m[name], nil
}

func (f *fronts) close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	all := f.m
	f.mu.Unlock()
	f.end()
	var errs []error
	for _, h := range all {
		errs = append(errs, h.Close(ctx))
	}
	return errors.Join(errs...)
}

// giveToken makes a token that somebody takes away, and records that.
func (d *Daemon) giveToken(a api.TokenAsk) (api.Token, error) {
	if a.TTL < time.Second || a.TTL > token.MaxTTL {
		return api.Token{}, &holdfast.Error{Kind: holdfast.KindUsage, Why: "a token lives for 1s to 24h, not for " + a.TTL.String()}
	}
	tok, id, err := d.mint(holdfast.Identity{Agent: a.Agent, Kind: a.Kind, Session: a.Session, Intent: a.Intent, Chain: a.Chain}, a.TTL)
	if err != nil {
		return api.Token{}, err
	}
	err = d.Kernel.Record(kernel.Event{Tenant: id.Tenant,
		Name: "agent_token_given", Who: person(), Subject: excerpt.Word(a.Agent),
		Data: map[string]any{"jti": id.TokenID,
			"session": excerpt.Word(id.Session), "expires": id.Expires.UTC().Format(time.RFC3339)}})
	if err != nil {
		return api.Token{}, err
	}
	return api.Token{Token: tok.Reveal(), ID: id.TokenID, Tenant: id.Tenant, Agent: id.Agent, Session: id.Session, Expires: id.Expires.UTC()}, nil
}
