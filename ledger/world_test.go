package ledger

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// world is a few tenants' ledgers, kept as a store keeps them.
type world struct {
	signer  *Signer
	tenants map[string]*history
}

type history struct {
	tree   Tree
	leaves []Stored
	cps    []SignedCheckpoint
	made   bool // by world.log
}

func crossingID(n int) string { return fmt.Sprintf("019aa1b2-0000-7000-8000-%012d", n) }

func newWorld(t testing.TB) *world {
	return &world{testSigner(t, 1), map[string]*history{}}
}

func (w *world) add(t testing.TB, tenant string, k Kind, id string, rec appender, part []byte) {
	h := w.tenants[tenant]
	if h == nil {
		h = &history{}
		w.tenants[tenant] = h
	}
	b := mustJSON(t, rec)
	s := Stored{Place: Place{tenant, h.tree.Size(), LeafHash(b)}, Kind: k, Crossing: id, At: testTime, Record: b, Part: part}
	h.tree.Append(s.Hash)
	h.leaves = append(h.leaves, s)
}

// cross adds a crossing's begin and entry.
func (w *world) cross(t testing.TB, tenant string, n int) {
	w.begin(t, tenant, n)
	w.enter(t, tenant, n, w.tenants[tenant].tree.Size()-1)
}

func (w *world) begin(t testing.TB, tenant string, n int) {
	b := &Begin{ID: crossingID(n), TenantID: tenant, Correlation: "c", Timestamp: testTime, Boundary: "b", Caller: "alice",
		ExactHash: testHash, Key: testHash, Policy: testHash}
	w.add(t, tenant, KindBegin, b.ID, b, nil)
}

func (w *world) enter(t testing.TB, tenant string, n int, begun int64) {
	part := NewPart([SaltSize]byte{byte(n)}, fmt.Appendf(nil, "result %d", n))
	e := &Entry{ID: crossingID(n), TenantID: tenant, ResultHash: ptr(PartHash(part)), Correlation: "c", Timestamp: testTime,
		CreatedAt: testTime, Boundary: "b", Caller: "alice", Outcome: Done}
	if begun >= 0 {
		e.BeginSeq = &begun
	}
	w.add(t, tenant, KindEntry, e.ID, e, part)
}

func (w *world) event(t testing.TB, tenant string, n int) {
	e := &Event{ID: fmt.Sprint("e", n), TenantID: tenant, Timestamp: testTime, Name: "halted", Who: "carol"}
	w.add(t, tenant, KindEvent, "", e, nil)
}

func (w *world) sign(t testing.TB, tenant string) {
	h := w.tenants[tenant]
	h.cps = append(h.cps, mustSign(t, w.signer, h.tree.Head(tenant)))
}

func (w *world) head(tenant string) Head { return w.tenants[tenant].tree.Head(tenant) }

func (h *history) each(fn func(Stored) error) error {
	for _, s := range h.leaves {
		if err := fn(s); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) export(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	e := NewExporter(&out, w.signer.Verifier())
	w.log(t)
	for _, n := range slices.SortedFunc(maps.Keys(w.tenants), CompareTenants) {
		if err := e.Tenant(w.head(n), w.tenants[n].cps, w.tenants[n].each); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// log writes the tree of checkpoints anew, unless a test made its own.
func (w *world) log(t testing.TB) {
	if h := w.tenants[CheckpointsTenant]; h != nil && !h.made {
		return
	}
	delete(w.tenants, CheckpointsTenant)
	for _, n := range slices.Sorted(maps.Keys(w.tenants)) {
		for _, c := range w.tenants[n].cps {
			w.record(t, c)
		}
	}
	if h := w.tenants[CheckpointsTenant]; h != nil {
		w.sign(t, CheckpointsTenant)
		h.made = true
	}
}

// record adds a checkpoint to the log.
func (w *world) record(t testing.TB, c SignedCheckpoint) {
	seq := int64(0)
	if h := w.tenants[CheckpointsTenant]; h != nil {
		seq = h.tree.Size()
	}
	w.add(t, CheckpointsTenant, KindEvent, "", CheckpointEvent(fmt.Sprint("c", seq), c), nil)
}

// erase takes away the parts of [from, to), and records parts of them.
func (w *world) erase(t testing.TB, tenant string, from, to, parts int64) {
	h := w.tenants[tenant]
	for i := from; i < to; i++ {
		h.leaves[i].Part = nil
	}
	w.add(t, tenant, KindEvent, "", &Event{ID: fmt.Sprint("x", h.tree.Size()), TenantID: tenant, Timestamp: testTime, Name: ErasedEvent, Who: "holdfast",
		Data: fmt.Appendf(nil, `{"from":%d,"parts":%d,"to":%d}`, from, parts, to)}, nil)
}

// ordinary is two tenants with 300 leaves and some checkpoints.
func ordinary(t testing.TB) *world {
	w := newWorld(t)
	for n := range 50 {
		w.cross(t, "acme", n)
		w.event(t, "acme", n)
		if n%20 == 10 {
			w.sign(t, "acme")
		}
	}
	w.enter(t, "acme", 1000, -1) // denied: it never began
	w.sign(t, "acme")
	for n := range 73 {
		w.cross(t, "b\"ünt", n)
	}
	w.sign(t, "b\"ünt")
	w.begin(t, "b\"ünt", 2000)
	w.event(t, "b\"ünt", 2000)
	w.event(t, "b\"ünt", 2001)
	return w
}

func (w *world) verify(b []byte, known ...SignedCheckpoint) ([]Report, error) {
	v := ExportVerifier{Key: w.signer.Verifier(), Known: known, Deep: true}
	return v.Verify(bytes.NewReader(b))
}
