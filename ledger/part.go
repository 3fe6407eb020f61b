package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// SaltSize is the length of the salt that a part starts with, in bytes.
const SaltSize = 16

// NewPart makes an erasable part: the salt, then the content, which is
// redacted already. The salt is random and used once; without it, whoever has
// the hash could test guesses at the content after it was erased (D14).
func NewPart(salt [SaltSize]byte, content []byte) []byte {
	return append(append(make([]byte, 0, SaltSize+len(content)), salt[:]...), content...)
}

// PartHash is what the record says of the part: SHA-256 over salt and
// content, 64 lower-case hex digits.
func PartHash(part []byte) string {
	sum := sha256.Sum256(part)
	return hex.EncodeToString(sum[:])
}

// PartContent returns the content of a part; it shares the part's memory.
func PartContent(part []byte) ([]byte, error) {
	if len(part) < SaltSize {
		return nil, &holdfast.Error{Kind: holdfast.KindWALFormat, Gate: holdfast.K6,
			Why: fmt.Sprintf("part of %d bytes has no room for its salt", len(part))}
	}
	return part[SaltSize:], nil
}
