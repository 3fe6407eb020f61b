package pdftext

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// font tells the characters and the widths of codes.
type font struct {
	isComposite bool
	toUnicode   map[uint32]string
	simple      [256]string // characters of a simple font, "" if unknown
	// Of a composite font:
	spaces   []codeSpace // lengths of codes, if it says them
	isMixed  bool        // codes below 0x80 are one byte, and ASCII
	isUTF16  bool
	firstCID uint32 // the CID of the character before the space, if CIDs of ASCII are known

	widths    map[uint32]float64 // of codes, in thousandths
	width     float64            // of other codes
	isGuessed bool               // widths are those of a similar font
	scale     float64            // of a width, 0.001 except for fonts that draw their glyphs
}

// codeSpace is a range of codes of one length.
type codeSpace struct {
	size     int
	low, top uint32
}

// fontOf returns the font that v refers to, or nil.
func (r *reader) fontOf(v any) *font {
	var key any
	if o := r.objectOf(v); o != nil {
		key = o
		o.isRead = true
		if f, known := r.fonts[key]; known {
			return f
		}
	}
	d := r.dictOf(v)
	if d == nil {
		return nil
	}
	f := r.readFont(d)
	if key != nil {
		r.fonts[key] = f
	}
	return f
}

func (r *reader) readFont(d dict) *font {
	f := &font{widths: map[uint32]float64{}, scale: 0.001, width: 500}
	if o := r.objectOf(d["ToUnicode"]); o != nil && o.raw != nil {
		o.isRead = true
		f.toUnicode = map[uint32]string{}
		f.spaces = r.readCMap(r.decodeStream(o), f.toUnicode)
	}
	if r.nameOf(d["Subtype"]) == "Type0" {
		r.readComposite(f, d)
	} else {
		f.spaces = nil
		r.readSimple(f, d)
	}
	return f
}

// readComposite reads a font whose codes can have several bytes.
func (r *reader) readComposite(f *font, d dict) {
	f.isComposite, f.width = true, 1000
	var inner dict
	if list := r.listOf(d["DescendantFonts"]); len(list) > 0 {
		inner = r.dictOf(list[0])
	}
	encoding := string(r.nameOf(d["Encoding"]))
	if o := r.objectOf(d["Encoding"]); o != nil && o.raw != nil {
		o.isRead = true
		if spaces := r.readCMap(r.decodeStream(o), map[uint32]string{}); len(spaces) > 0 {
			f.spaces = spaces
		}
	} else if strings.HasPrefix(encoding, "Identity") {
		f.spaces = nil
	}
	switch {
	case strings.Contains(encoding, "UTF16"), strings.Contains(encoding, "UCS2"):
		f.isUTF16 = true
	case encoding != "" && !strings.HasPrefix(encoding, "Identity"):
		f.isMixed = true
	}
	switch string(r.textOf(r.dictOf(inner["CIDSystemInfo"])["Ordering"])) {
	case "Japan1", "GB1", "CNS1", "Korea1":
		f.firstCID = 1
	}
	f.width = r.numberOf(inner["DW"], 1000)
	w := r.listOf(inner["W"])
	for i := 0; i+1 < len(w); {
		from, next := r.numberOf(w[i], 0), r.followRefs(w[i+1])
		if list, is := next.(list); is {
			for k, v := range list {
				r.setWidth(f, from+float64(k), r.numberOf(v, f.width))
			}
			i += 2
			continue
		}
		if i+2 >= len(w) {
			break
		}
		to := min(r.numberOf(next, 0), 1<<16)
		for ; from <= to; from++ {
			r.setWidth(f, from, r.numberOf(w[i+2], f.width))
		}
		i += 3
	}
}

func (r *reader) setWidth(f *font, code, width float64) {
	if code >= 0 && code < 1<<16 {
		addTo(&r.mapped, 1, maxMapped)
		f.widths[uint32(code)] = width
	}
}

// readSimple reads a font whose codes have one byte.
func (r *reader) readSimple(f *font, d dict) {
	encoding := r.followRefs(d["Encoding"])
	base, _ := encoding.(name)
	changes, _ := encoding.(dict)
	descriptor := r.dictOf(d["FontDescriptor"])
	if changes != nil {
		base = r.nameOf(changes["BaseEncoding"])
	}
	for c := range 256 {
		f.simple[c] = decodeByte(base, byte(c))
	}
	if o := r.objectOf(descriptor["FontFile"]); o != nil && o.raw != nil && base == "" {
		o.isRead = true
		r.readType1(f, r.decodeStream(o))
	}
	code := 0
	for _, v := range r.listOf(changes["Differences"]) {
		switch v := r.followRefs(v).(type) {
		case float64:
			code = int(v)
		case name:
			if code >= 0 && code < 256 {
				f.simple[code] = decodeGlyph(v)
			}
			code++
		}
	}
	first := r.numberOf(d["FirstChar"], 0)
	widths := r.listOf(d["Widths"])
	f.width = r.numberOf(descriptor["MissingWidth"], 0)
	for i, w := range widths[:min(len(widths), 256)] {
		r.setWidth(f, first+float64(i), r.numberOf(w, 0))
	}
	if len(widths) == 0 {
		f.guessWidths(string(r.nameOf(d["BaseFont"])))
	}
	if m := r.listOf(d["FontMatrix"]); r.nameOf(d["Subtype"]) == "Type3" && len(m) == 6 {
		f.scale = r.numberOf(m[0], 0.001)
	}
}

