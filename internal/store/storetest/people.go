package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

func testAgents(t *testing.T, open Open) {
	s := begin(t, open)
	a := holdfast.Agent{Tenant: "acme", Name: "coder", Kind: "code", Level: holdfast.Baseline, State: holdfast.AgentRunning,
		Principal: "ann", First: start()}
	b := a
	b.Name, b.Parent = "another", "coder"
	c := a
	c.Tenant = "other"
	s.update(func(tx kernel.Tx) error {
		if _, err := tx.Agent("acme", "coder"); !errors.Is(err, kernel.ErrNotFound) {
			return fmt.Errorf("an agent before it is put: %w", err)
		}
		return errors.Join(tx.PutAgent(a), tx.PutAgent(b), tx.PutAgent(c))
	})
	check := func(tx kernel.Tx) error {
		got, err := tx.Agent("acme", "coder")
		if err != nil {
			return err
		}
		if got != a {
			return fmt.Errorf("agent: got %+v, want %+v", got, a)
		}
		all, err := tx.Agents("acme")
		if err != nil {
			return err
		}
		if _, err := tx.Agent("other", "another"); !errors.Is(err, kernel.ErrNotFound) {
			return fmt.Errorf("an agent of another tenant: %w", err)
		}
		return differ("agents by name", all, []holdfast.Agent{b, a})
	}
	s.everywhere(check)
	a.Level, a.State, a.Why = holdfast.HighTrust, holdfast.AgentPaused, "because"
	s.update(func(tx kernel.Tx) error { return errors.Join(tx.PutAgent(a), check(tx)) })
	s.everywhere(check)
	within := a
	within.Name, within.Owner = "coder/explore", "coder"
	s.update(func(tx kernel.Tx) error { return tx.PutAgent(within) })
	s.update(func(tx kernel.Tx) error {
		return errors.Join(tx.DropAgent("acme", within.Name), tx.DropAgent("acme", "nobody"), check(tx))
	})
	s.everywhere(func(tx kernel.Tx) error {
		if _, err := tx.Agent("acme", within.Name); !errors.Is(err, kernel.ErrNotFound) {
			return fmt.Errorf("an agent that was dropped: %w", err)
		}
		return check(tx)
	})
	for _, bad := range []holdfast.Agent{{Name: "x"}, {Tenant: "x"}, {Tenant: "x", Name: strings.Repeat("x", 1<<20)}} {
		s.update(func(tx kernel.Tx) error {
			if err := tx.PutAgent(bad); err == nil {
				t.Errorf("an agent with tenant %q and a name of %d bytes was taken", bad.Tenant, len(bad.Name))
			}
			return nil
		})
	}
}

func testRevocation(t *testing.T, open Open) {
	s := begin(t, open)
	s.update(func(tx kernel.Tx) error {
		return errors.Join(tx.Revoke("acme", "j1", start()), tx.Revoke("acme", "j1", start()))
	})
	s.update(func(tx kernel.Tx) error { return tx.Revoke("acme", "j1", start().Add(time.Hour)) })
	s.everywhere(func(tx kernel.Tx) error {
		for _, c := range []struct {
			tenant, jti string
			want        bool
		}{{"acme", "j1", true}, {"acme", "j2", false}, {"other", "j1", false}} {
			got, err := tx.Revoked(c.tenant, c.jti)
			if err != nil || got != c.want {
				return fmt.Errorf("revoked %s %s: %v, %w", c.tenant, c.jti, got, err)
			}
		}
		return nil
	})
}

func question(id string, created time.Time, tenant, exact string) review.Review {
	half := 0.5
	return review.Review{ID: id, Crossing: Crossing(1), State: review.Pending, Created: created, Expires: created.Add(review.Lifetime),
		Binding:   review.Binding{Tenant: tenant, Agent: "coder", Boundary: "exec/bash", Exact: exact, Policy: "p1"},
		Principal: "ann", Correlation: "c", Risk: holdfast.High, Why: "why", Confidence: &half, Preview: "{}", PreviewHash: "h", Nonce: "n"}
}

