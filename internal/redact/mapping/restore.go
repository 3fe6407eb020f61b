package mapping

import (
	"errors"
	"io"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Counts tell what happened to the placeholders of an answer.
type Counts struct {
	Restored int
	// Altered counts texts that are like a placeholder of the session: a model changed its case, encoded it, broke
	// it, or left something out.
	Altered int
}

// Add adds other counts to n.
func (n *Counts) Add(other Counts) {
	n.Restored += other.Restored
	n.Altered += other.Altered
}

// Restorer restores placeholders in text that comes in pieces. What it holds back is at most what may be
// the beginning of a placeholder. It belongs to one goroutine.
type Restorer struct {
	s       *Session
	ix      *Index
	w       io.Writer
	text    []byte // what is held, behind what came before it
	context int    // bytes of text that came before, and have come out
	in      int    // bytes that came out, of the text as it came
	closed  bool
	list    []redact.Finding
	counts  Counts
	altered alteredCounter
	lineEnd int // where the last line of a key ended, as in
}

// maxLineGap is the distance from which two lines count as those of two keys, in bytes.
const maxLineGap = 64

// Restore returns a Restorer for an answer. inJSON says that the text is a JSON document, such as the arguments
// of a tool.
func (p *Snapshot) Restore(inJSON bool, w io.Writer) *Restorer {
	return &Restorer{s: p.s, ix: p.findIndex(inJSON), w: w, altered: alteredCounter{marks: p.findMarks()},
		lineEnd: -maxLineGap}
}

// Write takes more of the text.
func (r *Restorer) Write(p []byte) (int, error) {
	if r.closed {
		return 0, errors.New("cannot write to a text that has ended")
	}
	if len(r.ix.forms) == 0 {
		r.in += len(p)
		return r.w.Write(p)
	}
	r.text = append(r.text, p...)
	return len(p), r.releaseText(false)
}

// Close writes what is held.
func (r *Restorer) Close() error {
	if r.closed {
		return nil
	}
	err := r.releaseText(true)
	r.closed = true
	return err
}

// Held returns the number of bytes of the text that have not come out.
func (r *Restorer) Held() int { return len(r.text) - r.context }

// maxYield is how many letters of what may become a placeholder are let go, at the end of a word that began as
// another.
const maxYield = 3

// Yield writes what is held except what a placeholder may have begun with: the last letters of a word go. A text
// that continues later may be cut within a placeholder at any place, so that its beginning stays held.
func (r *Restorer) Yield() error {
	from := r.context
	for from < len(r.text) && len(r.text)-from <= maxYield && !isWordStart(r.text[:from]) {
		from++
		for from < len(r.text) && !r.ix.mayBegin(r.text[from:]) {
			from++
		}
	}
	return r.passText(nil, r.context, from)
}

// Findings are the restored placeholders, by their offsets in the text as it came.
func (r *Restorer) Findings() []redact.Finding { return r.list }

// Counts returns what happened to the placeholders so far.
func (r *Restorer) Counts() Counts {
	n := r.counts
	n.Altered = r.altered.n
	return n
}

// releaseText writes what can no longer be part of a placeholder, or everything.
func (r *Restorer) releaseText(all bool) error {
	var out []byte
	text, from := r.text, r.context
	i := r.ix.findHead(text, from)
	for ; i < len(text) && (all || !r.ix.mayBegin(text[i:])); i = r.ix.findHead(text, i) {
		f := r.ix.findAt(text, i)
		if f == nil {
			i++
			continue
		}
		out = append(append(out, text[from:i]...), f.write...)
		r.altered.countIn(text[from:i])
		r.altered.skipRestored()
		r.in += i - from
		r.list = append(r.list, redact.Finding{Rule: "restored", Offset: r.in, Length: len(f.find)})
		if !f.isLine || r.in-r.lineEnd >= maxLineGap {
			r.counts.Restored++
		}
		if r.in += len(f.find); f.isLine {
			r.lineEnd = r.in
		}
		r.s.noteRestored(f.placeholder)
		i += len(f.find)
		from = i
	}
	return r.passText(out, from, i)
}

// passText writes out, and the text between from and to; what comes behind that stays held.
func (r *Restorer) passText(out []byte, from, to int) error {
	out = append(out, r.text[from:to]...)
	r.altered.countIn(r.text[from:to])
	r.in += to - from
	keep := max(0, to-maxContext)
	r.text = append(r.text[:0], r.text[keep:]...)
	r.context = to - keep
	if len(out) == 0 {
		return nil
	}
	_, err := r.w.Write(out)
	return err
}

// RestoreText restores the placeholders of one whole text. It returns text itself if it has none.
func (p *Snapshot) RestoreText(inJSON bool, text []byte) ([]byte, Counts) {
	ix := p.findIndex(inJSON)
	altered := alteredCounter{marks: p.findMarks()}
	var out []byte
	var n Counts
	from, lineEnd := 0, -maxLineGap
	for i := ix.findHead(text, 0); i < len(text); i = ix.findHead(text, i) {
		f := ix.findAt(text, i)
		if f == nil {
			i++
			continue
		}
		out = append(append(out, text[from:i]...), f.write...)
		altered.countIn(text[from:i])
		altered.skipRestored()
		if !f.isLine || i-lineEnd >= maxLineGap {
			n.Restored++
		}
		p.s.noteRestored(f.placeholder)
		if i += len(f.find); f.isLine {
			lineEnd = i
		}
		from = i
	}
	altered.countIn(text[from:])
	n.Altered = altered.n
	if out == nil {
		return text, n
	}
	return append(out, text[from:]...), n
}

// NoteSigned notes a part that the provider signed, by the SHA-256 of its bytes.
func (p *Snapshot) NoteSigned(sum [32]byte) { p.s.noteSigned(sum) }
