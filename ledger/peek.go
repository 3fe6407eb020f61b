package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// Peek is what stands at the front of every record: what ties it to its
// place, its crossing and its part. The slices share the record's memory.
type Peek struct {
	Kind   Kind
	ID     []byte // as it is written, escapes included
	Tenant []byte // likewise
	// Crossing is ID for begins and entries, and what an event belongs to,
	// nil for none.
	Crossing []byte
	// BeginSeq is an entry's begin, -1 for none.
	BeginSeq int64
	// PartHash is the hash of the leaf's part, nil for none.
	PartHash []byte
}

// PeekRecord reads the front of a record without reading the rest: it is what
// verification can afford for each leaf. Parse checks a record whole.
func PeekRecord(record []byte) (Peek, error) {
	p := Peek{BeginSeq: -1}
	r := front{b: record}
	switch {
	case r.take(`{"v":1,"kind":"begin"`):
		p.Kind = KindBegin
	case r.take(`{"v":1,"kind":"entry"`):
		p.Kind = KindEntry
	case r.take(`{"v":1,"kind":"event"`):
		p.Kind = KindEvent
	default:
		return p, refuse("record of no known version and kind")
	}
	p.ID = r.text(`,"id":"`)
	p.Tenant = r.text(`,"tenant_id":"`)
	p.Crossing = p.ID
	switch {
	case p.Kind == KindEntry:
		r.entry(&p)
	case p.Kind == KindEvent:
		p.Crossing = r.optText(`,"crossing":"`)
		p.PartHash = r.optText(`,"part_hash":"`)
	default:
		p.PartHash = r.optText(`,"part_hash":"`)
	}
	if r.bad || !bytes.HasSuffix(record, []byte("}")) || p.PartHash != nil && !isHash(p.PartHash) {
		return p, refuse("record whose front is not as it is written, near byte %d", r.i)
	}
	return p, nil
}

// The keys before the time that a store keeps beside a record. No text inside
// a string can look like them, because a quote in it is escaped.
const (
	timestampKey = `,"timestamp":"`
	createdKey   = `,"created_at":"`
)

// recordTime is when a record was made, as it is written: an entry's
// created_at, else its timestamp.
func recordTime(k Kind, record []byte) []byte {
	key := timestampKey
	if k == KindEntry {
		key = createdKey
	}
	_, rest, _ := bytes.Cut(record, []byte(key))
	return rest[:min(len(rest), timeLen)]
}

// front steps over the first fields of a record.
type front struct {
	b   []byte
	i   int
	bad bool
}

func (r *front) take(s string) bool {
	if len(r.b)-r.i < len(s) || string(r.b[r.i:r.i+len(s)]) != s {
		return false
	}
	r.i += len(s)
	return true
}

func (r *front) text(key string) []byte {
	s := r.optText(key)
	r.bad = r.bad || len(s) == 0
	return s
}

func (r *front) optText(key string) []byte {
	if r.bad || !r.take(key) {
		return nil
	}
	start := r.i
	for r.i < len(r.b) && r.b[r.i] != '"' && r.b[r.i] >= 0x20 {
		if r.b[r.i] == '\\' {
			r.i++
		}
		r.i++
	}
	if r.i >= len(r.b) || r.b[r.i] != '"' {
		r.bad = true
		return nil
	}
	r.i++
	return r.b[start : r.i-1]
}

func (r *front) entry(p *Peek) {
	switch {
	case r.take(`,"begin_seq":null`):
	case r.take(`,"begin_seq":`):
		n, used, ok := parseInt(r.b[r.i:])
		r.i += used
		r.bad = r.bad || !ok || n < 0
		p.BeginSeq = n
	default:
		r.bad = true
	}
	if !r.take(`,"operation_result_hash":null`) {
		p.PartHash = r.text(`,"operation_result_hash":"`)
	}
}

// Check says whether a leaf is what its record says it is: tenant, kind,
// crossing and part. A tenant that differs is a ValueError, everything else a
// WALFormatError (spec 003 section 1.7).
func (l *Leaf) Check() error {
	record := l.Record.Bytes()
	if len(record) > MaxRecord {
		return refuse("record of more than %d bytes", MaxRecord)
	}
	if bytes.IndexByte(record, '\n') >= 0 {
		return refuse("record of more than one line")
	}
	p, err := PeekRecord(record)
	if err != nil {
		return err
	}
	var buf [64]byte
	switch {
	case !written(buf[:0], p.Tenant, l.Tenant):
		return tenantMismatch(l.Tenant)
	case p.Kind != l.Kind:
		return refuse("leaf of kind %d with a record of kind %d", l.Kind, p.Kind)
	case !written(buf[:0], p.Crossing, l.Crossing):
		return refuse("leaf of crossing %q with a record of another", l.Crossing)
	}
	return checkPart(p.PartHash, l.Part, false)
}

// written says whether in is how text is written in a record.
func written(buf, in []byte, text string) bool {
	b := appendText(buf, text)
	return string(b[1:len(b)-1]) == string(in)
}

// checkPart compares a part with the record's hash of it.
func checkPart(hash, part []byte, mayBeErased bool) error {
	switch {
	case hash == nil && part == nil, mayBeErased && part == nil:
		return nil
	case hash == nil:
		return refuse("a part that the record does not name")
	case part == nil:
		return refuse("the part that the record names is missing")
	case len(part) < SaltSize || len(part) > MaxPart:
		return refuse("a part of %d bytes", len(part))
	}
	sum := sha256.Sum256(part)
	var digits [64]byte
	hex.Encode(digits[:], sum[:])
	if string(digits[:]) != string(hash) {
		return refuse("the part is not the one that the record names")
	}
	return nil
}
