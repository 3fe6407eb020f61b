package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// PolicyJudge is a judge as a policy has it (spec 001, layer 2; D37).
type PolicyJudge struct {
	Judge Judge
	// Version is 64 hex digits over all that the judge is made of: a score is
	// kept for one version alone.
	Version string
	// Pure says that it needs no I/O: it is asked in place, and its scores are
	// not kept. Any other is a child crossing of the boundary judge/NAME, which
	// the policy lists.
	Pure bool
}

// Made is a Judge of something that can change while its policy does not, such as
// the file of a program.
type Made interface {
	// Made is 64 hex digits over what it is made of now.
	Made() (string, error)
}

// version is the version for which a score is kept.
func (p *PolicyJudge) version() (string, error) {
	m, ok := p.Judge.(Made)
	if !ok {
		return p.Version, nil
	}
	now, err := m.Made()
	return p.Version + " " + now, err
}

// JudgeRequest is what a judge sees. Its JSON form is what one that needs I/O is
// given: all of it is data that an agent may have chosen.
type JudgeRequest struct {
	Boundary  string        `json:"boundary"`
	Operation string        `json:"operation,omitempty"`
	Risk      holdfast.Risk `json:"risk"`
	Tenant    string        `json:"tenant_id"`
	Agent     string        `json:"agent"`
	Kind      string        `json:"kind,omitempty"`
	// Payload is the payload and Beside what stands beside it, redacted.
	Payload json.RawMessage `json:"payload"`
	Beside  json.RawMessage `json:"beside,omitempty"`
	// Facts is what rules see, for a judge that needs no I/O.
	Facts constitution.Facts `json:"-"`
}

// judgeBoundary begins the boundaries that only the kernel crosses.
const judgeBoundary = "judge/"

// MaxJudged is the largest request that is put to a judge which needs I/O, in
// bytes of its JSON form.
const MaxJudged = 256 << 10

// errUnasked says that a judge would have to be asked, and nothing may be done.
var errUnasked = errors.New("the judge was not asked")

// knownJudge refuses a contract that names a judge which there is not.
func knownJudge(p *Policy, c *holdfast.Contract) error {
	if c.Judge == "" {
		return nil
	}
	if j, ok := p.Judges[c.Judge]; ok && j.Judge != nil && j.Version != "" && !strings.HasPrefix(c.Boundary, judgeBoundary) {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindConfidence, Gate: holdfast.K7, Rule: c.Source, Why: fmt.Sprintf("there is no judge %q for it", excerpt.Of(c.Judge, 64))}
}

// consult fetches the judge's scores, which are a fact of K7 (D3). What a person
// has answered stands without a judge, and what is refused is put to none.
func (c *crossing) consult(ctx context.Context) {
	j := c.j
	if j.contract == nil || j.contract.Judge == "" || j.judging || j.replay != nil || j.doc == nil || j.risk() == holdfast.Prohibited || j.answered() {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			c.k.log.Error("a judge panicked", "judge", j.contract.Judge, "panic", fmt.Sprint(r))
			j.scores, j.judgeErr = nil, errors.New("it failed")
		}
	}()
	s, err := c.score(ctx, j.pol.Judges[j.contract.Judge])
	if err == nil {
		err = s.Check() // whatever the judge is, or the store has kept
	}
	j.unasked = errors.Is(err, errUnasked)
	switch {
	case j.unasked:
	case err != nil:
		j.judgeErr = err
	default:
		j.scores = &s
	}
}

// answered says whether a person has answered exactly this request.
func (j *judgement) answered() bool {
	if j.review == nil || j.bookErr != nil {
		return false
	}
	a := j.review.Answer(j.now, j.governs())
	return a == review.Approved || a == review.Rejected
}

func (c *crossing) score(ctx context.Context, by PolicyJudge) (review.Scores, error) {
	j := c.j
	if by.Judge == nil {
		return review.Scores{}, errors.New("there is no such judge")
	}
	r := JudgeRequest{Boundary: j.req.Boundary, Operation: j.contract.Operation, Risk: j.risk(),
		Tenant: j.who.Tenant, Agent: j.who.Agent, Kind: j.who.Kind}
	if by.Pure {
		r.Facts = j.facts()
		ctx, cancel := limit(ctx, gateTime)
		defer cancel()
		return by.Judge.Score(ctx, r)
	}
	version, err := by.version()
	if err != nil {
		return review.Scores{}, err
	}
	key := r.key(j.exact(), version)
	if s, ok := c.k.keptScore(ctx, key, j.now); ok {
		return s, nil
	}
	if c.looks {
		return review.Scores{}, errUnasked
	}
	if err := c.k.redactJudged(j, &r); err != nil {
		return review.Scores{}, err
	}
	s, err := c.askOutside(ctx, by.Judge, r)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return review.Scores{}, err
	}
	if now, err := by.version(); err != nil || now != version {
		return s, nil // nobody knows which of the two said so
	}
	if err := c.k.keepScore(ctx, key, s, j.now); err != nil {
		c.k.log.Warn("a judge's scores could not be kept", "crossing", j.id, "err", err) // it is asked again
	}
	return s, nil
}

// redactJudged puts the redacted payload into what a judge is given.
func (k *Kernel) redactJudged(j *judgement, r *JudgeRequest) error {
	if len(j.req.Payload)+len(j.req.Beside) > MaxJudged {
		return fmt.Errorf("the request has more than %d bytes, which is put to no judge", MaxJudged)
	}
	res, err := k.redact.JSON(j.doc.Canonical())
	if err != nil {
		return err
	}
	r.Payload = res.Out
	if j.beside != nil {
		if res, err = k.redact.JSON(j.beside.Canonical()); err != nil {
			return err
		}
		r.Beside = res.Out
	}
	return nil
}

