package kernel

import (
	"testing"
	"time"
)

// A transaction that fails puts the blocks back to what they were, but not what
// another has set since.
func TestBlocksOfAFailedTransaction(t *testing.T) {
	now := time.Now()
	block := func(names ...string) map[string]Block {
		m := map[string]Block{}
		for _, n := range names {
			m[n] = Block{Tenant: n}
		}
		return m
	}
	var b blocks
	b.set(block("a"))
	failed := b.set(block("a", "b"))
	b.back(failed)
	if _, is := b.of("b", now); is {
		t.Error("what failed blocks")
	}
	failed = b.set(block("a", "b"))
	b.set(block("a", "c"))
	b.back(failed)
	if _, is := b.of("c", now); !is {
		t.Error("the block of another tenant is lost")
	}
	b.back(undo{})
	if _, is := b.of("a", now); !is {
		t.Error("a transaction that set nothing undid something")
	}
}
