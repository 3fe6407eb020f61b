package pdftext

import (
	"bytes"
	"math"
	"strings"
)

// matrix is a b c d e f of PDF.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// multiplyBy returns m applied first, then n.
func (m matrix) multiplyBy(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// state is what the operators q and Q keep and restore.
type state struct {
	matrix                                  matrix
	font                                    *font
	fontSize, charSpace, wordSpace, leading float64
	stretch, rise                           float64
}

// pen is the end of the last text on a page, and what was met there.
type pen struct {
	x, y, length        float64
	isDown              bool // something was written
	hasText, hasPicture bool
	alternate           strings.Builder // replacement texts of glyphs
	forms               int
}

// painter runs the operators of a content stream that write text.
type painter struct {
	*reader
	*pen
	state
	resources    dict
	saved        []state
	glyphs, line matrix // of the next glyph, and of its line
	operands     list
	depth        int // of forms in forms
}

const (
	maxForms    = 20_000 // of one page
	maxFormNest = 12
	maxSaved    = 512
	maxOperands = 256

	// A gap in a line is a space from here on, and a step across it a new line, in sizes of the font.
	spaceGap, lineGap = 0.16, 0.5
)

// paintContent writes the text of a content stream.
func (r *reader) paintContent(p *pen, b []byte, resources dict, m matrix, depth int) {
	painter{reader: r, pen: p, resources: resources, depth: depth, glyphs: identity, line: identity,
		state: state{matrix: m, stretch: 1}}.runOperators(b)
}

func (p painter) runOperators(b []byte) {
	l := lexer{budget: p.budget, b: b, isContent: true}
	for {
		v, ok := l.readValue(0)
		if !ok {
			if l.at >= len(l.b) {
				return
			}
			l.at++
			continue
		}
		op, is := v.(word)
		if !is {
			if len(p.operands) < maxOperands {
				p.operands = append(p.operands, v)
			}
			continue
		}
		if op == "BI" {
			p.skipInlineImage(&l)
		} else {
			p.applyOperator(op)
		}
		p.operands = p.operands[:0]
	}
}

// skipInlineImage passes over a picture in the stream.
func (p *painter) skipInlineImage(l *lexer) {
	p.hasPicture = true
	for {
		v, ok := l.readValue(0)
		if !ok {
			if l.at >= len(l.b) {
				return
			}
			l.at++
			continue
		}
		if v == word("ID") {
			break
		}
	}
	for l.at < len(l.b) {
		n := bytes.Index(l.b[l.at:], []byte("EI"))
		if n < 0 {
			p.spendSteps(len(l.b) - l.at)
			l.at = len(l.b)
			return
		}
		p.spendSteps(n)
		l.at += n + 2
		if isSpace(l.b[l.at-3]) && (l.at == len(l.b) || isSpace(l.b[l.at])) {
			return
		}
	}
}

// numberAt returns a number among the operands, counted from the end.
func (p *painter) numberAt(fromEnd int) float64 {
	if i := len(p.operands) - fromEnd; i >= 0 {
		n, _ := p.operands[i].(float64)
		return n
	}
	return 0
}

func (p *painter) lastOperand() any {
	if len(p.operands) == 0 {
		return nil
	}
	return p.operands[len(p.operands)-1]
}

func (p *painter) readMatrix() matrix {
	return matrix{p.numberAt(6), p.numberAt(5), p.numberAt(4), p.numberAt(3), p.numberAt(2), p.numberAt(1)}
}

// applyOperator runs one operator.
func (p *painter) applyOperator(op word) {
	switch op {
	case "q":
		if len(p.saved) < maxSaved {
			p.saved = append(p.saved, p.state)
		}
	case "Q":
		if n := len(p.saved) - 1; n >= 0 {
			p.state, p.saved = p.saved[n], p.saved[:n]
		}
	case "cm":
		p.matrix = p.readMatrix().multiplyBy(p.matrix)
	case "BT":
		p.glyphs, p.line = identity, identity
	case "Tf":
		p.fontSize = p.numberAt(1)
		if len(p.operands) > 1 {
			if n, is := p.operands[len(p.operands)-2].(name); is {
				p.state.font = p.findFont(n)
			}
		}
	case "Tc":
		p.charSpace = p.numberAt(1)
	case "Tw":
		p.wordSpace = p.numberAt(1)
	case "Tz":
		p.stretch = p.numberAt(1) / 100
	case "TL":
		p.leading = p.numberAt(1)
	case "Ts":
		p.rise = p.numberAt(1)
	case "Td":
		p.moveLine(p.numberAt(2), p.numberAt(1))
	case "TD":
		p.leading = -p.numberAt(1)
		p.moveLine(p.numberAt(2), p.numberAt(1))
	case "Tm":
		p.line = p.readMatrix()
		p.glyphs = p.line
	case "T*":
		p.moveLine(0, -p.leading)
	case "Tj":
		p.showString(p.lastOperand())
	case "'":
		p.moveLine(0, -p.leading)
		p.showString(p.lastOperand())
	case `"`:
		p.wordSpace, p.charSpace = p.numberAt(3), p.numberAt(2)
		p.moveLine(0, -p.leading)
		p.showString(p.lastOperand())
	case "TJ":
		items, _ := p.lastOperand().(list)
		for _, v := range items {
			if n, is := v.(float64); is {
				p.advancePen(-n / 1000 * p.fontSize * p.stretch)
			} else {
				p.showString(v)
			}
		}
	case "BDC", "DP":
		p.noteAlternate()
	case "gs":
		d := p.dictOf(p.dictOf(p.dictOf(p.resources["ExtGState"])[p.operandName()]))
		if f := p.listOf(d["Font"]); len(f) == 2 {
			p.state.font, p.fontSize = p.fontOf(f[0]), p.numberOf(f[1], p.fontSize)
		}
	case "Do":
		p.drawObject(p.dictOf(p.resources["XObject"])[p.operandName()])
	}
}

func (p *painter) operandName() name {
	n, _ := p.lastOperand().(name)
	return n
}

// findFont returns the font of a name in the resources; of a stream without resources one that has the name
// anywhere.
func (p *painter) findFont(n name) *font {
	if f := p.fontOf(p.dictOf(p.resources["Font"])[n]); f != nil {
		if p.named[n] == nil {
			p.named[n] = f
		}
		return f
	}
	return p.named[n]
}

func (p *painter) moveLine(x, y float64) {
	p.line = matrix{1, 0, 0, 1, x, y}.multiplyBy(p.line)
	p.glyphs = p.line
}

func (p *painter) advancePen(x float64) {
	p.glyphs = matrix{1, 0, 0, 1, x, 0}.multiplyBy(p.glyphs)
}

// showString writes a string.
func (p *painter) showString(v any) {
	s, _ := v.(text)
	if len(s) == 0 {
		return
	}
	f := p.state.font
	if f == nil {
		f = p.fontUnknown()
	}
	p.separateWords()
	width, unknown, out := 0.0, 0, make([]byte, 0, 2*len(s))
	for len(s) > 0 {
		code, size := f.nextCode(s)
		s = s[size:]
		chars, known := f.decodeCode(code)
		if !known {
			unknown++
			chars = "\uFFFD"
		}
		out = append(out, chars...)
		width += f.widthOf(code)*p.fontSize + p.charSpace
		if size == 1 && code == ' ' {
			width += p.wordSpace
		}
		p.spendSteps(16)
	}
	if unknown > 0 {
		p.gaps = addGap(p.gaps, NoUnicode)
	}
	p.writeText(strings.ReplaceAll(string(out), "\u00a0", " "))
	p.advancePen(width * p.stretch)
	m := p.glyphs.multiplyBy(p.matrix)
	p.length, p.x, p.y = width*p.stretch*math.Hypot(m[0], m[1]), m[4], m[5]
	p.isDown, p.hasText = true, true
}

// addGap adds a gap that can occur often.
func addGap(to []Gap, g Gap) []Gap {
	if n := len(to); n > 0 && to[n-1] == g {
		return to
	}
	return append(to, g)
}

// fontUnknown returns the font of text that has none.
func (r *reader) fontUnknown() *font {
	if r.unknown == nil {
		r.unknown = r.readFont(dict{})
	}
	return r.unknown
}

// separateWords writes a space or the end of a line if the text that follows does not join the last one.
func (p *painter) separateWords() {
	if !p.isDown {
		return
	}
	m := p.glyphs.multiplyBy(p.matrix)
	wide, high := math.Hypot(m[0], m[1]), math.Hypot(m[2], m[3])
	size := math.Abs(p.fontSize) * high
	if wide == 0 || size == 0 {
		return
	}
	dx, dy := m[4]-p.x, m[5]-p.y
	along, across := (dx*m[0]+dy*m[1])/wide, math.Abs(dy*m[0]-dx*m[1])/wide
	switch {
	case across > lineGap*size, along < -lineGap*size-0.15*math.Abs(p.length):
		p.writeText("\n")
	case along > spaceGap*size:
		p.writeText(" ")
	}
}

// noteAlternate keeps the replacement text of what follows.
func (p *painter) noteAlternate() {
	d, is := p.lastOperand().(dict)
	if !is {
		d = p.dictOf(p.dictOf(p.resources["Properties"])[p.operandName()])
	}
	for _, key := range []name{"ActualText", "Alt", "E"} {
		if s := decodeString(p.reader.textOf(d[key])); s != "" {
			addTo(&p.reader.size, len(s), maxText)
			p.alternate.WriteString(s)
			p.alternate.WriteByte('\n')
		}
	}
}

// drawObject writes the text of a form.
func (p *painter) drawObject(v any) {
	o := p.objectOf(v)
	if o == nil || o.raw == nil {
		return
	}
	d := o.value.(dict)
	if p.nameOf(d["Subtype"]) == "Image" {
		p.hasPicture = true
		return
	}
	p.drawForm(p.pen, o, p.resources, p.matrix, p.depth+1)
}

// drawForm writes the text of a form in resources that it may inherit.
func (r *reader) drawForm(p *pen, o *object, resources dict, m matrix, depth int) {
	if o.isRead = true; depth > maxFormNest {
		return
	}
	if p.forms++; p.forms > maxForms {
		panic(TooMuch)
	}
	d := o.value.(dict)
	if own := r.dictOf(d["Resources"]); own != nil {
		resources = own
	}
	if list := r.listOf(d["Matrix"]); len(list) == 6 {
		var own matrix
		for i, v := range list {
			own[i] = r.numberOf(v, 0)
		}
		m = own.multiplyBy(m)
	}
	if o.decoded == nil {
		o.decoded = r.decodeStream(o)
	}
	r.paintContent(p, o.decoded, resources, m, depth)
}
