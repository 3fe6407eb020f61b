package substitute

import (
	"crypto/sha256"
	"hash"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// maxSignedParts bounds the signed parts of one answer that are followed at a time.
const maxSignedParts = 64

// SignedParts are the parts of an answer in pieces that the provider signs, as far as they came. It belongs to one
// goroutine.
type SignedParts struct{ sums map[string]hash.Hash }

// AddPiece takes a JSON string, the next piece of the part of that key.
func (p *SignedParts) AddPiece(key string, value []byte) {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return
	}
	if p.sums == nil {
		p.sums = map[string]hash.Hash{}
	}
	if p.sums[key] == nil && len(p.sums) < maxSignedParts {
		p.sums[key] = sha256.New()
	}
	if h := p.sums[key]; h != nil {
		h.Write(text)
	}
}

// NoteWhole notes in the session that the part of that key came from the provider, which is all of it now.
func (p *SignedParts) NoteWhole(key string, session *mapping.Snapshot) {
	if h := p.sums[key]; h != nil {
		session.NoteSigned([32]byte(h.Sum(nil)))
		delete(p.sums, key)
	}
}
