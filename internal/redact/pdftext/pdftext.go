// Package pdftext takes the text out of PDF documents, by page, so that it can be searched.
//
// It reads what its bytes hold instead of what a viewer shows: every object of the file, superseded ones among
// them, without the table of references. Text is that of pages (also of forms within them, invisible text and
// replacement text), annotations, form fields, outlines, properties, XML metadata, scripts and attachments.
// Pictures are not read, and glyphs that have no characters cannot be: Document.Gaps says so.
//
// Documents are hostile input. Time is bounded by the caller's context, which is checked every few thousand bytes;
// memory by limits on the input, the decoded bytes, the values and the text.
package pdftext

import (
	"bytes"
	"context"
	"slices"
)

// MaxSize is the most bytes of a document that is read.
const MaxSize = 10 << 20

const (
	maxDecoded = 64 << 20 // bytes of all decoded streams
	maxStream  = 16 << 20 // bytes of one decoded stream
	maxText    = 10 << 20 // bytes of the whole text
	maxValues  = 2 << 20  // values of all objects
	maxObjects = 200_000
	maxPages   = 10_000
	maxMapped  = 300_000 // codes of all fonts
	maxDepth   = 64      // of values in values, and of the tree of pages
)

// Gap is a reason for which text of a document is missing.
type Gap string

// The gaps.
const (
	TooLarge    Gap = "larger than 10 MB"
	TooMuch     Gap = "too much text, or too many objects"
	OutOfTime   Gap = "out of time"
	Encrypted   Gap = "encrypted"
	Damaged     Gap = "damaged"
	NoUnicode   Gap = "a font without characters"
	PictureOnly Gap = "a page that is a picture"
	Attachment  Gap = "an attachment that is not text"
)

// Section is text of one page, or of what belongs to no page.
type Section struct {
	Page int // from 1, 0 outside of pages
	Text []byte
}

// Document is the text of a document.
type Document struct {
	Sections []Section
	Pages    int
	Gaps     []Gap // sorted; empty if all the text was read
}

// IsRead reports whether all that is text was read. Pages can be pictures.
func (d *Document) IsRead() bool {
	return !slices.ContainsFunc(d.Gaps, func(g Gap) bool { return g != PictureOnly && g != Attachment })
}

// IsPDF reports whether data is a PDF document by its header.
func IsPDF(data []byte) bool {
	return bytes.Contains(data[:min(len(data), 1024)], []byte("%PDF-"))
}

// Read returns the text of a document. It returns what was read until ctx was done.
func Read(ctx context.Context, data []byte) *Document {
	if len(data) > MaxSize {
		return &Document{Gaps: []Gap{TooLarge}}
	}
	r := &reader{budget: &budget{ctx: ctx}, data: data, objects: map[int]*object{}, fonts: map[any]*font{},
		named: map[name]*font{}}
	r.readAll()
	slices.Sort(r.gaps)
	return &Document{Sections: r.sections, Pages: r.pages, Gaps: slices.Compact(r.gaps)}
}

// budget bounds the work on one document. What exceeds it panics with a Gap, which readAll recovers.
type budget struct {
	ctx                     context.Context
	steps                   int
	values, decoded, mapped int
	gaps                    []Gap
}

// spendSteps counts n steps, each about a byte's work.
func (b *budget) spendSteps(n int) {
	if b.steps += n; b.steps < 1<<14 {
		return
	}
	b.steps = 0
	if b.ctx.Err() != nil {
		panic(OutOfTime)
	}
}

// addTo counts n of what may be had max times.
func addTo(count *int, n, max int) {
	if *count += n; *count > max {
		panic(TooMuch)
	}
}

// reader is the state of one Read.
type reader struct {
	*budget
	data    []byte
	objects map[int]*object // by number, the last one
	list    []*object       // all
	crypt   *crypt
	fonts   map[any]*font  // by object or reference
	named   map[name]*font // by the name in any resources
	unknown *font

	sections []Section
	size     int // bytes of sections
	page     int // that is read
	pages    int
	text     bytes.Buffer
}

// readAll reads the document, and keeps what was read until a limit or a fault.
func (r *reader) readAll() {
	for _, part := range []func(){r.scanFile, r.readPages, r.readRest} {
		if !r.readPart(part) {
			return
		}
	}
	if len(r.list) == 0 {
		r.gaps = append(r.gaps, Damaged)
	}
}

// readPart runs one part, and reports whether it completed.
func (r *reader) readPart(part func()) (done bool) {
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		gap, known := fault.(Gap)
		if !known {
			gap = Damaged // a fault of this package, met in a damaged document
			reportFault(fault)
		}
		r.gaps, done = append(r.gaps, gap), false
		r.endSection()
	}()
	part()
	return true
}

// reportFault receives faults of this package. Tests replace it.
var reportFault = func(any) {}

// endSection ends the text of the page, or of what is in none.
func (r *reader) endSection() {
	if r.text.Len() > 0 {
		r.sections = append(r.sections, Section{r.page, bytes.Clone(r.text.Bytes())})
	}
	r.text.Reset()
}

// writeText adds to the text of the page.
func (r *reader) writeText(s string) {
	addTo(&r.size, len(s), maxText)
	r.text.WriteString(s)
}
