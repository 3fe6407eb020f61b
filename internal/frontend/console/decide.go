package console

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// later are the spans that a review can be put off for, in hours.
func later() []int { return []int{1, 4, 12} }

// decide carries out one answer. It is bound to what the page showed: the
// hashes, policy and nonce come from the form, and the kernel refuses them
// where the review holds anything else.
func (s *Console) decide(v *visit) {
	r, err := v.findReview(v.r.PathValue("id"))
	if err != nil {
		v.back(letter(s.asError(err)), true)
		return
	}
	st, err := v.statement(&r)
	if err != nil {
		v.back(letter(s.asError(err)), true)
		return
	}
	signed, err := v.s.sign(st, s.c.Runtime, v.now)
	if err == nil {
		r, err = s.c.Kernel.Decide(signed)
	}
	if err != nil {
		v.back("not decided: "+letter(s.asError(err)), true)
		return
	}
	v.back(v.decidedWords(&r), false)
}

func (v *visit) decidedWords(r *review.Review) string {
	if r.About != "" && r.State != review.Deferred {
		var a holdfast.Agent
		err := v.c.View(v.r.Context(), func(tx kernel.Tx) (err error) { a, err = tx.Agent(r.Tenant, r.Agent); return err })
		if err != nil {
			return "recorded: " + r.Fate(nil)
		}
		return "recorded: " + story.Answered(r, &a)
	}
	switch r.State {
	case review.Approved:
		return "approved: the agent may do exactly this once"
	case review.Rejected:
		return "rejected: the agent is told so"
	case review.Changes:
		return "changes requested: the agent is told what should change"
	case review.Deferred:
		return "put off: it still ends when it would have"
	}
	return string(r.State)
}

// statement is what the person says, as the form has it.
func (v *visit) statement(r *review.Review) (operator.Statement, error) {
	f, act := v.r.PostForm, v.r.PathValue("act")
	st := operator.Statement{Act: act, Subject: r.ID, Tenant: r.Tenant, Exact: f.Get("exact"), PreviewHash: f.Get("preview"),
		Policy: f.Get("policy"), Nonce: f.Get("nonce"), Reason: oneLine(f.Get("reason"))}
	usage := func(why string) (operator.Statement, error) {
		return st, &holdfast.Error{Kind: holdfast.KindUsage, Why: "not decided: " + why}
	}
	switch act {
	case operator.Approve:
		if r.InPart() && f.Get("in_part") != "yes" {
			if !r.Cut {
				return usage("something in it is masked, and you did not say that you have not seen that")
			}
			return usage("only the beginning of it can be shown, and you did not say that you saw only a part")
		}
		if r.InPart() {
			st.Value = operator.InPart
		}
	case operator.Reject, operator.Changes:
		if st.Reason == "" {
			return usage("say why: the agent is told")
		}
	case operator.Defer:
		hours, err := strconv.Atoi(f.Get("hours"))
		if err != nil || hours < 1 || hours > int(review.Lifetime/time.Hour) {
			return usage("say for how many hours")
		}
		st.Until = v.now.Add(time.Duration(hours) * time.Hour).UTC()
	default:
		return usage("there is no such answer")
	}
	return st, nil
}

// oneLine is a text field as a statement takes it: a browser sends the line
// breaks that a person typed.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// findReview reads a review, with the entry of its crossing as far as it is
// known.
func (v *visit) findReview(id string) (r review.Review, err error) {
	if !reviewID().MatchString(id) {
		return r, noReview()
	}
	err = v.c.View(v.r.Context(), func(tx kernel.Tx) error { r, err = tx.Review(id); return err })
	if errors.Is(err, kernel.ErrNotFound) {
		err = noReview()
	}
	return r, err
}

func noReview() error {
	return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "there is no such review"}
}

// days are how long exactly these arguments can be remembered.
func days() []int { return []int{1, 7, 30, 90} }

