package kernel

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
)

// besideDomain stands before the two hashes that are bound together. No JSON
// begins so: what is bound is never the hash of a payload alone.
const besideDomain = "holdfast: a payload and what stands beside it, version 1\n"

// readBeside reads what stands beside the payload. A request of which that
// cannot be read is as one whose payload cannot.
func (j *judgement) readBeside() {
	doc, err := payload.Parse(j.req.Beside)
	if err == nil {
		if _, ok := doc.Value().(map[string]any); !ok {
			err = &holdfast.Error{Kind: holdfast.KindValue, Why: "not an object"}
		}
	}
	if err != nil {
		if e, ok := asError(err); ok {
			own := *e
			own.Why = "beside the payload: " + e.Why
			err = &own
		}
		if j.docErr == nil {
			j.doc, j.docErr = nil, err
		}
		return
	}
	if j.doc != nil {
		sum := sha256.Sum256([]byte(besideDomain + j.doc.Exact() + "\n" + doc.Exact()))
		j.beside, j.bound = doc, hex.EncodeToString(sum[:])
	}
}

// shown returns what the reviewer sees of the request: the payload, and what is next to it.
func (k *Kernel) shown(j *judgement) (record.Preview, error) {
	p, err := k.records.Preview(j.doc.Canonical())
	if err != nil || j.beside == nil {
		return p, err
	}
	more, err := k.records.Preview(j.beside.Canonical())
	return p.Join(more), err
}
