package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"golang.org/x/mod/sumdb/tlog"
)

// Bounds of what a Checker remembers, so that it needs constant memory.
const (
	// maxOpen is how many open crossings, begun without an entry, are followed.
	maxOpen = 1 << 16
	// closedWindow is how many closed crossings are remembered to find one
	// that is begun or entered again.
	closedWindow = 1 << 14
)

// Fault is what verification found wrong, and where.
type Fault struct {
	Tenant string // empty where it is no single tenant
	Seq    int64  // -1 where it is no single leaf
	Why    string
}

// Error names tenant and leaf.
func (f *Fault) Error() string {
	if f.Tenant == "" {
		return f.Why
	}
	if f.Seq < 0 {
		return fmt.Sprintf("tenant %q: %s", f.Tenant, f.Why)
	}
	return fmt.Sprintf("tenant %q, leaf %d: %s", f.Tenant, f.Seq, f.Why)
}

// Report is what a verified tree holds.
type Report struct {
	Head
	Begins, Entries, Events int64
	// Open is how many crossings had begun and have no entry yet.
	Open int64
	// Unfollowed is how many crossings began while 65 536 others were open: of
	// their entries it is known that there are no more than there were begins,
	// and not that each names its own.
	Unfollowed int64
	// Erased is how many parts are named by a record and not there.
	Erased int64
	// Checkpoints is how many were compared, Signed the size of the newest;
	// the Size-Signed leaves beyond it nobody has vouched for yet.
	Checkpoints int64
	Signed      int64
}

// Beyond is how many leaves no checkpoint covers.
func (r *Report) Beyond() int64 { return r.Size - r.Signed }

// Checker verifies one tenant's leaves as they come, in constant memory: each
// record's front, tenant and part, the order, that begins and entries pair
// up, that each part that is missing was erased by a recorded erasure, and the
// root at each checkpoint.
//
// A second entry for a begin, an entry whose begin is not there or is
// another's, and a second begin of an open crossing are always found while at
// most 65 536 crossings are open at once; of those that begin beyond that only the number is kept, and the
// report says so. That a crossing
// is begun or entered again after its entry is found within the next 16 384
// closed crossings of the tenant; further apart, only the store's own
// constraint forbids it. A record is read at its front only; Deep reads all
// of it.
type Checker struct {
	// Deep parses every record whole.
	Deep   bool
	tenant string
	text   string // the tenant as records write it
	tree   Tree
	report Report
	open   map[crossing]int64
	closed map[crossing]struct{}
	ring   []crossing // the closed ones, oldest at next
	next   int
	erased erasures
	// loose are the open crossings that are not followed, looseFrom where the
	// first of all of them began.
	loose, looseFrom int64
	follow           *follower // nil where no log of checkpoints is known
}

// crossing is an id in 16 bytes.
type crossing [16]byte

// crossingOf reads a UUID; of any other text it takes half of the SHA-256, so
// that two different ids stay different.
func crossingOf(id []byte) (c crossing) {
	if len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-' {
		var digits [32]byte
		n := copy(digits[:], id[:8])
		n += copy(digits[n:], id[9:13])
		n += copy(digits[n:], id[14:18])
		n += copy(digits[n:], id[19:23])
		copy(digits[n:], id[24:])
		if _, err := hex.Decode(c[:], digits[:]); err == nil && lower(digits[:]) {
			return c
		}
	}
	sum := sha256.Sum256(id)
	return crossing(sum[:])
}

func lower(b []byte) bool {
	for _, c := range b {
		if c >= 'A' && c <= 'F' {
			return false
		}
	}
	return true
}

// NewChecker starts at the first leaf of the tenant's tree.
func NewChecker(tenant string) *Checker {
	t := appendText(nil, tenant)
	return &Checker{tenant: tenant, text: string(t[1 : len(t)-1]), open: make(map[crossing]int64),
		closed: make(map[crossing]struct{})}
}

// Leaf takes the next leaf: its record with the record's hash (LeafHash), and
// its part or nil. It keeps neither. An error is a *Fault.
func (c *Checker) Leaf(seq int64, hash tlog.Hash, record, part []byte) error {
	if seq != c.tree.Size() {
		return c.fault(seq, "out of order: leaf %d comes next", c.tree.Size())
	}
	p, err := PeekRecord(record)
	if err == nil && string(p.Tenant) != c.text {
		err = tenantMismatch(c.tenant)
	}
	if err == nil {
		err = checkPart(p.PartHash, part, true)
	}
	if err == nil && c.Deep {
		err = parseKind(p.Kind, record)
	}
	if err != nil {
		return c.fault(seq, "%s", why(err))
	}
	if err := c.pair(seq, p); err != nil {
		return err
	}
	if err := c.parts(seq, p, record, part); err != nil {
		return c.fault(seq, "%s", why(err))
	}
	c.tree.append(hash)
	return c.grown()
}

