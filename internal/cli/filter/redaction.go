package filter

import (
	"bytes"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
)

// maxFound bounds how many findings are kept with their places.
const maxFound = 1000

// Redaction is one text on its way through the engine. JSON documents that
// follow one another, each ending its line, stay JSON, and each is written
// as soon as it is complete. From the first line on that is no such document, the
// rest is text, of which only what may be part of a finding is held back.
type Redaction struct {
	e     *redact.Engine
	texts *detector.Records // e, and the detector of the configuration
	out   io.Writer
	in    *pushback

	base   int // of the input, in bytes, that has passed
	counts map[string]int
	found  []redact.Finding
}

// NewRedaction returns the redaction of in by texts, written to out.
func NewRedaction(texts *detector.Records, in io.Reader, out io.Writer) *Redaction {
	return &Redaction{e: texts.Engine(), texts: texts, out: out, in: &pushback{r: in}}
}

// Found returns the first findings with their places.
func (f *Redaction) Found() []redact.Finding { return f.found }

// Counts returns the number of all findings, by rule.
func (f *Redaction) Counts() map[string]int { return f.counts }

// Run reads to the end. Of text that is compressed or not in UTF-8, and of one
// JSON document, at most limit bytes are held.
func (f *Redaction) Run(limit int) error {
	head, err := f.in.head(512)
	if err != nil {
		return err
	}
	if isPacked(head) {
		return f.body(limit)
	}
	for {
		if err := f.blanks(); err != nil {
			return err
		}
		c, err := f.in.head(1)
		if err != nil || len(c) == 0 {
			return err
		}
		if c[0] != '{' && c[0] != '[' {
			return f.text()
		}
		doc, err := f.in.document(limit)
		if err != nil {
			return err
		}
		if doc == nil {
			return f.text()
		}
		if err := f.json(doc); err != nil {
			return err
		}
	}
}

