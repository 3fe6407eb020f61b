package kernel

import "github.com/holdfast-dev/holdfast/ledger"

// askedLimit is the longest payload, canonical, that the ledger keeps, in bytes.
const askedLimit = 16 << 10

// askedPart is what was asked, for the begin's erasable part: the payload,
// canonical and redacted. A longer one is not kept at all, since a payload that was
// cut could be taken for another; nor is one that the door noted for people, whose
// note the entry keeps.
func (j *judgement) askedPart(b *ledger.Begin) ([]byte, error) {
	if j.pol.ForgetRequests || len(j.req.Noted) > 0 || j.doc == nil || len(j.doc.Canonical()) > askedLimit {
		return nil, nil
	}
	res, err := j.k.redact.JSON(j.doc.Canonical())
	if err != nil {
		return nil, err
	}
	part, hash, err := j.k.part(res.Out)
	b.PartHash = hash
	return part, err
}
