package kernel_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	_ "modernc.org/sqlite"
)

var errGone = errors.New("the disk is gone")

// broken is a real store of which one part can be made to fail: a whole view,
// a whole update, or one verb of a transaction. It also counts the verbs.
type broken struct {
	kernel.Store
	view, update atomic.Bool
	verb         atomic.Pointer[string]
	revocations  atomic.Int64
	afterView    atomic.Pointer[func()]
}

func breakable(b *broken) option {
	return func(c *kernel.Config, _ *world) { b.Store = c.Store; c.Store = b }
}

func (b *broken) fail(verb string) { b.verb.Store(&verb) }

func (b *broken) verbFails(name string) error {
	if v := b.verb.Load(); v != nil && *v == name {
		return errGone
	}
	return nil
}

func (b *broken) View(ctx context.Context, fn func(kernel.Tx) error) error {
	if b.view.Load() {
		return errGone
	}
	err := b.Store.View(ctx, func(tx kernel.Tx) error { return fn(brokenTx{tx, b}) })
	if after := b.afterView.Swap(nil); after != nil {
		(*after)()
	}
	return err
}

func (b *broken) Update(ctx context.Context, fn func(kernel.Tx) error) error {
	if b.update.Load() {
		return errGone
	}
	return b.Store.Update(ctx, func(tx kernel.Tx) error { return fn(brokenTx{tx, b}) })
}

type brokenTx struct {
	kernel.Tx
	b *broken
}

func (t brokenTx) Revoked(tenant, jti string) (bool, error) {
	t.b.revocations.Add(1)
	if err := t.b.verbFails("Revoked"); err != nil {
		return false, err
	}
	return t.Tx.Revoked(tenant, jti)
}

func (t brokenTx) Counter(d budget.Draw) (budget.Counter, error) {
	if err := t.b.verbFails("Counter"); err != nil {
		return budget.Counter{}, err
	}
	return t.Tx.Counter(d)
}

func (t brokenTx) PeekRate(rs []budget.Rate, now time.Time) (*budget.Refusal, error) {
	if err := t.b.verbFails("PeekRate"); err != nil {
		return nil, err
	}
	return t.Tx.PeekRate(rs, now)
}

func (t brokenTx) Draw(ds []budget.Draw) (*budget.Refusal, error) {
	if err := t.b.verbFails("Draw"); err != nil {
		return nil, err
	}
	return t.Tx.Draw(ds)
}

func (t brokenTx) ReviewFor(b review.Binding) (review.Review, error) {
	if err := t.b.verbFails("ReviewFor"); err != nil {
		return review.Review{}, err
	}
	return t.Tx.ReviewFor(b)
}

func (t brokenTx) PutReview(r review.Review, was review.State) error {
	if err := t.b.verbFails("PutReview"); err != nil {
		return err
	}
	return t.Tx.PutReview(r, was)
}

func (t brokenTx) Replay(key string) (kernel.Replay, error) {
	if err := t.b.verbFails("Replay"); err != nil {
		return kernel.Replay{}, err
	}
	return t.Tx.Replay(key)
}

// minted mints a token and says its id.
func (w *world) minted(agent string, change ...func(*holdfast.Identity)) (holdfast.Secret, holdfast.Identity) {
	w.t.Helper()
	id := holdfast.Identity{Tenant: holdfast.Local, Principal: "user:" + agent, Roles: []string{"agent"}, Agent: agent, Session: agent + "-s1"}
	for _, c := range change {
		c(&id)
	}
	tok, id, err := w.minter.Mint(id, 15*time.Minute, w.now())
	if err != nil {
		w.t.Fatal(err)
	}
	return tok, id
}

func roles(rs ...string) func(*holdfast.Identity) {
	return func(i *holdfast.Identity) { i.Roles = rs }
}