func testReviews(t *testing.T, open Open) {
	s := begin(t, open)
	put := func(r review.Review, was review.State) error {
		var err error
		s.update(func(tx kernel.Tx) error { err = tx.PutReview(r, was); return nil })
		return err
	}
	r1 := question("r1", start(), "acme", "x1")
	r2 := question("r2", start().Add(time.Second), "acme", "x1")
	r3 := question("r3", start().Add(2*time.Second), "other", "x1")
	for _, r := range []review.Review{r1, r2, r3} {
		if err := put(r, review.None); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "create it twice", put(r1, review.None), kernel.ErrExists)
	want(t, "replace what is not there", put(question("r9", start(), "acme", "x"), review.Pending), kernel.ErrNotFound)
	want(t, "replace with a state it does not have", put(r1, review.Deferred), kernel.ErrConflict)
	refused(t, "a review without a state", put(review.Review{ID: "r8"}, review.None), "state")

	r2.State, r2.Reviewer, r2.Decided, r2.Reason = review.Approved, "bob", start().Add(time.Minute), "fine"
	if err := put(r2, review.Pending); err != nil {
		t.Fatal(err)
	}
	want(t, "decide twice", put(r2, review.Pending), kernel.ErrConflict)

	all := func(tenant string, state review.State, limit int, wantIDs ...string) func(kernel.Tx) error {
		return func(tx kernel.Tx) error {
			rs, err := tx.Reviews(tenant, state, limit)
			ids := []string{}
			for _, r := range rs {
				ids = append(ids, r.ID)
			}
			if err != nil {
				return err
			}
			return differ(fmt.Sprintf("reviews of %q in state %q", tenant, state), ids, wantIDs)
		}
	}
	check := func(tx kernel.Tx) error {
		got, err := tx.Review("r2")
		if err != nil {
			return err
		}
		if err := differ("review", got, r2); err != nil {
			return err
		}
		other := r1.Binding
		other.Policy = "another policy"
		if got, err = tx.ReviewFor(other); err != nil || got.ID != "r2" {
			return fmt.Errorf("the newest review for a binding is %q, %w", got.ID, err)
		}
		other.Exact = "x2"
		if _, err := tx.ReviewFor(other); !errors.Is(err, kernel.ErrNotFound) {
			return fmt.Errorf("review for another payload: %w", err)
		}
		if _, err := tx.Review("r9"); !errors.Is(err, kernel.ErrNotFound) {
			return fmt.Errorf("review r9: %w", err)
		}
		return errors.Join(all("acme", "", 10, "r2", "r1")(tx), all("", "", 2, "r3", "r2")(tx),
			all("", review.Pending, 10, "r3", "r1")(tx), all("acme", review.Approved, 10, "r2")(tx))
	}
	s.everywhere(check)
	// Within one update, what it wrote is there already.
	s.update(func(tx kernel.Tx) error {
		r4 := question("r4", start().Add(3*time.Second), "acme", "x1")
		if err := tx.PutReview(r4, review.None); err != nil {
			return err
		}
		r4.State = review.Rejected
		if err := tx.PutReview(r4, review.Pending); err != nil {
			return err
		}
		got, err := tx.ReviewFor(r4.Binding)
		if err != nil || got.ID != "r4" || got.State != review.Rejected {
			return fmt.Errorf("review for the binding: %+v, %w", got, err)
		}
		return all("acme", "", 2, "r4", "r2")(tx)
	})
	s.everywhere(all("", "", 10, "r4", "r3", "r2", "r1"))
}

func testReplays(t *testing.T, open Open) {
	s := begin(t, open)
	now := time.Now().UTC().Truncate(time.Microsecond)
	rep := func(key string, expires time.Duration) kernel.Replay {
		return kernel.Replay{Key: key, Exact: "exact", Crossing: Crossing(1), Sealed: []byte("sealed " + key), Expires: now.Add(expires)}
	}
	a, b, c := rep("a", time.Hour), rep("b", 2*time.Hour), rep("c", -time.Second)
	s.update(func(tx kernel.Tx) error { return errors.Join(tx.PutReplay(a), tx.PutReplay(b), tx.PutReplay(c)) })
	has := func(r kernel.Replay, there bool) func(kernel.Tx) error {
		return func(tx kernel.Tx) error {
			got, err := tx.Replay(r.Key)
			if !there {
				if !errors.Is(err, kernel.ErrNotFound) {
					return fmt.Errorf("replay %s should be gone: %+v, %w", r.Key, got, err)
				}
				return nil
			}
			if err != nil {
				return err
			}
			return differ("replay", got, r)
		}
	}
	s.everywhere(func(tx kernel.Tx) error {
		return errors.Join(has(a, true)(tx), has(b, true)(tx), has(c, false)(tx), has(rep("d", 0), false)(tx))
	})
	a.Sealed, a.Expires = []byte("newer"), now.Add(90*time.Minute)
	s.update(func(tx kernel.Tx) error { return tx.PutReplay(a) })
	s.everywhere(has(a, true))
	drop := func(at time.Time, wantN int) {
		t.Helper()
		s.update(func(tx kernel.Tx) error {
			n, err := tx.DropReplays(at)
			if err == nil && n != wantN {
				err = fmt.Errorf("dropped %d, want %d", n, wantN)
			}
			return err
		})
	}
	drop(now, 1)
	drop(now, 0)
	s.update(func(tx kernel.Tx) error {
		// Put, replaced and dropped in one update.
		if err := tx.PutReplay(rep("e", time.Minute)); err != nil {
			return err
		}
		n, err := tx.DropReplays(now.Add(100 * time.Minute))
		if err != nil || n != 2 {
			return fmt.Errorf("dropped %d, %w", n, err)
		}
		return errors.Join(has(a, false)(tx), has(rep("e", 0), false)(tx), has(b, true)(tx), tx.PutReplay(rep("f", time.Hour)))
	})
	s.everywhere(func(tx kernel.Tx) error {
		return errors.Join(has(a, false)(tx), has(b, true)(tx), has(rep("e", 0), false)(tx), has(rep("f", time.Hour), true)(tx))
	})
	for _, bad := range []kernel.Replay{{Key: "", Sealed: []byte("x")}, {Key: "k"}} {
		s.update(func(tx kernel.Tx) error {
			if err := tx.PutReplay(bad); err == nil {
				t.Errorf("replay %+v was taken", bad)
			}
			return nil
		})
	}
}