// isPacked says whether a text cannot be read as it comes: it is compressed, or
// has more than one byte to a character.
func isPacked(head []byte) bool {
	for _, magic := range [...]string{"\x1f\x8b", "PK\x03\x04", "BZh", "\xff\xfe", "\xfe\xff", "\x00\x00\xfe\xff", "7z\xbc\xaf", "\xfd7zXZ", "\x28\xb5\x2f\xfd"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	var nul [2]int
	for i, c := range head {
		if c == 0 {
			nul[i&1]++
		}
	}
	// Every other byte of what is written in UTF-16 is often 0.
	half := len(head) / 2
	return half >= 4 && max(nul[0], nul[1])*10 >= half*7
}

// blanks passes white space on.
func (f *Redaction) blanks() error {
	for {
		b, err := f.in.head(maxBlank)
		if err != nil {
			return err
		}
		n := len(b) - len(bytes.TrimLeft(b, " \t\r\n"))
		if n == 0 {
			return nil
		}
		if _, err := f.out.Write(b[:n]); err != nil {
			return err
		}
		f.in.skip(n)
		f.base += n
	}
}

const maxBlank = 4096

func (f *Redaction) json(doc []byte) error {
	r, err := f.texts.JSON(doc)
	if err != nil {
		return unshown(err)
	}
	f.note(r.Findings, nil)
	f.base += len(doc)
	_, err = f.out.Write(r.Out)
	return err
}

// text passes on the rest.
func (f *Redaction) text() error {
	var last lines
	out := f.out
	if f.texts.HasFinder() {
		last = lines{f: f}
		out = &last
	}
	s := f.e.Stream(out)
	_, err := io.Copy(s, f.in)
	if err == nil {
		err = s.Close()
	}
	if err == nil {
		err = last.searchRest()
	}
	found := s.Findings()
	f.note(found.First, found.Counts)
	return unshown(err)
}

// maxHeld is the length of a held line at which the detector gets what there is of it, in bytes.
const maxHeld = 32 << 10

// lines has the detector search text that the engine has redacted: whole lines, or what is held of a longer one.
type lines struct {
	f    *Redaction
	held []byte
	n    int // bytes of the engine's text before held
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.held = append(l.held, p...)
	end := bytes.LastIndexByte(l.held, '\n') + 1
	if len(l.held)-end > maxHeld {
		for end = len(l.held); end > 0 && !utf8.RuneStart(l.held[end-1]); {
			end--
		}
		end--
	}
	for from := 0; from < end; {
		to := min(end, from+maxHeld)
		if at := bytes.LastIndexByte(l.held[from:to], '\n'); at >= 0 {
			to = from + at + 1
		}
		if err := l.searchText(l.held[from:to]); err != nil {
			return 0, err
		}
		from = to
	}
	l.held = append(l.held[:0], l.held[end:]...)
	return len(p), nil
}

// searchRest writes what is held.
func (l *lines) searchRest() error {
	if len(l.held) == 0 {
		return nil
	}
	return l.searchText(l.held)
}

// searchText writes one text. Its findings have places in the text that the engine has redacted.
func (l *lines) searchText(text []byte) error {
	line := bytes.TrimRight(text, "\r\n")
	r := l.f.texts.Text(line)
	for i := range r.Findings {
		r.Findings[i].Offset += l.n
	}
	l.f.note(r.Findings, nil)
	l.n += len(text)
	_, err := l.f.out.Write(append(bytes.Clone(r.Out), text[len(line):]...))
	return err
}

// body passes on the rest as one body.
func (f *Redaction) body(limit int) error {
	if f.texts.HasFinder() {
		return &holdfast.Error{Kind: holdfast.KindRedaction, Hint: "unpack it, or write it in UTF-8",
			Why: "the detector of names and addresses cannot search what is compressed or not UTF-8"}
	}
	b, err := io.ReadAll(io.LimitReader(f.in, int64(limit)+1))
	if err == nil && len(b) > limit {
		err = &holdfast.Error{Kind: holdfast.KindPayloadTooLarge, Why: "what is compressed or not UTF-8 is read whole, and this has more than " + FormatBytes(int64(limit)), Hint: "unpack it first"}
	}
	if err != nil {
		return err
	}
	r, err := f.e.Body("", b)
	if err != nil {
		return unshown(err)
	}
	f.note(r.Findings, nil)
	_, err = f.out.Write(r.Out)
	return err
}

// unshown says that what could not be redacted was not written.
func unshown(err error) error {
	if holdfast.KindOf(err) != holdfast.KindRedaction {
		return err
	}
	return AddPlace("the text could not be redacted, so no more of it is shown", err)
}

// note keeps findings; counts are theirs, where there are more than are listed.
func (f *Redaction) note(list []redact.Finding, counts map[string]int) {
	if f.counts == nil {
		f.counts = map[string]int{}
	}
	for _, x := range list {
		if counts == nil {
			f.counts[x.Rule]++
		}
		if x.Offset += f.base; len(f.found) < maxFound {
			f.found = append(f.found, x)
		}
	}
	for rule, n := range counts {
		f.counts[rule] += n
	}
}

// Rules returns a result with one finding for each rule that found something.
func (f *Redaction) Rules() redact.Result {
	var r redact.Result
	for rule := range f.counts {
		r.Findings = append(r.Findings, redact.Finding{Rule: rule})
	}
	return r
}

// pushback is a reader that can look ahead.
type pushback struct {
	r   io.Reader
	buf []byte
	end error // what r ended with
}

// Read implements io.Reader.
func (p *pushback) Read(b []byte) (int, error) {
	if len(p.buf) == 0 {
		if p.end != nil {
			return 0, p.end
		}
		return p.r.Read(b)
	}
	n := copy(b, p.buf)
	p.skip(n)
	return n, nil
}

func (p *pushback) skip(n int) { p.buf = p.buf[n:] }

// head returns what comes next, 1 to n bytes, or nothing at the end. It waits
// for no more than there is.
func (p *pushback) head(n int) ([]byte, error) {
	for len(p.buf) == 0 && p.end == nil {
		p.more(n)
	}
	if len(p.buf) == 0 && p.end != io.EOF {
		return nil, p.end
	}
	return p.buf[:min(n, len(p.buf))], nil
}

func (p *pushback) more(n int) {
	b := make([]byte, max(n, 4096))
	got, err := p.r.Read(b)
	p.buf, p.end = append(p.buf, b[:got]...), err
}

// recording keeps what is read through it.
type recording struct {
	r    io.Reader
	kept []byte
}

func (r *recording) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.kept = append(r.kept, b[:n]...)
	return n, err
}

// document takes the JSON object or array that comes next, if one of at most
// limit bytes does and nothing follows it in its line; else it takes nothing and
// returns nil.
func (p *pushback) document(limit int) ([]byte, error) {
	from := &recording{r: p}
	dec := jsontext.NewDecoder(from, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := dec.ReadToken(); err != nil || len(from.kept) > limit {
			p.buf = slices.Concat(from.kept, p.buf)
			if p.end != nil && p.end != io.EOF {
				return nil, p.end
			}
			return nil, nil
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	doc := from.kept[:dec.InputOffset():dec.InputOffset()]
	p.buf = slices.Concat(from.kept[len(doc):], p.buf)
	for n := 0; ; n++ {
		for n >= len(p.buf) && p.end == nil {
			p.more(1)
		}
		if n == len(p.buf) || p.buf[n] == '\n' {
			return doc, nil
		}
		if c := p.buf[n]; c != ' ' && c != '\t' && c != '\r' || n > maxBlank {
			p.buf = slices.Concat(doc, p.buf)
			return nil, nil
		}
	}
}
