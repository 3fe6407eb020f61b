package mapping

import (
	"errors"
	"io"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Counts tell what happened to the placeholders of an answer.
type Counts struct {
	Restored int
	// Altered counts texts that only begin like a placeholder of the session: a model changed it, or left
	// something out.
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
	s      *Session
	ix     *Index
	w      io.Writer
	held   []byte
	in     int // bytes that came out, of the text as it came
	closed bool
	list   []redact.Finding
	counts Counts
}

// Restore returns a Restorer for an answer to the session's requests so far. inJSON says that the text is a
// JSON document, such as the arguments of a tool.
func (s *Session) Restore(inJSON bool, w io.Writer) *Restorer {
	s.mu.Lock()
	defer s.mu.Unlock()
	plain, document := s.buildIndexes()
	if inJSON {
		plain = document
	}
	return &Restorer{s: s, ix: plain, w: w}
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
	r.held = append(r.held, p...)
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
func (r *Restorer) Held() int { return len(r.held) }

// Yield does nothing: what is held may be the beginning of a placeholder.
func (r *Restorer) Yield() error { return nil }

// Findings are the restored placeholders, by their offsets in the text as it came.
func (r *Restorer) Findings() []redact.Finding { return r.list }

// Counts returns what happened to the placeholders so far.
func (r *Restorer) Counts() Counts { return r.counts }

// releaseText writes what can no longer be part of a placeholder, or everything.
func (r *Restorer) releaseText(all bool) error {
	var out []byte
	text, from := r.held, 0
	for i := r.ix.findHead(text, 0); ; i = r.ix.findHead(text, i) {
		if !all && r.mayBegin(text[i:]) {
			out = append(out, text[from:i]...)
			r.in += i - from
			r.held = append(r.held[:0], text[i:]...)
			return r.writeOut(out)
		}
		if i >= len(text) {
			break
		}
		f, near := r.ix.findAt(text, i)
		if f == nil {
			if i++; near {
				r.counts.Altered++
			}
			continue
		}
		out = append(append(out, text[from:i]...), f.write...)
		r.in += i - from
		r.list = append(r.list, redact.Finding{Rule: "restored", Offset: r.in, Length: len(f.find)})
		r.in += len(f.find)
		r.counts.Restored++
		r.s.noteRestored(f.placeholder)
		i += len(f.find)
		from = i
	}
	out = append(out, text[from:]...)
	r.in += len(text) - from
	r.held = r.held[:0]
	return r.writeOut(out)
}

// mayBegin reports whether rest, the end of what has come, is the beginning of a placeholder.
func (r *Restorer) mayBegin(rest []byte) bool {
	return len(rest) > 0 && len(rest) < r.ix.most && r.ix.hasFormWith(rest)
}

func (r *Restorer) writeOut(out []byte) error {
	if len(out) == 0 {
		return nil
	}
	_, err := r.w.Write(out)
	return err
}

// RestoreText restores the placeholders of one whole text. It returns text itself if it has none.
func (s *Session) RestoreText(inJSON bool, text []byte) ([]byte, Counts) {
	s.mu.Lock()
	plain, document := s.buildIndexes()
	s.mu.Unlock()
	if inJSON {
		plain = document
	}
	var out []byte
	var n Counts
	from := 0
	for i := plain.findHead(text, 0); i < len(text); i = plain.findHead(text, i) {
		f, near := plain.findAt(text, i)
		if f == nil {
			if i++; near {
				n.Altered++
			}
			continue
		}
		out = append(append(out, text[from:i]...), f.write...)
		n.Restored++
		s.noteRestored(f.placeholder)
		i += len(f.find)
		from = i
	}
	if n.Restored == 0 {
		return text, n
	}
	return append(out, text[from:]...), n
}