// readType1 reads the codes that a font program gives its glyphs.
func (r *reader) readType1(f *font, b []byte) {
	b, _, _ = bytes.Cut(b, []byte("eexec"))
	for range 512 {
		_, after, found := bytes.Cut(b, []byte("dup "))
		if !found {
			return
		}
		b = after
		r.spendSteps(64)
		fields := strings.Fields(string(b[:min(len(b), 64)]))
		if len(fields) < 3 || fields[2] != "put" || !strings.HasPrefix(fields[1], "/") {
			continue
		}
		if code, err := strconv.ParseUint(fields[0], 10, 8); err == nil {
			f.simple[code] = decodeGlyph(name(fields[1][1:]))
		}
	}
}

// The widths of the ASCII characters in the fonts that every viewer has.
var (
	helvetica = []float64{278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
		556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
		1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611,
		722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
		333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278,
		556, 500, 722, 500, 500, 500, 334, 260, 334, 584}
	times = []float64{250, 333, 408, 500, 500, 833, 778, 180, 333, 333, 500, 564, 250, 333, 250, 278,
		500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 278, 278, 564, 564, 564, 444,
		921, 722, 667, 667, 722, 611, 556, 722, 722, 333, 389, 722, 611, 889, 722, 722, 556, 722, 667, 556, 611,
		722, 722, 944, 722, 722, 611, 333, 278, 333, 469, 500,
		333, 444, 500, 444, 500, 444, 333, 500, 500, 278, 278, 500, 278, 778, 500, 500, 500, 500, 333, 389, 278,
		500, 500, 722, 500, 500, 444, 480, 200, 480, 541}
)

// guessWidths takes the widths of a font that every viewer has.
func (f *font) guessWidths(base string) {
	f.isGuessed, f.width = true, 556
	table, factor := helvetica, 1.0
	switch {
	case strings.Contains(base, "Courier"), strings.Contains(base, "Mono"):
		f.width = 600
		return
	case strings.Contains(base, "Times"), strings.Contains(base, "Serif"):
		table = times
	}
	if strings.Contains(base, "Bold") {
		factor = 1.06 // rather too wide: then no gap is seen in a word
	}
	for i, w := range table {
		f.widths[uint32(' '+i)] = w * factor
	}
}

// decodeByte returns the character of a code in one of the encodings of PDF.
func decodeByte(base name, c byte) string {
	switch {
	case base == "MacRomanEncoding" || base == "MacExpertEncoding":
		return string(charmap.Macintosh.DecodeByte(c))
	case c == 0xae && base != "WinAnsiEncoding":
		return "fi"
	case c == 0xaf && base != "WinAnsiEncoding":
		return "fl"
	case c < ' ':
		return ""
	}
	return string(charmap.Windows1252.DecodeByte(c))
}

