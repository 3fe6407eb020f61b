// Package bearer lets requests in by their bearer tokens, and keeps the newest token of
// each identity for its sessions.
package bearer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
)

// maxHolders bounds the identities whose newest token is kept.
const maxHolders = 4096

// Kernel records a request without a valid token.
type Kernel interface {
	Cross(
		ctx context.Context, r holdfast.Request, act func(context.Context) (holdfast.Output, error),
	) (*holdfast.Outcome, error)
}

// Verifier verifies a token at a time.
type Verifier interface {
	Verify(ctx context.Context, tok holdfast.Secret, now time.Time) (holdfast.Identity, error)
}

// Store knows the revoked tokens.
type Store interface {
	View(ctx context.Context, fn func(kernel.Tx) error) error
}

// Gate lets requests in by their bearer tokens. It is safe for concurrent use.
type Gate struct {
	kernel  Kernel
	tokens  Verifier
	store   Store
	log     *slog.Logger
	holders holders
}

// New returns a gate.
func New(k Kernel, tokens Verifier, store Store, log *slog.Logger) *Gate {
	return &Gate{kernel: k, tokens: tokens, store: store, log: log}
}

// Visitor is an identity that was let in.
type Visitor struct {
	// Name is equal for all requests of one verified identity, and Group for all
	// sessions of one agent.
	Name, Group string
	Agent, Kind string
	// Token returns the token for one crossing.
	Token func(context.Context) (holdfast.Secret, error)
}

// Enter lets a request in whose session may outlive its token. Of the tokens that
// an identity brought, the one that expires last and is not revoked is used, so
// that a client can renew it during a session. See Verify for boundary and header.
func (g *Gate) Enter(ctx context.Context, boundary string, header []string) (Visitor, error) {
	tok, id, err := g.Verify(ctx, boundary, header)
	if err != nil {
		return Visitor{}, err
	}
	name := same(id)
	h := g.holders.keep(name, held{tok: tok, id: id.TokenID, until: id.Expires}, func(old string) bool {
		return g.revoked(ctx, holdfast.Identity{Tenant: id.Tenant, TokenID: old}) != nil
	})
	return Visitor{Name: name, Group: GroupOf(name), Agent: id.Agent, Kind: id.Kind, Token: h.token}, nil
}

// Verify returns the token and its identity from the values of the authorization
// header. A request without a valid token is recorded as a refused crossing of
// boundary.
func (g *Gate) Verify(
	ctx context.Context, boundary string, header []string,
) (holdfast.Secret, holdfast.Identity, error) {
	tok, err := token.Bearer(header)
	var id holdfast.Identity
	if err == nil {
		id, err = g.tokens.Verify(ctx, tok, time.Now())
	}
	if err == nil && (id.Agent == "" || id.Session == "") {
		err = &holdfast.Error{Kind: holdfast.KindTenantContext, Gate: holdfast.K2,
			Why: "the token names no agent or no session"}
	}
	if err == nil {
		err = g.revoked(ctx, id)
	}
	if err == nil {
		return tok, id, nil
	}
	no := holdfast.Opinion{Gate: holdfast.K2, Kind: holdfast.KindOf(err),
		Why: err.Error()} // no contract lists a door, which is not what is wrong
	if e, ok := errors.AsType[*holdfast.Error](err); ok {
		no.Why, no.Hint = e.Why, e.Hint
	}
	_, judged := g.kernel.Cross(ctx, holdfast.Request{Boundary: boundary, Payload: []byte("{}"), Token: tok,
		Denials: []holdfast.Opinion{no}},
		func(context.Context) (holdfast.Output, error) {
			return holdfast.Output{}, errors.New("nobody may cross without a good token")
		})
	if judged == nil {
		g.log.Error("a token that was refused at the door passed the gates", "boundary", boundary)
	}
	return holdfast.Secret{}, holdfast.Identity{}, err
}

// revoked is an error if the token is permanently worthless: a newer one of the
// same identity must not carry it.
func (g *Gate) revoked(ctx context.Context, id holdfast.Identity) error {
	gone := false
	err := g.store.View(ctx, func(tx kernel.Tx) (err error) {
		gone, err = tx.Revoked(id.Tenant,
			id.TokenID)
		return err
	})
	if err == nil && gone {
		return &holdfast.Error{Kind: holdfast.KindRevokedToken, Gate: holdfast.K2, Why: "the token was revoked",
			Hint: "a revocation is for ever; ask for a new token"}
	}
	return err
}

// same is equal for tokens that say the same of who asks. It begins with the
// group of the caller, which is equal for all sessions of one agent, whatever
// else its tokens say.
func same(id holdfast.Identity) string {
	id.TokenID, id.Expires = "", time.Time{}
	return CallerOf(id) + "." + hashed(id)
}

// CallerOf names an agent of a principal, over all its sessions.
func CallerOf(id holdfast.Identity) string {
	return hashed([]string{id.Issuer, id.Tenant, id.Principal, id.Agent})
}

// GroupOf is the caller that what same returned belongs to.
func GroupOf(who string) string {
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
