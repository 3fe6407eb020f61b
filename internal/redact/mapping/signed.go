package mapping

import (
	"sync"
	"time"
)

// signedOwner is whose signed parts are known: they count in a later session of the same agent, since it sends back
// what it got.
type signedOwner struct{ tenant, agent string }

// signedKey is a part that a row's provider signed.
type signedKey struct {
	row string
	sum [32]byte // SHA-256 of its bytes
}

// maxSigned bounds how many signed parts of an agent are known; those that were not seen for longest go first.
const maxSigned = 4096

// signedParts are the signed parts that an agent got, in two generations of at most maxSigned.
type signedParts struct {
	used time.Time // guarded by Sessions.mu

	load   sync.Mutex
	loaded bool // guarded by load

	mu          sync.Mutex
	newer, last map[signedKey]time.Time // guarded by mu; when the keeper got them
	unsaved     []signedKey             // guarded by mu
	batches     []signedBatch           // guarded by mu; what the keeper has, oldest first
}

// signedBatch is signed parts of one row that the keeper has.
type signedBatch struct {
	row   string
	ids   []string
	saved time.Time
	sums  [][]byte
}

// findSigned returns the signed parts of an owner. mu must be held.
func (s *Sessions) findSigned(o Owner) *signedParts {
	k := signedOwner{o.Tenant, o.Agent}
	p := s.signed[k]
	if p == nil {
		p = &signedParts{}
		s.signed[k] = p
	}
	p.used = s.now()
	return p
}

// addPart notes a part. mu must be held.
func (p *signedParts) addPart(k signedKey, saved time.Time) {
	if len(p.newer) >= maxSigned {
		p.last, p.newer = p.newer, nil
	}
	if p.newer == nil {
		p.newer = map[signedKey]time.Time{}
	}
	p.newer[k] = saved
}

// noteSigned notes a part that the provider signed, by the SHA-256 of its bytes.
func (s *Session) noteSigned(sum [32]byte) {
	p, k := s.group.signed, signedKey{s.owner.Row, sum}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.newer[k]; known {
		return
	}
	p.addPart(k, s.group.all.now())
	p.noteUnsaved(k)
}

// noteUnsaved notes that the keeper must get a part. mu must be held.
func (p *signedParts) noteUnsaved(k signedKey) {
	if len(p.unsaved) < maxSigned {
		p.unsaved = append(p.unsaved, k)
	}
}

// IsSigned reports whether these bytes came from the provider of the row to this agent.
func (s *Session) IsSigned(sum [32]byte) bool {
	p, k := s.group.signed, signedKey{s.owner.Row, sum}
	p.mu.Lock()
	defer p.mu.Unlock()
	saved, known := p.newer[k]
	if !known {
		if saved, known = p.last[k]; !known {
			return false
		}
	}
	if now := s.group.all.now(); now.Sub(saved) > renewAfter {
		saved = now
		p.noteUnsaved(k)
	}
	p.addPart(k, saved)
	return true
}
