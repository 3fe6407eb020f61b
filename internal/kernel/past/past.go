// Package past keeps what was done, for rules that ask about it (constitution.Past): in memory,
// filled from the ledger by Read, and by each crossing as it begins. It knows groups and values
// only under the key of the marks.
package past

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Source is what a Keeper reads. Its fields are required.
type Source struct {
	// View runs fn on a consistent snapshot of the ledger.
	View func(ctx context.Context, fn func(Reader) error) error
	// Functions returns the past functions of the active rules.
	Functions func() []*constitution.Past
	// Operation returns the operation of the contract that governs a boundary.
	Operation func(boundary string) string
	Now       func() time.Time
	Mask      func(string) string // redacts a text
	Log       *slog.Logger
}

// Reader reads the ledger.
type Reader interface {
	Heads() ([]ledger.Head, error)
	Leaf(tenant string, seq int64) (ledger.Stored, error)
	Leaves(tenant string, from, to int64, fn func(ledger.Stored) error) error
}

// Keeper keeps the past. It is safe for concurrent use.
type Keeper struct {
	src  Source
	kept *history.History
	key  []byte
	wake chan struct{} // something is to be read
	turn sync.Mutex    // one reading at a time

	mu      sync.Mutex
	unready []*constitution.Past // guarded by mu; what is to be read
	mark    uint64               // guarded by mu
	round   int                  // guarded by mu; of the active functions
	again   bool                 // guarded by mu; the clock was set back before what was read
	read    int64                // guarded by mu; leaves, of the following number
	of      int64                // guarded by mu
	started time.Time            // guarded by mu; when this reading began
	failed  string               // guarded by mu; why the last reading ended
}

// keySize is the size of the marks' key, in bytes.
const keySize = 32

// New returns a Keeper of the active functions, with the key of its marks: 32 bytes, or nil for
// a new one.
func New(key []byte, src Source) (*Keeper, error) {
	if len(key) != 0 && len(key) != keySize {
		return nil, errors.New("the key of past marks is 32 bytes")
	}
	if len(key) == 0 {
		key = make([]byte, keySize)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
	}
	p := &Keeper{src: src, key: key, kept: history.New(history.MaxEntries), wake: make(chan struct{}, 1)}
	p.UseActive()
	return p, nil
}

// UseActive makes the active past functions those that are kept. What was kept for others is
// forgotten, what is new is to be read. The policy is read under the lock, before which it is
// swapped: of two swaps neither restores what the other has replaced.
func (p *Keeper) UseActive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unready, p.mark = p.kept.Use(p.src.Now(), p.src.Functions())
	p.round++
	p.read, p.of, p.failed, p.again = 0, 0, "", false
	p.stir()
}