// glyphs are the names of the characters of ASCII that are not their own, and of ligatures.
var glyphs = map[string]string{
	"space": " ", "exclam": "!", "quotedbl": `"`, "numbersign": "#", "dollar": "$", "percent": "%",
	"ampersand": "&", "quotesingle": "'", "quoteright": "'", "quoteleft": "`", "grave": "`",
	"parenleft": "(", "parenright": ")", "asterisk": "*", "plus": "+", "comma": ",", "hyphen": "-", "minus": "-",
	"period": ".", "slash": "/", "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5",
	"six": "6", "seven": "7", "eight": "8", "nine": "9", "colon": ":", "semicolon": ";", "less": "<", "equal": "=",
	"greater": ">", "question": "?", "at": "@", "bracketleft": "[", "backslash": `\`, "bracketright": "]",
	"asciicircum": "^", "underscore": "_", "braceleft": "{", "bar": "|", "braceright": "}", "asciitilde": "~",
	"fi": "fi", "fl": "fl", "ff": "ff", "ffi": "ffi", "ffl": "ffl", "nbspace": " ", "sfthyphen": "-",
	"hyphenminus": "-", "endash": "–", "emdash": "—", "quotedblleft": "“", "quotedblright": "”", "bullet": "•",
}

// decodeGlyph returns the characters of a glyph's name, "" if the name says nothing.
func decodeGlyph(n name) string {
	s, _, _ := strings.Cut(string(n), ".")
	if known, is := glyphs[s]; is || len(s) == 1 {
		return cmpOr(known, s)
	}
	digits := ""
	switch {
	case strings.HasPrefix(s, "uni") && len(s) >= 7 && len(s)%4 == 3:
		return decodeUTF16(decodeHex([]byte(s[3:])))
	case len(s) >= 5 && s[0] == 'u':
		digits = s[1:]
	}
	if code, err := strconv.ParseUint(digits, 16, 21); err == nil {
		return string(rune(code))
	}
	if strings.IndexFunc(s, func(c rune) bool { return c >= '0' && c <= '9' }) >= 0 {
		return ""
	}
	return string(utf8.RuneError) // a letter of another alphabet, or a sign
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func decodeUTF16(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
	}
	return string(utf16.Decode(units))
}

// readCMap reads which characters codes are, and the lengths of the codes.
func (r *reader) readCMap(b []byte, into map[uint32]string) (spaces []codeSpace) {
	l := lexer{budget: r.budget, b: b, isContent: true}
	var stack list
	for {
		v, ok := l.readValue(0)
		if !ok {
			if l.at >= len(l.b) {
				return spaces
			}
			l.at++
			continue
		}
		op, is := v.(word)
		if !is {
			if stack = append(stack, v); len(stack) > 4096 {
				stack = stack[:0]
			}
			continue
		}
		switch op {
		case "endcodespacerange":
			for ; len(stack) > 1 && len(spaces) < 64; stack = stack[2:] {
				low, _ := stack[0].(text)
				top, _ := stack[1].(text)
				if len(low) > 0 && len(low) <= 4 {
					spaces = append(spaces, codeSpace{len(low), codeOf(low), codeOf(top)})
				}
			}
		case "endbfchar":
			for ; len(stack) > 1; stack = stack[2:] {
				code, _ := stack[0].(text)
				to, _ := stack[1].(text)
				r.mapCode(into, codeOf(code), decodeUTF16(to))
			}
		case "endbfrange":
			for ; len(stack) > 2; stack = stack[3:] {
				r.mapRange(into, stack[0], stack[1], stack[2])
			}
		}
		stack = stack[:0]
	}
}

func (r *reader) mapCode(into map[uint32]string, code uint32, to string) {
	addTo(&r.mapped, 1+len(to)/16, maxMapped)
	into[code] = to
}

func (r *reader) mapRange(into map[uint32]string, low, top, to any) {
	first, _ := low.(text)
	last, _ := top.(text)
	from, end := codeOf(first), codeOf(last)
	end = min(end, from+1<<16)
	switch to := to.(type) {
	case list:
		for i, v := range to {
			s, _ := v.(text)
			r.mapCode(into, from+uint32(i), decodeUTF16(s))
		}
	case text:
		for code := from; code <= end && len(to) > 1; code++ {
			s := bytes.Clone(to)
			n := uint32(s[len(s)-2])<<8 + uint32(s[len(s)-1]) + code - from
			s[len(s)-2], s[len(s)-1] = byte(n>>8), byte(n)
			r.mapCode(into, code, decodeUTF16(s))
		}
	}
}

// codeOf returns the number that the bytes of a code are.
func codeOf(b []byte) (n uint32) {
	for _, c := range b[:min(len(b), 4)] {
		n = n<<8 | uint32(c)
	}
	return n
}

// nextCode returns the code that b begins with, and its length.
func (f *font) nextCode(b []byte) (code uint32, size int) {
	switch {
	case !f.isComposite:
		return uint32(b[0]), 1
	case len(f.spaces) > 0:
		for size := 1; size <= min(4, len(b)); size++ {
			code := codeOf(b[:size])
			for _, s := range f.spaces {
				if s.size == size && code >= s.low && code <= s.top {
					return code, size
				}
			}
		}
	case f.isMixed && b[0] < 0x80:
		return uint32(b[0]), 1
	}
	size = min(2, len(b))
	return codeOf(b[:size]), size
}

// decodeCode returns the characters of a code. known is false if the font does not say them.
func (f *font) decodeCode(code uint32) (s string, known bool) {
	if s, is := f.toUnicode[code]; is {
		return s, true
	}
	switch {
	case !f.isComposite:
		s = f.simple[byte(code)]
	case f.isUTF16:
		s = decodeUTF16([]byte{byte(code >> 8), byte(code)})
	case f.isMixed && code < 0x80:
		s = string(rune(code))
	case f.isMixed && f.toUnicode == nil:
		s = string(utf8.RuneError) // a character of another alphabet
	case f.firstCID > 0 && code >= f.firstCID && code < f.firstCID+95:
		s = string(rune(' ' + code - f.firstCID))
	case f.firstCID > 0:
		s = string(utf8.RuneError)
	}
	return s, s != "" || code == 0 || !f.isComposite && code <= ' '
}

// widthOf returns how far a code advances, in units of the font's size.
func (f *font) widthOf(code uint32) float64 {
	if w, is := f.widths[code]; is {
		return w * f.scale
	}
	return f.width * f.scale
}