func TestK2_AC1_AC5_FP6_FP7_permissions(t *testing.T) {
	w := newWorld(t, "")
	cases := []struct {
		name  string
		roles []string
		kind  holdfast.Kind
		says  string
	}{
		{"K2_AC1_granted", []string{"writer"}, "", ""},
		{"K2_AC1_granted_together", []string{"agent", "writer"}, "", ""},
		{"K2_AC5_FP7_only_one_of_two", []string{"agent"}, holdfast.KindPermission, "goal:write"},
		{"K2_FP6_role_not_mapped", []string{"wizard"}, holdfast.KindRoleNotFound, "wizard"},
		{"K2_FP6_one_of_two_not_mapped", []string{"writer", "wizard"}, holdfast.KindRoleNotFound, "wizard"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			req := w.req("test/perm", `{}`)
			req.Token = w.who("alice", roles(c.roles...))
			if c.kind == "" {
				w.passes(req)
				return
			}
			if e := w.refused(req, holdfast.K2, c.kind); !strings.Contains(e.Why, c.says) || (c.roles[0] == "agent" && strings.Contains(e.Why, "goal:read")) {
				t.Fatalf("%q must name %s and nothing that is granted", e.Why, c.says)
			}
		})
	}
}

// A trust level takes away what a role grants (D8).
func TestK2_INV1_roles_and_trust_intersect(t *testing.T) {
	w := newWorld(t, "")
	w.refused(w.req("test/spawn", `{}`), holdfast.K2, holdfast.KindPermission)
	if err := w.k.Trust(holdfast.Local, w.sign(operator.Statement{Act: operator.Trust, Subject: "alice", Value: "medium"})); err != nil {
		t.Fatal(err)
	}
	w.passes(w.req("test/spawn", `{}`))
	req := w.req("test/spawn", `{}`)
	req.Token = w.who("alice", roles("writer"))
	w.refused(req, holdfast.K2, holdfast.KindPermission)
}

func TestK2_AC2_FP1_FP2_tokens(t *testing.T) {
	w := newWorld(t, "")
	cases := []struct {
		name, token string
		kind        holdfast.Kind
	}{
		{"K2_AC2_FP1_missing", "", holdfast.KindJWT},
		{"K2_FP1_garbage", "garbage", holdfast.KindJWTDecode},
		{"K2_FP2_signature_changed", forge(w.who("alice").Reveal()), holdfast.KindJWT},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			req := w.req("test/low", `{}`)
			req.Token = holdfast.NewSecret(c.token)
			w.refused(req, holdfast.K2, c.kind)
		})
	}
	if n := len(w.entries(holdfast.Unverified)); n != len(cases) {
		t.Fatalf("%d entries under the reserved tenant", n)
	}
	if n := len(w.entries(holdfast.Local)); n != 0 {
		t.Fatalf("%d entries under a tenant that nobody proved", n)
	}
	for _, e := range w.entries(holdfast.Unverified) {
		if e.Caller != "-" || e.Agent != "" || *e.Authorized {
			t.Fatalf("%+v", e)
		}
	}
}

// forge flips a bit of a token's signature.
func forge(tok string) string {
	b := []byte(tok)
	i := strings.LastIndexByte(tok, '.') + 5
	if b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}

func TestK2_AC3_FP3_INV5_expired(t *testing.T) {
	w := newWorld(t, "")
	req := w.req("test/low", `{}`)
	w.passes(req)
	w.advance(15*time.Minute + 2*time.Second)
	w.refused(req, holdfast.K2, holdfast.KindExpiredToken)
}

