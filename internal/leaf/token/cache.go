package token

import (
	"container/list"
	"crypto"
	"crypto/sha256"
	"sync"
)

// cacheSize bounds the tokens that are remembered.
const cacheSize = 4096

// digest names a token in the cache. The text itself is kept nowhere.
type digest [sha256.Size]byte

// entry is a token that was verified once, with the key that did it.
type entry struct {
	sum    digest
	issuer *Issuer
	kid    string
	alg    string
	key    crypto.PublicKey
	claims *verified
}

// cache forgets what was used longest ago. Only verified tokens get in, so
// nobody without a key can push others out.
type cache struct {
	mu    sync.Mutex
	order list.List // of *entry, newest first; guarded by mu
	at    map[digest]*list.Element
}

// get returns an entry that nobody changes, or nil.
func (c *cache) get(sum digest) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.at[sum]
	if !ok {
		return nil
	}
	c.order.MoveToFront(el)
	return el.Value.(*entry)
}

func (c *cache) put(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = make(map[digest]*list.Element)
	}
	if el, ok := c.at[e.sum]; ok {
		el.Value = e
		c.order.MoveToFront(el)
		return
	}
	c.at[e.sum] = c.order.PushFront(e)
	if c.order.Len() > cacheSize {
		last := c.order.Back()
		delete(c.at, last.Value.(*entry).sum)
		c.order.Remove(last)
	}
}

func (c *cache) drop(sum digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.at[sum]; ok {
		delete(c.at, sum)
		c.order.Remove(el)
	}
}
