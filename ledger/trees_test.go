package ledger

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// verifyStored verifies a world as a store.
func (w *world) verifyStored(known ...SignedCheckpoint) ([]Report, error) {
	v := StoreVerifier{Key: w.signer.Verifier(), Known: known}
	for _, tenant := range slices.SortedFunc(maps.Keys(w.tenants), CompareTenants) {
		if err := v.Tree(w.stored(tenant)); err != nil {
			return nil, err
		}
	}
	return v.Reports, v.End()
}

func (w *world) stored(tenant string) StoredTree {
	h := w.tenants[tenant]
	t := StoredTree{Head: w.head(tenant), Size: h.tree.Size(), Leaves: h.each}
	if n := len(h.cps); n > 0 {
		t.Newest = &h.cps[n-1]
	}
	return t
}

func TestStoreVerifies(t *testing.T) {
	w := ordinary(t)
	w.log(t)
	kept := w.tenants["acme"].cps[1]
	rs, err := w.verifyStored(kept)
	if err != nil || len(rs) != 3 || rs[0].Tenant != CheckpointsTenant || rs[1].Head != w.head("acme") || rs[2].Beyond() != 3 {
		t.Fatalf("%+v, %v", rs, err)
	}
	if rs[1].Checkpoints != 2 || rs[1].Signed != w.head("acme").Size { // the newest, which the log records too, and the one that was kept
		t.Errorf("%+v", rs[1])
	}
	if rs, err := newWorld(t).verifyStored(); err != nil || len(rs) != 0 {
		t.Errorf("an empty store: %+v, %v", rs, err)
	}
}

// What is known from elsewhere, and a newest checkpoint that is none, are held against
// the trees.
func TestStoreIsHeldAgainstWhatIsKnown(t *testing.T) {
	for want, c := range map[string]struct {
		spoil func(w *world)
		known func(w *world) Head
	}{
		"not the one that was signed": {known: func(w *world) Head { h := w.tenants["acme"].cps[0].Head; h.Root[0] ^= 1; return h }},
		"leaves are missing":          {known: func(w *world) Head { h := w.head("acme"); h.Size += 9; return h }},
		"no such tenant":              {known: func(*world) Head { return Head{Tenant: "gone", Size: 3} }},
		"the newest checkpoint: ":     {spoil: func(w *world) { w.tenants["acme"].cps[2].Note = []byte("forged") }},
		"is another tenant's":         {spoil: func(w *world) { w.tenants["acme"].cps[2] = w.tenants["b\"ünt"].cps[0] }},
	} {
		w := ordinary(t)
		w.log(t)
		var known []SignedCheckpoint
		if c.known != nil {
			known = append(known, SignedCheckpoint{Head: c.known(w)})
		}
		if c.spoil != nil {
			c.spoil(w)
		}
		var f *Fault
		if _, err := w.verifyStored(known...); !errors.As(err, &f) || !strings.Contains(f.Why, want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// After a fault the same tree may be asked again, as one moment shows it; what grew
// since the log was read is no fault.
func TestStoreIsAskedAgain(t *testing.T) {
	w := ordinary(t)
	w.log(t)
	v := StoreVerifier{Key: w.signer.Verifier()}
	for _, tenant := range []string{CheckpointsTenant, "acme"} {
		s := w.stored(tenant)
		w.event(t, "acme", 9000)
		bad := s
		bad.Head.Root[0] ^= 1
		var f *Fault
		if err := v.Tree(bad); !errors.As(err, &f) || f.Tenant != tenant {
			t.Errorf("%v", err)
		}
		s.Head = w.head(tenant)
		if err := v.Tree(s); err != nil {
			t.Error(err)
		}
	}
	if len(v.Reports) != 2 || v.Reports[1].Size != w.head("acme").Size {
		t.Errorf("%+v", v.Reports)
	}
}

// cutBacks are ways to take what was signed from a world, or to sign what is not there.
func cutBacks(t *testing.T) map[string]func(*world) {
	return map[string]func(*world){
		"cut back": func(w *world) {
			short := newWorld(t)
			for n := range 30 {
				short.cross(t, "acme", n)
			}
			short.signer = w.signer
			short.sign(t, "acme")
			w.tenants["acme"] = short.tenants["acme"]
		},
		"unsigned": func(w *world) {
			h := &history{}
			w.tenants["acme"] = h
			for n := range 100 {
				w.cross(t, "acme", n)
			}
		},
		"signature taken away": func(w *world) { h := w.tenants["acme"]; h.cps = h.cps[:len(h.cps)-1] },
		"taken away":           func(w *world) { delete(w.tenants, "acme") },
		"without a log":        func(w *world) { w.tenants[CheckpointsTenant] = &history{} },
		"log cut back":         func(w *world) { w.tenants[CheckpointsTenant] = &history{}; w.record(t, w.tenants["acme"].cps[0]) },
		"signed smaller":       func(w *world) { w.record(t, w.tenants["acme"].cps[0]) },
		"signed twice": func(w *world) {
			h := w.head("acme")
			h.Root[0] ^= 1
			w.record(t, mustSign(t, w.signer, h))
		},
		"no checkpoint": func(w *world) { w.event(t, CheckpointsTenant, 1) },
	}
}
