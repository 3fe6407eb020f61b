package kernel_test

import (
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// second is another person's key.
var second = sync.OnceValue(func() operator.Key {
	sealed, _, err := operator.New(holdfast.NewSecret("another horse battery"), operator.Options{WorkFactor: 15})
	if err != nil {
		panic(err)
	}
	k, err := operator.Open(sealed, holdfast.NewSecret("another horse battery"))
	if err != nil {
		panic(err)
	}
	return k
})

// people are two operators whose keys have names: the first is bob's.
func people(names ...string) option {
	return func(c *kernel.Config, _ *world) {
		_, first := keys()
		c.Operator = func() []operator.Public {
			return []operator.Public{first.Named(names[0]), second().Public().Named(names[1])}
		}
	}
}

// Names that are one person's, however they are written; the agent is alice,
// asked for by user:alice.
func TestK7_D11_self_approval(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	for _, name := range []string{"alice", "Alice", "ALICE", "alice.", " alice", "alice ", "user:alice", "agent:alice", "operator:Alice", "user:user:alice",
		"ａｌｉｃｅ", "a.l.i.c.e", "alice!", "«alice»", "ali\u0063e", "USER: alice", "(alice)", "al-ice", "ALICE\u0301"[:5]} {
		s := w.statementAs(h.Review, name)
		if s == nil {
			continue // the statement cannot even be made
		}
		_, err := w.k.Decide(*s)
		refusedAs(t, err, holdfast.KindSelfApproval, "review/self_approval")
	}
	// Rejecting one's own is nobody's harm.
	r, _ := w.k.Review(t.Context(), h.Review)
	said := w.sign(operator.Statement{Act: operator.Reject, Subject: r.ID, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce, Reviewer: "alice"})
	if _, err := w.k.Decide(said); err != nil {
		t.Fatal(err)
	}
	other := w.held(w.req("test/high", `{"other":1}`))
	if _, err := w.k.Decide(*w.statementAs(other.Review, "alicia")); err != nil {
		t.Fatal(err)
	}
}

// statementAs is an approval under a name, nil where no statement can bear it.
func (w *world) statementAs(id, name string) *operator.Signed {
	w.t.Helper()
	r, err := w.k.Review(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	s := operator.Statement{Act: operator.Approve, Subject: r.ID, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce,
		Reviewer: name, At: w.now(), ID: uuid4(), Runtime: runtimeID}
	signed, err := operator.Sign(w.person(), s)
	if err != nil {
		return nil
	}
	return &signed
}

// A key that has a name says who speaks: not under another name, and not for
// what its own owner asked, whatever the statement calls him.
func TestK7_D11_the_key_says_who_speaks(t *testing.T) {
	w := newWorld(t, "", people("alice", "bob"))
	h := w.held(w.req("test/high", `{}`))
	_, err := w.k.Decide(*w.statementAs(h.Review, "bob"))
	refusedAs(t, err, holdfast.KindPermission, "statement/other_name")
	_, err = w.k.Decide(*w.statementAs(h.Review, "alice"))
	refusedAs(t, err, holdfast.KindSelfApproval, "review/self_approval")
	key, _ := keys()
	_, err = w.k.Decide(*w.statementAs(h.Review, key.Public().ID())) // as the pages call her
	refusedAs(t, err, holdfast.KindSelfApproval, "review/self_approval")

	// Bob, with his own key, may.
	r, _ := w.k.Review(t.Context(), h.Review)
	signed, err := operator.Sign(second(), operator.Statement{Act: operator.Approve, Subject: r.ID, Exact: r.Exact, PreviewHash: r.PreviewHash,
		Policy: r.Policy, Nonce: r.Nonce, Reviewer: "bob", At: w.now(), ID: uuid4(), Runtime: runtimeID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.k.Decide(signed); err != nil {
		t.Fatal(err)
	}
	w.passes(w.req("test/high", `{}`))
}

// A principal that is an operator's key cannot approve by it.
func TestK7_D11_a_principal_that_is_a_key(t *testing.T) {
	w := newWorld(t, "")
	key, _ := keys()
	req := w.req("test/high", `{}`)
	req.Token = w.who("worker", func(id *holdfast.Identity) { id.Principal = key.Public().ID() })
	h := w.held(req)
	_, err := w.k.Decide(*w.statementAs(h.Review, "bob"))
	refusedAs(t, err, holdfast.KindSelfApproval, "review/self_approval")
}

// Who lets another one in says so, and it is recorded.
func TestK7_D49_admitting_an_operator(t *testing.T) {
	w := newWorld(t, "")
	pub := second().Public().Named("carol")
	admit := func(pub operator.Public, subject string) operator.Signed {
		return w.sign(operator.Statement{Act: operator.Admit, Subject: subject, Value: pub.String()})
	}
	if _, err := w.k.Admit(admit(pub, pub.ID())); err != nil {
		t.Fatal(err)
	}
	if e := w.events(holdfast.Local, "operator_admitted"); len(e) != 1 || e[0].Who != "bob" || e[0].Subject != pub.ID() {
		t.Fatalf("%+v", e)
	}
	_, err := w.k.Admit(admit(second().Public(), pub.ID()))
	refusedAs(t, err, holdfast.KindValue, "operator/no_key")
	_, err = w.k.Admit(admit(pub, "operator:0000"))
	refusedAs(t, err, holdfast.KindValue, "operator/no_key")
	key, _ := keys()
	_, err = w.k.Admit(admit(key.Public().Named("bob2"), key.Public().ID()))
	refusedAs(t, err, holdfast.KindConflict, "operator/there")
}
