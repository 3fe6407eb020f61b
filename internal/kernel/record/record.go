// Package record makes what the kernel writes down and shows: leaves whose records are redacted,
// whole or not at all; their erasable parts; excerpts; and what a reviewer sees of a request.
package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
	"github.com/holdfast-dev/holdfast/ledger"
)

const (
	// resultLimit is the most that the ledger keeps of an output's redacted text, in bytes; of the
	// rest it has the hash and size (spec 003 section 1.7).
	resultLimit = 1024
	// resultWindow is the longest output that is redacted to be kept, in bytes.
	resultWindow = 1 << 20
	// requestLimit is the longest payload, canonical, that the ledger keeps, in bytes.
	requestLimit = 16 << 10
	// maxBuffer is the largest buffer that waits for the next record, in bytes.
	maxBuffer = 64 << 10
)

// Of a text longer than maskWindow only that much is redacted, and of the result the last
// maskEdge bytes are dropped: a secret that the cut split would not be recognised.
const (
	maskWindow = 64 << 10
	maskEdge   = 4 << 10
)

// Record is a format of the ledger.
type Record interface {
	AppendJSON([]byte) ([]byte, error)
}

// Event is something to record in addition to crossings (D6).
type Event struct {
	Tenant   string
	Crossing string
	Name     string
	Who      string
	Subject  string
	Data     map[string]any
	// Part is a redacted text that may be erased later.
	Part []byte
}

// Writer makes records. It is safe for concurrent use.
type Writer struct {
	redact  *redact.Engine    // for structure
	texts   *detector.Records // for what is for people
	random  io.Reader
	exempt  []string  // what redaction passes unread in records
	prose   []string  // the members of records that are texts for people
	buffers sync.Pool // *[]byte, in which records are written before they are sealed
}

// NewWriter returns a Writer that redacts texts by texts, and the structure of records by its engine.
func NewWriter(texts *detector.Records, random io.Reader) *Writer {
	return &Writer{redact: texts.Engine(), texts: texts, random: random, exempt: ledger.Exempt(),
		prose: ledger.Prose()}
}

// Leaf makes a leaf of a record: redacted, whole or not at all (D13, D14a).
func (w *Writer) Leaf(kind ledger.Kind, tenant, crossing string, at time.Time, r Record, part []byte) (ledger.Leaf,
	error) {
	buf, ok := w.buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	defer w.buffers.Put(buf)
	b, err := r.AppendJSON((*buf)[:0])
	if err != nil {
		return ledger.Leaf{}, err
	}
	if cap(b) <= maxBuffer {
		*buf = b
	}
	sealed, err := w.redact.Seal(w.texts.Members(b, w.prose...), w.exempt...) // which copies it
	if err != nil {
		return ledger.Leaf{}, err
	}
	return ledger.Leaf{Tenant: tenant, Kind: kind, Crossing: crossing, At: at, Record: sealed, Part: part}, nil
}

// Part makes the erasable part of a leaf of a text that is redacted already, with its hash.
func (w *Writer) Part(text []byte) (part []byte, hash string, err error) {
	var salt [ledger.SaltSize]byte
	if _, err := io.ReadFull(w.random, salt[:]); err != nil {
		return nil, "", err
	}
	p := ledger.NewPart(salt, text)
	return p, ledger.PartHash(p), nil
}

// Mask redacts a text.
func (w *Writer) Mask(s string) []byte { return w.texts.Text([]byte(s)).Out }

// Quote redacts a text, then cuts it to n bytes; never the other way round.
func (w *Writer) Quote(s string, n int) string {
	out := w.Mask(s[:min(len(s), maskWindow)])
	if len(s) > maskWindow {
		out = out[:max(0, len(out)-maskEdge)]
	}
	return excerpt.Of(string(out), n)
}

// Request makes the erasable part of a begin: the payload, canonical and redacted. A longer one
// than requestLimit is not kept at all, since a payload that was cut could be mistaken for
// another.
func (w *Writer) Request(canonical []byte) (part []byte, hash string, err error) {
	if len(canonical) > requestLimit {
		return nil, "", nil
	}
	res, err := w.texts.JSON(canonical)
	if err != nil {
		return nil, "", err
	}
	return w.Part(res.Out)
}

// Result is what an entry keeps of a text.
type Result struct {
	Part []byte
	Hash string
	// Rules are those that redaction applied; Found reports whether it found anything. Both are
	// nil if the text was too long to be redacted.
	Rules []string
	Found *bool
}

// IsShort reports whether Result keeps all of a text that redaction leaves unchanged.
func IsShort(text []byte) bool { return len(text) <= resultLimit }

// Result puts a text into an entry's erasable part, redacted, with what redaction found (D13).
// The whole text is redacted, and only then cut: what shows that something is a secret may be
// anywhere. What is dropped leaves the size of the text and the hash of the redacted one: a
// masked text could be guessed by its own hash (D14a). A text longer than resultWindow is not
// read, and only its hash and size are kept.
func (w *Writer) Result(text []byte) (Result, error) {
	var r Result
	whole, kept := text, []byte(nil)
	if len(text) <= resultWindow {
		res, err := w.texts.JSON(text)
		if err != nil {
			return r, err
		}
		found := res.Found()
		r.Rules, r.Found = res.Rules(), &found
		whole, kept = res.Out, res.Out[:min(len(res.Out), resultLimit)]
	}
	if len(whole) > len(kept) {
		sum := sha256.Sum256(whole)
		kept = fmt.Appendf(bytes.Clone(kept), "... (%d bytes, sha256 %s)", len(text), hex.EncodeToString(sum[:]))
	}
	var err error
	r.Part, r.Hash, err = w.Part(kept)
	return r, err
}

// FeatureText returns the redacted JSON of what a feature records of its part. The engine alone redacts it: a feature
// reads its words again, and its texts went through Quote.
func (w *Writer) FeatureText(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	res, err := w.redact.JSON(b)
	if err != nil {
		return "", err
	}
	if len(res.Out) > ledger.MaxFeatureText {
		return "", fmt.Errorf("%d bytes, more than %d", len(res.Out), ledger.MaxFeatureText)
	}
	return string(res.Out), nil
}