func TestK2_AC4_FP4_INV4_revocation(t *testing.T) {
	w := newWorld(t, "")
	tok, id := w.minted("alice")
	other := w.who("alice")
	req := holdfast.Request{Boundary: "test/low", Payload: []byte(`{}`), Token: tok}
	w.passes(req)
	for range 2 { // a second time is nothing new
		if err := w.k.Revoke(holdfast.Local, id.TokenID, "user:carol", "lost"); err != nil {
			t.Fatal(err)
		}
	}
	w.refused(req, holdfast.K2, holdfast.KindRevokedToken)
	w.passes(holdfast.Request{Boundary: "test/low", Payload: []byte(`{}`), Token: other})
	if n := len(w.events(holdfast.Local, "token_revoked")); n == 0 {
		t.Fatal("no event")
	}
	w.store.Close()
	again := reopen(t, w.dir, "")
	again.refused(req, holdfast.K2, holdfast.KindRevokedToken)
	// No way back, not even in the database itself.
	for _, q := range []string{"DELETE FROM revocation", "UPDATE revocation SET jti = 'x'", "INSERT OR REPLACE INTO revocation SELECT tenant, jti, 0 FROM revocation"} {
		if err := again.sql(q); err == nil {
			t.Errorf("%s was obeyed", q)
		}
	}
	again.refused(req, holdfast.K2, holdfast.KindRevokedToken)
}

// A token that is revoked while its request is judged does not act, be it the
// agent's first crossing or a later one.
func TestK2_INV4_revoked_between_judging_and_begin(t *testing.T) {
	for _, name := range []string{"first", "later"} {
		t.Run(name, func(t *testing.T) {
			b := &broken{}
			w := newWorld(t, "", breakable(b))
			if name == "later" {
				w.passes(w.req("test/low", `{}`))
			}
			tok, id := w.minted("alice")
			revoke := func() {
				if err := w.k.Revoke(holdfast.Local, id.TokenID, "user:carol", "now"); err != nil {
					t.Error(err)
				}
			}
			b.afterView.Store(&revoke)
			w.refused(holdfast.Request{Boundary: "test/low", Payload: []byte(`{}`), Token: tok}, holdfast.K2, holdfast.KindRevokedToken)
		})
	}
}

// Criterion 6: what a role grants is in memory, made with the policy; a new
// policy is asked at once, and the old one never again.
func TestK2_AC6_INV2_roles_resolved_with_the_policy(t *testing.T) {
	w := newWorld(t, "")
	req := w.req("test/perm", `{}`)
	req.Token = w.who("alice", roles("writer"))
	a, c := w.passes(req), w.passes(req)
	if a.Opinions[1].Rule != c.Opinions[1].Rule || a.Opinions[1].Why != c.Opinions[1].Why {
		t.Fatalf("%+v, then %+v", a.Opinions[1], c.Opinions[1])
	}
	// The source of the table is never asked again: it may change as it likes.
	w.policy.Roles["writer"][0] = "nothing:at-all"
	delete(w.policy.Roles, "writer")
	w.passes(req)
	p := *w.policy
	p.Version, p.Roles = strings.Repeat("2", 64), map[string][]string{"writer": {"goal:read"}}
	if err := w.k.SetPolicy(&p, "user:carol"); err != nil {
		t.Fatal(err)
	}
	w.refused(req, holdfast.K2, holdfast.KindPermission)
}

func TestK2_AC7_FP8_revocations_unreadable(t *testing.T) {
	for _, name := range []string{"view", "verb"} {
		t.Run(name, func(t *testing.T) {
			b := &broken{}
			w := newWorld(t, "", breakable(b))
			w.passes(w.req("test/low", `{}`))
			if name == "view" {
				b.view.Store(true)
			} else {
				b.fail("Revoked")
			}
			_, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
				t.Error("acted")
				return holdfast.Output{}, nil
			})
			wants(t, err, holdfast.KindRevocationCache)
			b.view.Store(false)
			b.fail("")
			w.passes(w.req("test/low", `{}`))
		})
	}
}

// A caller that goes away can be told from a store that gives no answer, which
// alarms people.
func TestK2_a_caller_that_has_gone_is_no_fault_of_the_store(t *testing.T) {
	w := newWorld(t, "")
	gone, leave := context.WithCancel(t.Context())
	leave()
	o, err := w.k.Cross(gone, w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
		t.Error("acted")
		return holdfast.Output{}, nil
	})
	wants(t, err, holdfast.KindCanceled)
	if o == nil || o.Crossing == "" {
		t.Error("it is not recorded")
	}
	w.passes(w.req("test/low", `{}`))
}

