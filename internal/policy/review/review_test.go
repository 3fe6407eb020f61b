package review

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// The whole table of what a review answers, at each side of its expiry and
// under the same and another policy (D11).
func TestK7_answers(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	before, at, after := now.Add(-time.Microsecond), now, now.Add(time.Microsecond)
	cases := []struct {
		name    string
		state   State
		expires time.Time
		policy  string
		want    State
	}{
		{"waits", Pending, after, "p", Pending},
		{"K7_INV4_ends_at_the_instant", Pending, at, "p", Expired},
		{"K7_INV4_ended", Pending, before, "p", Expired},
		{"deferred_waits", Deferred, after, "p", Pending},
		{"K7_INV4_deferred_ends_as_well", Deferred, at, "p", Expired},
		{"K7_AC3_approved", Approved, after, "p", Approved},
		{"approval_ends_at_the_instant", Approved, at, "p", Expired},
		{"approval_of_another_policy", Approved, after, "q", Voided},
		{"old_approval_of_another_policy", Approved, at, "q", Expired},
		{"asked_under_another_policy", Pending, after, "q", Voided},
		{"deferred_under_another_policy", Deferred, after, "q", Voided},
		{"K7_AC4_rejected", Rejected, after, "p", Rejected},
		{"a_rejection_outlives_a_policy", Rejected, after, "q", Rejected},
		{"a_rejection_ends", Rejected, at, "p", None},
		{"changes_are_a_rejection", Changes, after, "p", Rejected},
		{"changes_end", Changes, at, "p", None},
		{"K7_AC5_expired_is_told", Expired, before, "p", Expired},
		{"used_is_nothing", Used, after, "p", None},
		{"voided_is_nothing", Voided, after, "p", None},
		{"zero_is_nothing", None, after, "p", None},
		{"an_unknown_word_is_nothing", "granted", after, "p", None},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := Review{State: c.state, Expires: c.expires, Binding: Binding{Policy: "p"}}
			if got := r.Answer(now, c.policy); got != c.want {
				t.Fatalf("%q, want %q", got, c.want)
			}
		})
	}
}

// Only a person's approval, in time and under the same policy, answers yes.
func TestK7_INV1_only_one_state_approves(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, s := range []State{None, Pending, Deferred, Approved, Rejected, Changes, Expired, Voided, Used, "APPROVED", "approved "} {
		for _, policy := range []string{"p", "q", ""} {
			for _, d := range []time.Duration{-time.Hour, 0, time.Hour} {
				r := Review{State: s, Expires: now.Add(d), Binding: Binding{Policy: "p"}}
				got := r.Answer(now, policy) == Approved
				if want := s == Approved && policy == "p" && d > 0; got != want {
					t.Errorf("%q under %q, %v left: approved %v", s, policy, d, got)
				}
				if w := r.Waiting(now); w != ((s == Pending || s == Deferred) && d > 0) {
					t.Errorf("%q, %v left: waiting %v", s, d, w)
				}
			}
		}
	}
}

// TestUnusualGoesByTheCause: a review of high risk alone says nothing unusual, in records
// before 2026-11-27 by its sentence.
func TestUnusualGoesByTheCause(t *testing.T) {
	for _, c := range []struct {
		r    Review
		want string
	}{
		{Review{Why: AlwaysAsked}, ""},
		{Review{Why: "reworded", Cause: CauseRisk}, ""},
		{Review{Why: AlwaysAsked + "; it changed"}, AlwaysAsked + "; it changed"},
		{Review{Why: "risk: x", Cause: "loop", About: AboutAnomaly}, "risk: x"},
		{Review{Why: "the confidence is low"}, "the confidence is low"},
	} {
		if got := c.r.Unusual(); got != c.want {
			t.Errorf("%+v is unusual for %q, want %q", c.r, got, c.want)
		}
	}
}

// TestReadSentence: whole sentences, and beginnings that end in a colon.
func TestReadSentence(t *testing.T) {
	codes := map[string]string{"it is paused": "p", "loop: ": "loop"}
	for sentence, want := range map[string]string{
		"it is paused":       "p",
		"it is paused: more": "",
		"loop: 5 times":      "loop",
		"a loop: 5 times":    "",
		"loop":               "",
		"":                   "",
	} {
		if got := ReadSentence(sentence, codes); got != want {
			t.Errorf("%q is %q, want %q", sentence, got, want)
		}
	}
}

func TestCheckAnswerRefusesWhatWasNotShown(t *testing.T) {
	r := Review{ID: "rv_1", Binding: Binding{Tenant: holdfast.Local, Agent: "a", Exact: "e", Policy: "p"},
		Principal: "alice", PreviewHash: "h", Nonce: "n", State: Pending, Cut: true}
	good := operator.Statement{Act: operator.Approve, Subject: r.ID, Exact: "e", PreviewHash: "h", Policy: "p",
		Nonce:    "n",
		Reviewer: "carol", Value: operator.InPart}
	for name, change := range map[string]func(*operator.Statement){
		"":                      func(*operator.Statement) {},
		NameArguments:           func(s *operator.Statement) { s.Exact = "x" },
		"review/other_preview":  func(s *operator.Statement) { s.PreviewHash = "x" },
		NamePolicy:              func(s *operator.Statement) { s.Policy = "x" },
		"review/other_question": func(s *operator.Statement) { s.Nonce = "x" },
		"review/other_tenant":   func(s *operator.Statement) { s.Tenant = "x" },
		"review/seen_in_part":   func(s *operator.Statement) { s.Value = "" },
		"review/self_approval":  func(s *operator.Statement) { s.Reviewer = "alice" },
	} {
		s := good
		change(&s)
		err := r.CheckAnswer(&s, operator.Public{})
		var e *holdfast.Error
		if name == "" && err != nil || name != "" && (!errors.As(err, &e) || e.Rule != name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefuseLateNamesAnUnusedApproval(t *testing.T) {
	for state, name := range map[State]string{Expired: NameExpired, Pending: NameExpired} {
		r := Review{ID: "rv_1", State: state}
		if op := r.RefuseLate(holdfast.K7); op.Rule != name || op.Verdict != holdfast.Deny {
			t.Errorf("%s: %+v", state, op)
		}
	}
	r := Review{ID: "rv_1", State: Expired, Reviewer: "carol"}
	if op := r.RefuseLate(holdfast.K7); op.Rule != NameUnused {
		t.Errorf("%+v", op)
	}
	r.State = Changes
	if op := r.RefuseRejected(holdfast.K8); op.Rule != NameChanges || op.Gate != holdfast.K8 {
		t.Errorf("%+v", op)
	}
}