// followLog holds the tree, which is empty yet, against the log of checkpoints,
// unless it is that log's own.
func (c *Checker) followLog(log *CheckpointLog) error {
	if log != nil && c.tenant != CheckpointsTenant {
		c.follow = log.follow(c.tenant)
	}
	return c.grown()
}

func (c *Checker) grown() error {
	if c.follow == nil {
		return nil
	}
	if why := c.follow.grown(&c.tree); why != "" {
		return c.fault(c.tree.Size()-1, "%s", why)
	}
	return nil
}

// recordedNow is a fault where the log of checkpoints does not record the tree
// as it is now, which was signed.
func (c *Checker) recordedNow() error {
	if c.follow == nil {
		return nil
	}
	if why := c.follow.met(c.tree.Size()); why != "" {
		return c.fault(-1, "%s: %s was cut back or written anew", why, CheckpointsTenant)
	}
	return nil
}

// parts follows which parts are missing, and which erasures are recorded.
func (c *Checker) parts(seq int64, p Peek, record, part []byte) error {
	switch {
	case p.Kind == KindEvent && maybeErasure(record):
		return c.erased.event(seq, record)
	case p.PartHash == nil:
		return nil
	case part != nil:
		c.erased.present()
		return nil
	}
	c.report.Erased++
	return c.erased.miss(seq)
}

func (c *Checker) pair(seq int64, p Peek) error {
	if p.Kind == KindEvent {
		c.report.Events++
		return nil
	}
	id := crossingOf(p.ID)
	begun, open := c.open[id]
	if _, again := c.closed[id]; again {
		return c.fault(seq, "crossing %q has its entry already", p.ID)
	}
	switch {
	case p.Kind == KindBegin && open:
		return c.fault(seq, "crossing %q began already at leaf %d", p.ID, begun)
	case p.Kind == KindBegin && len(c.open) == maxOpen:
		if c.report.Unfollowed == 0 {
			c.looseFrom = seq
		}
		c.report.Begins++
		c.report.Unfollowed++
		c.loose++
		return nil
	case p.Kind == KindBegin:
		c.report.Begins++
		c.open[id] = seq
		return nil
	case open && p.BeginSeq != begun:
		return c.fault(seq, "crossing %q began at leaf %d, its entry says %d", p.ID, begun, p.BeginSeq)
	case !open && p.BeginSeq >= 0 && c.loose > 0 && p.BeginSeq >= c.looseFrom && p.BeginSeq < seq:
		c.loose--
	case !open && p.BeginSeq >= 0:
		return c.fault(seq, "entry of crossing %q names leaf %d, where it did not begin or has its entry already", p.ID, p.BeginSeq)
	}
	delete(c.open, id)
	c.report.Entries++
	c.remember(id)
	return nil
}

func (c *Checker) remember(id crossing) {
	c.closed[id] = struct{}{}
	if len(c.ring) < closedWindow {
		c.ring = append(c.ring, id)
		return
	}
	delete(c.closed, c.ring[c.next])
	c.ring[c.next] = id
	c.next = (c.next + 1) % closedWindow
}

// Checkpoint compares an opened checkpoint with the tree as it is now: it
// belongs right after the leaf that makes up its size.
func (c *Checker) Checkpoint(cp SignedCheckpoint) error {
	switch {
	case cp.Tenant != c.tenant:
		return c.fault(-1, "checkpoint of tenant %q", cp.Tenant)
	case cp.Size != c.tree.Size():
		return c.fault(-1, "checkpoint of %d leaves stands after leaf %d", cp.Size, c.tree.Size()-1)
	case c.report.Checkpoints > 0 && cp.Size <= c.report.Signed:
		return c.fault(-1, "a second checkpoint of %d leaves", cp.Size)
	case cp.Root != c.tree.Root():
		return c.fault(c.tree.Size()-1, "the tree up to here is not the one that was signed as %d leaves at %s: a leaf up to here was changed",
			cp.Size, appendTime(nil, cp.At))
	}
	c.report.Checkpoints++
	c.report.Signed = cp.Size
	return c.recordedNow()
}

// Size is how many leaves were taken.
func (c *Checker) Size() int64 { return c.tree.Size() }