// Criterion 8: a crossing asks for the revocation twice, when it is judged and
// when it begins, however many tokens were revoked.
func TestK2_AC8_one_lookup(t *testing.T) {
	b := &broken{}
	w := newWorld(t, "", breakable(b))
	w.passes(w.req("test/low", `{}`))
	count := func() int64 {
		req := w.req("test/low", `{}`)
		before := b.revocations.Load()
		w.passes(req)
		return b.revocations.Load() - before
	}
	few := count()
	for range 50 {
		if err := w.k.Revoke(holdfast.Local, uuid4(), "user:carol", ""); err != nil {
			t.Fatal(err)
		}
	}
	if many := count(); few != 2 || many != 2 {
		t.Fatalf("%d lookups with no revocation, %d with fifty", few, many)
	}
}

func TestK2_FP9_no_registry(t *testing.T) {
	w := newWorld(t, "", policy(func(p *kernel.Policy) { p.Roles = nil }))
	w.refused(w.req("test/low", `{}`), holdfast.K2, holdfast.KindPermissionRegistry)
	empty := newWorld(t, "", policy(func(p *kernel.Policy) { p.Roles = map[string][]string{} }))
	empty.refused(empty.req("test/low", `{}`), holdfast.K2, holdfast.KindRoleNotFound)
}

// A verifier that answers without saying who asks is no verification.
type emptyVerifier struct{ id holdfast.Identity }

func (v emptyVerifier) Verify(context.Context, holdfast.Secret, time.Time) (holdfast.Identity, error) {
	return v.id, nil
}

func TestK2_FP5_nobody_is_refused(t *testing.T) {
	full := holdfast.Identity{Tenant: "org", Principal: "user:a", Agent: "a", Session: "s", TokenID: "j", Roles: []string{"agent"}, Expires: time.Now().Add(time.Hour)}
	for name, strip := range map[string]func(*holdfast.Identity){
		"tenant":     func(i *holdfast.Identity) { i.Tenant = "" },
		"unverified": func(i *holdfast.Identity) { i.Tenant = holdfast.Unverified },
		"reserved":   func(i *holdfast.Identity) { i.Tenant = "_checkpoints" },
		"principal":  func(i *holdfast.Identity) { i.Principal = "" },
		"agent":      func(i *holdfast.Identity) { i.Agent = "" },
		"session":    func(i *holdfast.Identity) { i.Session = "" },
		"token_id":   func(i *holdfast.Identity) { i.TokenID = "" },
	} {
		t.Run(name, func(t *testing.T) {
			id := full
			strip(&id)
			w := newWorld(t, "", func(c *kernel.Config, _ *world) { c.Verifier = emptyVerifier{id} })
			w.refused(w.req("test/low", `{}`), holdfast.K2, holdfast.KindTenantContext)
		})
	}
	w := newWorld(t, "", func(c *kernel.Config, _ *world) { c.Verifier = emptyVerifier{full} })
	w.passes(w.req("test/low", `{}`))
}

// rulesThat runs a function while K8 judges the request.
type rulesThat struct {
	kernel.Rules
	do func()
}

func (r rulesThat) Judge(ctx context.Context, on constitution.On, f constitution.Facts) []constitution.Finding {
	if on == constitution.OnRequest && r.do != nil {
		r.do()
	}
	return r.Rules.Judge(ctx, on, f)
}

// during makes do run while a request is judged.
func during(do *func()) option {
	return policy(func(p *kernel.Policy) {
		p.Rules = rulesThat{p.Rules, func() {
			if *do != nil {
				(*do)()
			}
		}}
	})
}

func (w *world) file() string { return filepath.Join(w.dir, "holdfast.db") }
