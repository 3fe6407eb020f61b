package console

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

// How often the passphrase may be wrong: so many times in so long in one
// session, which then waits alone. Over all sessions, each wrong one beyond as
// many doubles the time until the next try, up to maxDelay: whoever has one
// stolen cookie cannot keep a person with a new link out, and whoever has many
// links still guesses slowly. The command line, which needs a terminal of the
// same user, is not kept from anybody.
const (
	maxWrong  = 5
	wrongTime = 15 * time.Minute
	turnTime  = 5 * time.Second
	maxDelay  = time.Minute
)

// opener opens the operator's key, one attempt at a time: each takes 256 MiB
// for a while.
type opener struct {
	turn chan struct{}
	all  tally
}

// tally is when the passphrase was wrong, within wrongTime. What is asked
// before each note bounds it.
type tally struct {
	mu sync.Mutex
	at []time.Time // guarded by mu; the oldest first
}

// errWrong is the one answer to whatever was typed.
func errWrong() error {
	return &holdfast.Error{Kind: holdfast.KindPermission, Why: "that does not open the operator key"}
}

// open tries the passphrase for the session that mine belongs to.
func (o *opener) open(ctx context.Context, mine *tally, pass string, now func() time.Time, open func(holdfast.Secret) (operator.Key, error)) (operator.Key, error) {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return operator.Key{}, &holdfast.Error{Kind: holdfast.KindTimeout, Why: "somebody else is typing the passphrase just now", Hint: "try again"}
	}
	if wait := mine.shut(now()); wait > 0 {
		return operator.Key{}, &holdfast.Error{Kind: holdfast.KindPermission, Why: fmt.Sprintf("the passphrase was wrong %d times", maxWrong),
			Hint: "wait " + story.Short(wait) + ", or take a new link from `holdfast review open`, or decide with `holdfast review`"}
	}
	if wait := o.all.slow(now()); wait > 0 {
		return operator.Key{}, &holdfast.Error{Kind: holdfast.KindPermission, Why: "the passphrase was wrong too often",
			Hint: "wait " + story.Short(wait) + ", or decide with `holdfast review`"}
	}
	k, err := open(holdfast.NewSecret(pass))
	if err == nil {
		mine.forgive()
		o.all.forgive()
		return k, nil
	}
	if holdfast.KindOf(err) == holdfast.KindPermission && !errors.Is(err, errNoKey) {
		mine.note(now())
		o.all.note(now())
		return operator.Key{}, errWrong()
	}
	return operator.Key{}, err
}

// errNoKey marks that there is no key to open; see NoKey.
var errNoKey = errors.New("no operator key")

// NoKey is the error that Open of Config gives where there is no operator key.
func NoKey() error {
	return &holdfast.Error{Kind: holdfast.KindPermission, Why: "there is no operator key", Hint: "make one with `holdfast init` on a terminal", Err: errNoKey}
}

// recent drops what is older than wrongTime; t.mu is held.
func (t *tally) recent(now time.Time) []time.Time {
	kept := t.at[:0]
	for _, at := range t.at {
		if fresh(at, now, wrongTime) {
			kept = append(kept, at)
		}
	}
	t.at = kept
	return kept
}

// shut is how long no further try is made after maxWrong.
func (t *tally) shut(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.recent(now)
	if len(at) < maxWrong {
		return 0
	}
	return wrongTime - now.Sub(at[0])
}

// slow is how long the next try has to wait for the last.
func (t *tally) slow(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.recent(now)
	if len(at) <= maxWrong {
		return 0
	}
	delay := min(time.Second<<min(len(at)-maxWrong-1, 6), maxDelay)
	return delay - now.Sub(at[len(at)-1])
}

func (t *tally) note(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = append(t.at, at)
}

func (t *tally) forgive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = nil
}

// unlock opens the operator's key for this session. The passphrase crosses the
// loopback interface in the clear, and no other.
func (s *Console) unlock(v *visit) {
	if !fromLoopback(v.r) {
		v.back("the passphrase is taken from this machine only: decide with `holdfast review`", true)
		return
	}
	k, err := s.opener.open(v.r.Context(), &v.s.wrong, v.r.PostForm.Get("passphrase"), s.c.Now, s.c.Open)
	if err != nil {
		// A key that is open stays so: the looking cookie alone lets anybody
		// who has it come here, and is no ground to shut its owner out.
		v.goTo("", v.r.PostForm.Get("to"), letter(s.asError(err)), true)
		return
	}
	v.now = s.c.Now()
	area, cookie := v.s.unlock(k, v.now)
	setCookie(v.w, s.keyCookie(), cookie, "/k/"+area+"/")
	s.c.Log.Info("deciding was unlocked on the pages", "key", k.Public().ID())
	v.goTo("/k/"+area, v.r.PostForm.Get("to"), "", false)
}