// stir wakes Follow.
func (p *Keeper) stir() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Seal returns what stands for a text under the marks' key, "" for "".
func (p *Keeper) Seal(what, text string) string {
	if text == "" {
		return ""
	}
	m := hmac.New(sha256.New, p.key)
	m.Write([]byte(what + "\x00" + text))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// markName returns the name of a past function in marks. It is made with the key, so that
// marks of another key belong to no function.
func (p *Keeper) markName(f *constitution.Past) string { return p.Seal("past", f.ID)[:12] }

// sealSeen returns a sight as the history keeps it.
func (p *Keeper) sealSeen(s constitution.Seen) constitution.Seen {
	s.Group, s.Value = p.Seal("group", s.Group), p.Seal("value", s.Value)
	return s
}

// Marks returns what a begin keeps of what past functions see of the request.
func (p *Keeper) Marks(sights []constitution.Sight) []ledger.Mark {
	var out []ledger.Mark
	for _, s := range sights[:min(len(sights), ledger.MaxMarks)] {
		m := ledger.Mark{Past: p.markName(s.Past), Group: ledger.MarkNone}
		switch {
		case s.Err != nil:
			m.Group = ledger.MarkUnread
		case s.Seen.Matches:
			k := p.sealSeen(s.Seen)
			m.Group, m.Value, m.Amount = k.Group, k.Value, k.Amount
		}
		out = append(out, m)
	}
	return out
}

// parseMark reads a mark.
func parseMark(m *ledger.Mark) (constitution.Seen, error) {
	switch m.Group {
	case ledger.MarkNone:
		return constitution.Seen{}, nil
	case ledger.MarkUnread:
		return constitution.Seen{}, errors.New("it could not be read when it began")
	}
	return constitution.Seen{Matches: true, Group: m.Group, Value: m.Value, Amount: m.Amount}, nil
}

// Occasion names one crossing to the history. It is the same while it is evaluated and in its
// begin and entry, which the ID is not: what a person approved begins under the ID of the
// question.
type Occasion struct {
	At                    time.Time
	Agent, Session, Exact string
}

func (o Occasion) name() string {
	return strconv.FormatInt(o.At.UnixMicro(), 36) + "\x00" + o.Agent + "\x00" + o.Session + "\x00" + o.Exact
}

// asker asks the history by sealed groups.
type asker struct {
	p *Keeper
	t *history.Ticket
}

// Ask implements constitution.History.
func (a asker) Ask(p *constitution.Past, group string, now time.Time) (constitution.Answer, error) {
	out, err := a.t.Ask(p, a.p.Seal("group", group), now)
	if errors.Is(err, history.ErrClock) {
		a.p.mu.Lock()
		a.p.again = true
		a.p.mu.Unlock()
		a.p.stir()
	}
	return out, err
}

// Look returns the history for a request that is only looked at, and that no other counts.
func (p *Keeper) Look(tenant string) constitution.History { return asker{p, p.kept.Look(tenant)} }

// Add returns the history for a request: those that are evaluated after it count it until its
// ticket is dropped or confirmed.
func (p *Keeper) Add(now time.Time, tenant string, o Occasion, sights []constitution.Sight) (constitution.History,
	*history.Ticket) {
	known := make([]constitution.Sight, len(sights))
	for i, s := range sights {
		known[i] = constitution.Sight{Past: s.Past, Seen: p.sealSeen(s.Seen), Err: s.Err}
	}
	t := p.kept.Add(now, tenant, o.name(), known)
	return asker{p, t}, t
}

// FunctionStatus is the status of one active past function.
type FunctionStatus struct {
	Rule  string `json:"rule"`
	Where string `json:"where"`
	Text  string `json:"text"`
	// Ready says that the ledger was read for it; until then it has no answer.
	Ready bool `json:"ready"`
	// Entries is the number of crossings that it counts or may count, over all tenants.
	Entries int64 `json:"entries"`
	// Unreadable has the tenants of which something in the window is unreadable, so that it
	// has no answer, and until when.
	Unreadable map[string]time.Time `json:"unreadable_until,omitempty"`
}

// Status is the status of what rules ask about the past.
type Status struct {
	// Ready says that every past function is.
	Ready bool `json:"ready"`
	// Read is the number of leaves that were read, Of the number that there are, while it is
	// not ready.
	Read int64 `json:"leaves_read,omitempty"`
	Of   int64 `json:"leaves,omitempty"`
	// Until is about when it will be ready, as fast as it went so far; zero if that is
	// unknown.
	Until time.Time `json:"ready_about,omitzero"`
	// Failed is why they could not be read; it is tried again.
	Failed string           `json:"failed,omitempty"`
	Past   []FunctionStatus `json:"past,omitempty"`
}

// Status returns the status of the active past functions.
func (p *Keeper) Status() Status {
	p.mu.Lock()
	out := Status{Ready: true, Read: p.read, Of: p.of, Failed: p.failed, Until: p.about()}
	p.mu.Unlock()
	kept := map[string]history.Status{}
	for _, s := range p.kept.Status(p.src.Now()) {
		kept[s.Past.ID] = s
	}
	for _, f := range p.src.Functions() {
		s := kept[f.ID]
		out.Past = append(out.Past, FunctionStatus{Rule: f.Rule, Where: f.Where, Text: f.Text, Ready: s.Ready,
			Entries: s.Entries, Unreadable: s.Unreadable})
		out.Ready = out.Ready && s.Ready
	}
	if out.Ready {
		out.Read, out.Of, out.Until = 0, 0, time.Time{}
	}
	return out
}

// about returns when the reading will have ended if it continues as it did. The caller holds
// the lock.
func (p *Keeper) about() time.Time {
	if p.read == 0 || p.failed != "" {
		return time.Time{}
	}
	left := float64(time.Since(p.started)) * float64(p.of-p.read) / float64(p.read)
	return time.Now().Add(time.Duration(left)).UTC().Truncate(time.Second)
}