// askOutside is the child crossing in which a judge does its I/O: on the same
// token and in the same flow, one level deep, before the request that it judges
// takes anything (D37).
func (c *crossing) askOutside(ctx context.Context, by Judge, r JudgeRequest) (review.Scores, error) {
	j := c.j
	body, err := json.Marshal(r)
	if err != nil {
		return review.Scores{}, err
	}
	in := inside{id: j.id, correlation: j.correlation, traceparent: j.traceparent, child: true, tasks: c.tasks}
	var s review.Scores
	req := holdfast.Request{Boundary: judgeBoundary + j.contract.Judge, Payload: body, Token: j.req.Token}
	_, err = c.k.crossBy(within(ctx, in), req, func(ctx context.Context) (holdfast.Output, error) {
		var err error
		if s, err = by.Score(ctx, r); err == nil {
			err = s.Check()
		}
		if err != nil {
			return holdfast.Output{}, err
		}
		out, err := json.Marshal(s)
		return holdfast.Output{Body: out}, err
	}, byJudge)
	if err != nil {
		return review.Scores{}, err
	}
	return s, nil
}

// judgeOpinion is what the scores mean to K7: why a person is asked or not, and
// whether one must be; or the denial where there are none (D37).
func (j *judgement) judgeOpinion() (why string, unsafe bool, no *holdfast.Opinion) {
	c := j.contract
	switch {
	case c.Judge == "":
		return "", false, nil
	case j.answered():
		return "the judge " + c.Judge + " asks a person", true, nil
	case j.unasked:
		return "the judge " + c.Judge + " is asked when the request is made", true, nil
	case j.judgeErr != nil || j.scores == nil:
		op := deny(holdfast.K7, holdfast.KindConfidence, "the judge "+c.Judge+" gave no scores", "the request is refused until the judge can be used; the log has the cause")
		op.State, op.Rule = "FAULTED", c.Source
		if j.judgeErr != nil {
			op.Why += ": " + j.k.quote(letterOf(j.judgeErr), 256)
			j.k.log.Error("a judge gave no scores", "judge", c.Judge, "boundary", c.Boundary, "err", j.k.quote(causes(j.judgeErr), 1024))
		}
		return "", false, &op
	}
	said := "the judge " + c.Judge + " gives " + j.scores.String()
	if not := j.scores.Unsafe(); not != "" {
		return said + ": " + not, true, nil
	}
	return said, false, nil
}

// causes is an error with what lies beneath it, for the log: a letter's own text
// is without its cause.
func causes(err error) string {
	text := err.Error()
	for inner := errors.Unwrap(err); inner != nil; err, inner = inner, errors.Unwrap(inner) {
		if _, letter := err.(*holdfast.Error); letter {
			text += ": " + inner.Error()
		}
	}
	return text
}

// letterOf is what an agent may read of an error.
func letterOf(err error) string {
	if e, ok := asError(err); ok {
		return e.Why
	}
	return err.Error()
}

// How long scores are kept, and how many in each of 256 places of the store: the
// oldest goes.
const (
	scoreLife = 24 * time.Hour
	scoreRoom = 16
)

// scoreKept is what the store has of one judgement.
type scoreKept struct {
	Key    string        `json:"key"`
	Scores review.Scores `json:"scores"`
	At     time.Time     `json:"at"`
}

// key is what scores are kept for: the exact request of this agent, of this
// risk, and this version of the judge.
func (r *JudgeRequest) key(exact, version string) string {
	b, err := json.Marshal([]string{r.Tenant, r.Agent, r.Kind, r.Boundary, r.Operation, r.Risk.String(), exact, version})
	if err != nil || exact == "" {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func scorePlace(key string) string { return key[:2] }

// keptScore finds scores that are not too old. What cannot be read is not there.
func (k *Kernel) keptScore(ctx context.Context, key string, now time.Time) (review.Scores, bool) {
	var shelf scoreShelf
	if key == "" || k.store.View(ctx, func(tx Tx) (err error) {
		shelf, _, err = judgeScores.Find(tx,
			scorePlace(key))
		return err
	}) != nil {
		return review.Scores{}, false
	}
	for _, s := range shelf.Kept {
		if s.Key == key && s.fresh(now) {
			return s.Scores, true
		}
	}
	return review.Scores{}, false
}

// fresh says whether scores count still; those of a clock that went back do not.
func (s *scoreKept) fresh(now time.Time) bool {
	return !now.Before(s.At) && now.Before(s.At.Add(scoreLife))
}

func (k *Kernel) keepScore(ctx context.Context, key string, s review.Scores, now time.Time) error {
	if key == "" {
		return nil
	}
	return k.store.Update(ctx, func(tx Tx) error {
		shelf, version, err := judgeScores.Find(tx, scorePlace(key))
		if damaged := (*table.DamagedError)(nil); errors.As(err, &damaged) {
			shelf = scoreShelf{} // written again
		} else if err != nil {
			return err
		}
		left := shelf.Kept[:0]
		for _, o := range shelf.Kept {
			if o.Key != key && o.fresh(now) {
				left = append(left, o)
			}
		}
		left = append(left, scoreKept{Key: key, Scores: s, At: now})
		left = left[max(0, len(left)-scoreRoom):]
		return judgeScores.Put(tx, scorePlace(key), scoreShelf{left}, version)
	})
}