// rememberable is the rule that may be made of an approval: the same caller,
// the same tool, exactly these arguments. Others are made on the command line.
func rememberable(r *review.Review, now time.Time) (words []string, text string) {
	if r.About != "" || (r.State != review.Approved && r.State != review.Used) || !now.Before(r.Decided.Add(review.Lifetime)) || r.Cut {
		return nil, ""
	}
	rule, err := review.RuleOf(r, review.Choice{Exact: true})
	if err != nil {
		return nil, ""
	}
	if text, err = rule.Encode(); err != nil {
		return nil, ""
	}
	return rule.Words(), text
}

// remember makes the rule that the page showed.
func (s *Console) remember(v *visit) {
	f := v.r.PostForm
	r, err := v.findReview(v.r.PathValue("id"))
	if err != nil {
		v.back(letter(s.asError(err)), true)
		return
	}
	_, text := rememberable(&r, v.now)
	n, err := strconv.Atoi(f.Get("days"))
	switch {
	case text == "" || f.Get("rule") != text:
		v.back("not remembered: the rule is another than was shown, or can no longer be made", true)
		return
	case err != nil || n < 1 || n > days()[len(days())-1]:
		v.back("not remembered: say for how many days", true)
		return
	}
	signed, err := v.s.sign(operator.Statement{Act: operator.Remember, Subject: r.ID, Tenant: r.Tenant, Exact: f.Get("exact"), PreviewHash: f.Get("preview"),
		Policy: f.Get("policy"), Nonce: f.Get("nonce"), Value: text, Until: v.now.Add(time.Duration(n) * 24 * time.Hour).UTC()}, s.c.Runtime, v.now)
	var made review.Remembered
	if err == nil {
		made, err = s.c.Kernel.Remember(signed)
	}
	if err != nil {
		v.back("not remembered: "+letter(s.asError(err)), true)
		return
	}
	v.back("remembered as "+made.ID+" until "+made.Expires.UTC().Format("2006-01-02 15:04 UTC")+": it is not asked about again; `holdfast review forget "+made.ID+"` ends it", false)
}

// haltView is the page that asks before everything is halted, or lets a person
// lift the halt.
type haltView struct{ When string }

func (s *Console) haltPage(v *visit) {
	p := v.page("Halt", nil)
	p.Body = haltView{stamp(p.State.HaltWhen)}
	if p.State.Halted {
		p.Title = "Halted"
	}
	s.show(v.w, v.r, http.StatusOK, "halt", p)
}

// halt stops everything. It needs no passphrase (D11).
func (s *Console) halt(v *visit) {
	why := excerpt.Of(oneLine(v.r.PostForm.Get("reason")), 256)
	if why == "" {
		why = "halted on the pages"
	}
	n, err := s.c.Kernel.Halt(s.c.Who, why)
	if err != nil {
		v.goTo(v.at, "/halt", letter(s.asError(err)), true)
		return
	}
	v.goTo(v.at, "/halt", "halted: "+story.Count(n, "crossing was", "crossings were")+" cut", false)
}

// resume lifts the halt that the page showed; one that came since is another.
func (s *Console) resume(v *visit) {
	st := s.c.State(v.r.Context(), false)
	if !st.Halted {
		v.goTo(v.at, "/halt", "it is not halted", true)
		return
	}
	if v.r.PostForm.Get("when") != stamp(st.HaltWhen) {
		v.goTo(v.at, "/halt", "not resumed: everything was halted anew since you looked", true)
		return
	}
	signed, err := v.s.sign(operator.Statement{Act: operator.Resume, Reason: oneLine(v.r.PostForm.Get("reason"))}, s.c.Runtime, s.c.Now())
	if err == nil {
		err = s.c.Kernel.Resume(signed)
	}
	if err != nil {
		v.goTo(v.at, "/halt", "not resumed: "+letter(s.asError(err)), true)
		return
	}
	v.goTo(v.at, "/", "resumed", false)
}