// Report ends a tree: the head must be what was read.
func (c *Checker) Report(h Head) (Report, error) {
	switch {
	case h.Tenant != c.tenant:
		return Report{}, c.fault(-1, "head of tenant %q", h.Tenant)
	case h.Size != c.tree.Size():
		return Report{}, c.fault(-1, "%d leaves where the head says %d", c.tree.Size(), h.Size)
	case h.Root != c.tree.Root():
		return Report{}, c.fault(c.tree.Size()-1, "the root over %d leaves is not the head's: a leaf up to here was changed", h.Size)
	}
	if c.follow != nil && c.follow.left > 0 {
		return Report{}, c.fault(-1, "the log of checkpoints records %d signed leaves, and there are %d: the ledger was cut back", c.follow.r.newest.Size, h.Size)
	}
	if seq, why := c.erased.unrecorded(); why != "" {
		return Report{}, c.fault(seq, "%s", why)
	}
	r := c.report
	r.Head = h
	r.Open = int64(len(c.open)) + c.loose
	return r, nil
}

func (c *Checker) fault(seq int64, format string, args ...any) error {
	return &Fault{c.tenant, seq, fmt.Sprintf(format, args...)}
}

func why(err error) string {
	if e, ok := err.(*holdfast.Error); ok {
		return e.Why
	}
	return err.Error()
}

func tenantMismatch(tenant string) error {
	return &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K6, Why: fmt.Sprintf("the record is of another tenant than %q", tenant)}
}

func parseKind(k Kind, record []byte) (err error) {
	switch k {
	case KindBegin:
		_, err = ParseBegin(record)
	case KindEntry:
		_, err = ParseEntry(record)
	default:
		_, err = ParseEvent(record)
	}
	return err
}

// VerifyStore verifies a tenant's tree as a store holds it, in constant
// memory: what a Checker checks, that each stored hash, kind, crossing and time
// is what the record gives, the head, and the checkpoints, ascending by size and
// opened already. leaves calls its argument for every leaf in order and
// returns its first error, as Tx.Leaves does.
//
// It knows no log of checkpoints; CheckpointLog.VerifyStore does.
func VerifyStore(h Head, checkpoints []SignedCheckpoint, leaves func(func(Stored) error) error) (Report, error) {
	return verifyStore(nil, h, checkpoints, leaves)
}

// VerifyStore is VerifyStore of a tenant whose tree, where it is not the log's
// own, must contain every head that the log records of it, and whose checkpoints
// must all be recorded.
func (l *CheckpointLog) VerifyStore(h Head, checkpoints []SignedCheckpoint, leaves func(func(Stored) error) error) (Report, error) {
	return verifyStore(l, h, checkpoints, leaves)
}

func verifyStore(log *CheckpointLog, h Head, checkpoints []SignedCheckpoint, leaves func(func(Stored) error) error) (Report, error) {
	c := NewChecker(h.Tenant)
	if err := c.followLog(log); err != nil {
		return Report{}, err
	}
	k, err := c.due(checkpoints, 0)
	if err != nil {
		return Report{}, err
	}
	buf := make([]byte, 0, 4096)
	err = leaves(func(s Stored) error {
		buf = append(append(buf[:0], 0), s.Record...)
		hash := tlog.Hash(sha256.Sum256(buf))
		if err := c.stored(s, hash); err != nil {
			return err
		}
		if err := c.Leaf(s.Seq, hash, s.Record, s.Part); err != nil {
			return err
		}
		k, err = c.due(checkpoints, k)
		return err
	})
	if err != nil {
		return Report{}, err
	}
	if k < len(checkpoints) {
		return Report{}, c.fault(-1, "%d leaves, but a checkpoint was signed over %d: leaves are missing", c.Size(), checkpoints[k].Size)
	}
	return c.Report(h)
}

// stored compares what stands beside the record.
func (c *Checker) stored(s Stored, hash tlog.Hash) error {
	p, err := PeekRecord(s.Record)
	if err != nil {
		return c.fault(s.Seq, "%s", why(err))
	}
	var buf [64]byte
	switch {
	case s.Tenant != c.tenant:
		return c.fault(s.Seq, "stored under tenant %q", s.Tenant)
	case s.Hash != hash:
		return c.fault(s.Seq, "the record does not give the stored hash")
	case s.Kind != p.Kind || !written(buf[:0], p.Crossing, s.Crossing):
		return c.fault(s.Seq, "stored under another kind or crossing than the record's")
	case string(recordTime(p.Kind, s.Record)) != string(appendTime(buf[:0], s.At)):
		return c.fault(s.Seq, "stored under another time than the record's")
	}
	return nil
}

// due compares the checkpoints from k on that have the tree's size now.
func (c *Checker) due(cps []SignedCheckpoint, k int) (int, error) {
	for k < len(cps) && cps[k].Size <= c.Size() {
		if err := c.Checkpoint(cps[k]); err != nil {
			return k, err
		}
		k++
	}
	return k, nil
}
