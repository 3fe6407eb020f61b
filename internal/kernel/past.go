package kernel

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
	"github.com/holdfast-dev/holdfast/ledger"
)

// past is what was done, for rules that ask it (constitution.Past): kept in
// memory, filled from the ledger by ReadHistory, and by each crossing as it
// begins. Groups and values are known to it under the marks' key alone.
type past struct {
	kept *history.History
	key  []byte
	wake chan struct{} // something is to be read
	turn sync.Mutex    // one reading at a time

	mu      sync.Mutex
	unready []*constitution.Past // guarded by mu; what is to be read
	mark    uint64               // guarded by mu
	round   int                  // guarded by mu; of the functions in force
	again   bool                 // guarded by mu; the clock was set back behind what was read
	read    int64                // guarded by mu; leaves, of so many
	of      int64                // guarded by mu
	started time.Time            // guarded by mu; when this reading began
	failed  string               // guarded by mu; why the last reading ended
}

// markKeySize is how long the marks' key is, in bytes.
const markKeySize = 32

func (p *past) open(key []byte) error {
	if len(key) != 0 && len(key) != markKeySize {
		return errors.New("the key of past marks is 32 bytes")
	}
	if p.key = key; len(key) == 0 {
		p.key = make([]byte, markKeySize)
		if _, err := rand.Read(p.key); err != nil {
			return err
		}
	}
	p.kept, p.wake = history.New(history.MaxEntries), make(chan struct{}, 1)
	return nil
}

// usePast makes the past functions of the policy in force those that are kept.
// What was kept for others is forgotten, what is new is to be read. The policy is
// read under the lock: who swaps it comes after, and of two that come at once
// neither puts back what the other has replaced.
func (k *Kernel) usePast() {
	p := &k.past
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unready, p.mark = p.kept.Use(k.now(), k.policy.Load().Rules.Pasts())
	p.round++
	p.read, p.of, p.failed, p.again = 0, 0, "", false
	p.stir()
}

