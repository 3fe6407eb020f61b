package operator

import (
	"bytes"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A wiped key lies overwritten, in every copy, and signs nothing.
func TestWipe(t *testing.T) {
	k := newKey(bytes.Clone(fixedKey().key()))
	lies, copied := *k.private, k
	k.Wipe()
	if !bytes.Equal(lies, make([]byte, len(lies))) {
		t.Error("the key is still there")
	}
	for _, k := range []Key{k, copied, {}} {
		if _, err := Sign(k, approval()); holdfast.KindOf(err) != holdfast.KindPermission {
			t.Error("signed with a wiped key:", err)
		}
		if k.Public().ID() != "" {
			t.Error("a wiped key has a name")
		}
		if _, err := Reseal(k, pass, fast); holdfast.KindOf(err) != holdfast.KindValue {
			t.Error("sealed a wiped key:", err)
		}
		k.Wipe()
	}
}
