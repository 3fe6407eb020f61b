package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

func TestK4_AC1_AC5_INV3_tenants(t *testing.T) {
	tenant := "org_123"
	who := holdfast.Identity{Principal: "user:a", Agent: "a", Session: "s", TokenID: "j", Roles: []string{"agent"}, Expires: time.Now().Add(time.Hour)}
	w := newWorld(t, "", func(c *kernel.Config, _ *world) {
		c.Verifier = verifierFunc(func() holdfast.Identity { i := who; i.Tenant = tenant; return i })
	})
	a, err := w.k.Cross(t.Context(), w.req("test/low", `{"tenant_id":"org_evil"}`), func(ctx context.Context) (holdfast.Output, error) {
		tenant = "org_b" // whoever verifies later says something else
		return ok(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	b := w.passes(w.req("test/low", `{}`))
	ea, eb := w.entries("org_123"), w.entries("org_b")
	if len(ea) != 1 || ea[0].ID != a.Crossing || ea[0].TenantID != "org_123" || len(eb) != 1 || eb[0].ID != b.Crossing || len(w.entries("org_evil")) != 0 {
		t.Fatalf("%+v %+v", ea, eb)
	}
	if a.Correlation == b.Correlation || a.Traceparent[3:35] == b.Traceparent[3:35] {
		t.Fatal("two tenants share a trace")
	}
}

func TestK4_AC2_INV4_children_inherit(t *testing.T) {
	w := newWorld(t, "")
	given := uuid4()
	var grand *holdfast.Outcome
	req := w.req("test/low", `{}`)
	req.Correlation = given
	out, err := w.k.Cross(t.Context(), req, func(ctx context.Context) (holdfast.Output, error) {
		_, err := w.k.Cross(kernel.Child(ctx), w.req("test/medium", `{}`), func(ctx context.Context) (holdfast.Output, error) {
			var err error
			same := w.req("test/low", `{}`)
			same.Correlation = given
			grand, err = w.k.Cross(kernel.Child(ctx), same, ok)
			return holdfast.Output{}, err
		})
		if err != nil {
			return holdfast.Output{}, err
		}
		other := w.req("test/low", `{}`)
		other.Correlation = uuid4()
		_, err = w.k.Cross(kernel.Child(ctx), other, ok)
		if holdfast.KindOf(err) != holdfast.KindValue {
			t.Errorf("a child chose its own correlation: %v", err)
		}
		return holdfast.Output{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	es := w.entries(holdfast.Local)
	if len(es) != 4 || grand.Correlation != given {
		t.Fatalf("%d entries, %s", len(es), grand.Correlation)
	}
	for _, e := range es {
		if e.Correlation != given || e.Traceparent[3:35] != out.Traceparent[3:35] {
			t.Fatalf("%s in another flow: %s %s", e.ID, e.Correlation, e.Traceparent)
		}
	}
	if es[0].Parent != es[1].ID || es[1].Parent != es[3].ID || es[3].Parent != "" {
		t.Fatalf("parents %q %q %q", es[0].Parent, es[1].Parent, es[3].Parent)
	}
}

func TestK4_correlations(t *testing.T) {
	w := newWorld(t, "")
	good := uuid4()
	cases := []struct {
		name, given string
		ok          bool
	}{
		{"K4_AC3_none_given", "", true},
		{"K4_AC4_given", good, true},
		{"K4_FP2_no_uuid", "flow-1", false},
		{"K4_FP2_version_1", "c232ab00-9414-11ec-b3c8-9f6bdeced846", false},
		{"K4_FP2_nil", "00000000-0000-0000-0000-000000000000", false},
		{"K4_FP2_braces", "{" + good + "}", false},
		{"K4_FP2_urn", "urn:uuid:" + good, false},
		{"K4_FP2_no_dashes", strings.ReplaceAll(good, "-", ""), false},
		{"K4_FP2_newline", good + "\n", false},
		{"K4_FP2_vast", strings.Repeat("a", 1<<20), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			req := w.req("test/low", `{}`)
			req.Correlation = c.given
			if !c.ok {
				w.refused(req, holdfast.K4, holdfast.KindValue)
			} else if out := w.passes(req); c.given != "" && out.Correlation != c.given {
				t.Fatalf("%s", out.Correlation)
			}
			es := w.entries(holdfast.Local)
			e := es[len(es)-1]
			if id, err := uuid.Parse(e.Correlation); err != nil || id.Version() != 4 || (!c.ok && e.Correlation == c.given) {
				t.Fatalf("recorded under %q", e.Correlation)
			}
		})
	}
}

func TestK4_AC6_FP1_no_tenant(t *testing.T) {
	w := newWorld(t, "")
	out, _ := w.k.Explain(t.Context(), holdfast.Request{Boundary: "test/low", Payload: []byte(`{}`)})
	if op := out.Opinions[3]; op.Gate != holdfast.K4 || op.Kind != holdfast.KindTenantContext || op.State != "TENANT_MISSING" {
		t.Fatalf("%+v", op)
	}
}

// fewRandom runs dry after n bytes.
type fewRandom struct{ n int }

func (f *fewRandom) Read(p []byte) (int, error) {
	if f.n < len(p) {
		return 0, errGone
	}
	f.n -= len(p)
	return len(p), nil
}

// Failure predicate 3: however far randomness reaches, without an id nothing
// crosses.
func TestK4_FP3_no_id_can_be_made(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 31, 32, 33, 39} {
		w := newWorld(t, "", func(c *kernel.Config, _ *world) { c.Random = &fewRandom{n} })
		acted := false
		_, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
			acted = true
			return holdfast.Output{}, nil
		})
		if err == nil || acted {
			t.Fatalf("%d bytes: acted %v, %v", n, acted, err)
		}
	}
}

// Criterion 7 and invariant 5: times of judging and of writing grow strictly
// in the order of the entries, through many callers and a clock that jumps
// back.
func TestK4_AC7_INV5_timestamps(t *testing.T) {
	w := newWorld(t, "")
	var wg sync.WaitGroup
	for i := range 24 {
		req := w.req("test/low", fmt.Sprintf(`{"i":%d}`, i))
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := w.k.Cross(context.Background(), req, ok); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	var last time.Time
	for i := range 10 {
		if i == 5 {
			w.advance(-30 * time.Second)
		}
		w.passes(w.req("test/low", `{}`))
		es := w.entries(holdfast.Local)
		e := es[len(es)-1]
		if !e.Timestamp.After(last) || e.CreatedAt.Before(e.Timestamp) {
			t.Fatalf("%v after %v", e.Timestamp, last)
		}
		last = e.Timestamp
	}
	seen := map[time.Time]bool{}
	for _, e := range w.entries(holdfast.Local) {
		if seen[e.Timestamp] || seen[e.CreatedAt] {
			t.Fatalf("two things at %v", e.Timestamp)
		}
		seen[e.Timestamp], seen[e.CreatedAt] = true, true
	}
}

// Invariant 1: every entry carries both, whatever the crossing came to.
func TestK4_INV1_INV2_every_entry_has_both(t *testing.T) {
	w := newWorld(t, "")
	w.passes(w.req("test/low", `{}`))
	w.refused(w.req("test/schema", `{}`), holdfast.K1, holdfast.KindValidation)
	w.refused(holdfast.Request{Boundary: "test/low"}, holdfast.K1, holdfast.KindValidation)
	h := w.held(w.req("test/high", `{}`))
	if _, err := w.k.Decide(w.say(operator.Reject, h.Review, "no")); err != nil {
		t.Fatal(err)
	}
	all := append(w.entries(holdfast.Local), w.entries(holdfast.Unverified)...)
	if len(all) != 4 {
		t.Fatalf("%d entries", len(all))
	}
	seen := map[string]bool{}
	for _, e := range all {
		if _, err := uuid.Parse(e.Correlation); err != nil || e.TenantID == "" || seen[e.Correlation] {
			t.Fatalf("%+v", e)
		}
		seen[e.Correlation] = true
	}
}

// A traceparent of version 00 is carried on; anything else begins a trace of
// the flow's own id.
func TestK4_traceparent(t *testing.T) {
	w := newWorld(t, "")
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for given, carried := range map[string]bool{good: true, "": false, strings.ToUpper(good): false, "01" + good[2:]: false, good + "-x": false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false, "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false} {
		req := w.req("test/low", `{}`)
		req.Traceparent = given
		out := w.passes(req)
		want := strings.ReplaceAll(out.Correlation, "-", "")
		if carried {
			want = good[3:35]
		}
		if out.Traceparent[3:35] != want || len(out.Traceparent) != 55 || strings.Contains(out.Traceparent, "00f067aa0ba902b7") {
			t.Errorf("%q gives %q", given, out.Traceparent)
		}
	}
}
