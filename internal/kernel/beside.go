package kernel

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/holdfast-dev/holdfast"
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

// besideWord stands in a preview, on a line of its own, between the payload and
// what stands beside it. A preview breaks its lines nowhere else.
const besideWord = "\nbeside the payload: "

// shown is what the reviewer sees of the request: the payload, and what stands
// beside it.
func (k *Kernel) shown(j *judgement) (preview, error) {
	p, err := k.preview(j.doc.Canonical())
	if err != nil || j.beside == nil {
		return p, err
	}
	more, err := k.preview(j.beside.Canonical())
	return preview{text: p.text + besideWord + more.text, cut: p.cut || more.cut, masked: p.masked || more.masked}, err
}