func (p *past) stir() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// sealed is what stands for a text under the marks' key; nothing for nothing.
func (p *past) sealed(what, text string) string {
	if text == "" {
		return ""
	}
	m := hmac.New(sha256.New, p.key)
	m.Write([]byte(what + "\x00" + text))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// name is what a mark calls a past function. It is made with the key, so that
// marks of another key are nobody's.
func (p *past) name(f *constitution.Past) string { return p.sealed("past", f.ID)[:12] }

// known is a sight as the history keeps it.
func (p *past) known(s constitution.Seen) constitution.Seen {
	s.Group, s.Value = p.sealed("group", s.Group), p.sealed("value", s.Value)
	return s
}

// marks are what a begin keeps of the sights of it.
func (p *past) marks(sights []constitution.Sight) []ledger.Mark {
	var out []ledger.Mark
	for _, s := range sights[:min(len(sights), ledger.MaxMarks)] {
		m := ledger.Mark{Past: p.name(s.Past), Group: ledger.MarkNone}
		switch {
		case s.Err != nil:
			m.Group = ledger.MarkUnread
		case s.Seen.Matches:
			k := p.known(s.Seen)
			m.Group, m.Value, m.Amount = k.Group, k.Value, k.Amount
		}
		out = append(out, m)
	}
	return out
}

// marked is what a mark says.
func marked(m *ledger.Mark) (constitution.Seen, error) {
	switch m.Group {
	case ledger.MarkNone:
		return constitution.Seen{}, nil
	case ledger.MarkUnread:
		return constitution.Seen{}, errors.New("it could not be read when it began")
	}
	return constitution.Seen{Matches: true, Group: m.Group, Value: m.Value, Amount: m.Amount}, nil
}

// occasion names one crossing to the history. It is the same as it is judged and
// in its begin and entry, which the id is not: what a person approved begins
// under the id of the question.
func occasion(at time.Time, agent, session, exact string) string {
	return strconv.FormatInt(at.UnixMicro(), 36) + "\x00" + agent + "\x00" + session + "\x00" + exact
}

// asker asks the history by sealed groups.
type asker struct {
	p *past
	t *history.Ticket
}

// Ask implements constitution.History.
func (a asker) Ask(p *constitution.Past, group string, now time.Time) (constitution.Answer, error) {
	out, err := a.t.Ask(p, a.p.sealed("group", group), now)
	if errors.Is(err, history.ErrClock) {
		a.p.mu.Lock()
		a.p.again = true
		a.p.mu.Unlock()
		a.p.stir()
	}
	return out, err
}

// ask lets the request ask the past: from now on those that are judged after it
// count it, until it is dropped or confirmed. What is only looked at is counted
// by nobody.
func (j *judgement) ask(ctx context.Context) {
	p := &j.k.past
	j.sights = j.pol.Rules.See(ctx, j.facts())
	if j.looks {
		j.asks = asker{p, p.kept.Look(j.tenant())}
		return
	}
	known := make([]constitution.Sight, len(j.sights))
	for i, s := range j.sights {
		known[i] = constitution.Sight{Past: s.Past, Seen: p.known(s.Seen), Err: s.Err}
	}
	j.ticket = p.kept.Add(j.now, j.tenant(), occasion(j.at, j.who.Agent, j.who.Session, j.exact()), known)
	j.asks = asker{p, j.ticket}
}

// PastStatus is how it stands with one past function of the rules in force.
type PastStatus struct {
	Rule  string `json:"rule"`
	Where string `json:"where"`
	Text  string `json:"text"`
	// Ready says that the ledger was read for it; until then it has no answer.
	Ready bool `json:"ready"`
	// Entries is how many crossings it counts or may, over all tenants.
	Entries int64 `json:"entries"`
	// Unreadable has the tenants of which something in the window cannot be
	// read, so that it has no answer, and until when.
	Unreadable map[string]time.Time `json:"unreadable_until,omitempty"`
}

// HistoryStatus is how it stands with what rules ask the past.
type HistoryStatus struct {
	// Ready says that every past function is.
	Ready bool `json:"ready"`
	// Read is how many leaves were read, Of how many there are, while it is
	// not ready.
	Read int64 `json:"leaves_read,omitempty"`
	Of   int64 `json:"leaves,omitempty"`
	// Until is about when it will be, as fast as it went so far; zero while
	// nobody can say.
	Until time.Time `json:"ready_about,omitzero"`
	// Failed is why they could not be read; it is tried again.
	Failed string       `json:"failed,omitempty"`
	Past   []PastStatus `json:"past,omitempty"`
}

// History tells how it stands with what rules ask the past.
func (k *Kernel) History() HistoryStatus {
	p := &k.past
	p.mu.Lock()
	out := HistoryStatus{Ready: true, Read: p.read, Of: p.of, Failed: p.failed, Until: p.about()}
	p.mu.Unlock()
	kept := map[string]history.Status{}
	for _, s := range p.kept.Status(k.now()) {
		kept[s.Past.ID] = s
	}
	for _, f := range k.policy.Load().Rules.Pasts() {
		s := kept[f.ID]
		out.Past = append(out.Past, PastStatus{Rule: f.Rule, Where: f.Where, Text: f.Text, Ready: s.Ready, Entries: s.Entries, Unreadable: s.Unreadable})
		out.Ready = out.Ready && s.Ready
	}
	if out.Ready {
		out.Read, out.Of, out.Until = 0, 0, time.Time{}
	}
	return out
}

// about is when the reading will have ended, if it goes on as it did. The caller
// holds the lock.
func (p *past) about() time.Time {
	if p.read == 0 || p.failed != "" {
		return time.Time{}
	}
	left := float64(time.Since(p.started)) * float64(p.of-p.read) / float64(p.read)
	return time.Now().Add(time.Duration(left)).UTC().Truncate(time.Second)
}
