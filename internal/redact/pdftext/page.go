package pdftext

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// readPages writes the text of the pages.
func (r *reader) readPages() {
	var pages []page
	seen := map[*object]bool{}
	for _, o := range slices.Backward(r.list) {
		if r.objects[o.number] == o && o.isType("Catalog") {
			if pages = r.walkPages(nil, o.value.(dict)["Pages"], nil, seen, 0); len(pages) > 0 {
				break
			}
		}
	}
	if len(pages) == 0 {
		for _, o := range r.list {
			if o.isType("Page") {
				pages = append(pages, page{o, nil})
				seen[o] = true
			}
		}
	}
	r.pages = len(pages)
	for i, p := range pages {
		r.page = i + 1
		r.readPage(p)
		r.endSection()
	}
	r.page = 0
	for _, o := range r.list {
		if o.isType("Page") && !seen[o] { // superseded, or in no tree
			r.readPage(page{o, nil})
		}
	}
}

// page is a page with the resources that it inherits.
type page struct {
	*object
	resources dict
}

// walkPages appends the pages below a node of the tree.
func (r *reader) walkPages(to []page, node any, resources dict, seen map[*object]bool, depth int) []page {
	o := r.objectOf(node)
	if o == nil {
		r.gaps = addGap(r.gaps, Damaged)
	}
	if o == nil || seen[o] || depth > maxDepth {
		return to
	}
	if seen[o] = true; len(to) >= maxPages {
		panic(TooMuch)
	}
	d, _ := o.value.(dict)
	if own := r.dictOf(d["Resources"]); own != nil {
		resources = own
	}
	kids, hasKids := d["Kids"]
	if !hasKids {
		return append(to, page{o, resources})
	}
	for _, kid := range r.listOf(kids) {
		r.spendSteps(16)
		to = r.walkPages(to, kid, resources, seen, depth+1)
	}
	return to
}

// readPage writes the text of a page and its annotations.
func (r *reader) readPage(p page) {
	d, _ := p.value.(dict)
	resources := p.resources
	if own := r.dictOf(d["Resources"]); own != nil {
		resources = own
	}
	var content []byte
	contents := r.listOf(d["Contents"])
	if at, is := d["Contents"].(ref); is && len(contents) == 0 {
		contents = list{at}
	}
	for _, v := range contents {
		o := r.objectOf(v)
		if o == nil {
			r.gaps = addGap(r.gaps, Damaged)
		} else if o.raw != nil {
			o.isRead = true
			content = append(append(content, r.decodeStream(o)...), '\n')
			addTo(&r.decoded, len(content), maxDecoded)
		}
	}
	at := new(pen)
	r.paintContent(at, content, resources, identity, 0)
	if at.hasPicture && !at.hasText {
		r.gaps = addGap(r.gaps, PictureOnly)
	}
	if at.hasText {
		r.writeText("\n")
	}
	r.text.WriteString(at.alternate.String())
	for _, v := range r.listOf(d["Annots"]) {
		r.spendSteps(64)
		r.readAnnotation(v)
	}
}

// readAnnotation writes the strings of an annotation, and the text of its appearance.
func (r *reader) readAnnotation(v any) {
	d := r.dictOf(v)
	if o := r.objectOf(v); o != nil {
		if o.isTold {
			return
		}
		o.isTold = true
	}
	for _, normal := range r.dictOf(d["AP"]) {
		list := []any{normal}
		if states, is := r.followRefs(normal).(dict); is && r.rawOf(normal) == nil {
			list = slices.Collect(maps.Values(states))
		}
		for _, v := range list {
			if o := r.objectOf(v); o != nil && o.raw != nil && !o.isRead {
				r.drawForm(new(pen), o, nil, identity, 0)
				r.writeText("\n")
			}
		}
	}
	r.writeStrings("", d, 0)
}

func (r *reader) rawOf(v any) []byte {
	if o := r.objectOf(v); o != nil {
		return o.raw
	}
	return nil
}

// readRest writes the strings of all other objects and the text of streams that no page has drawn.
func (r *reader) readRest() {
	for _, o := range r.list {
		r.spendSteps(16)
		if !o.isTold && !o.isType("XRef") {
			o.isTold = true
			r.writeStrings("", o.value, 0)
		}
		if o.raw != nil && !o.isRead {
			o.isRead = true
			r.readStream(o)
		}
	}
	r.endSection()
}

// isProgram reports whether a stream is a font, a table of colours or a function, which hold no text.
func (r *reader) isProgram(d dict) bool {
	switch r.nameOf(d["Subtype"]) {
	case "Type1C", "CIDFontType0C", "OpenType", "Image":
		return true
	}
	for _, key := range []name{"Length1", "FunctionType", "ShadingType", "PatternType", "N"} {
		if _, is := d[key]; is {
			return true
		}
	}
	return false
}

// readStream writes the text of a stream that no page has drawn.
func (r *reader) readStream(o *object) {
	d := o.value.(dict)
	if r.isProgram(d) {
		return
	}
	b := r.decodeStream(o)
	r.spendSteps(len(b))
	isContent := bytes.Contains(b, []byte("BT")) &&
		(bytes.Contains(b, []byte("Tj")) || bytes.Contains(b, []byte("TJ")))
	switch {
	case bytes.Contains(b, []byte("begincmap")):
	case o.isType("EmbeddedFile") && !isReadable(b):
		r.gaps = addGap(r.gaps, Attachment)
	case isContent && !o.isType("EmbeddedFile"):
		r.paintContent(new(pen), b, r.dictOf(d["Resources"]), identity, 0)
		r.writeText("\n")
	case isReadable(b):
		r.writeText(decodeString(b) + "\n")
	}
}

// isReadable reports whether b is text.
func isReadable(b []byte) bool {
	if len(b) == 0 || bytes.HasPrefix(b, []byte{0xfe, 0xff}) || bytes.HasPrefix(b, []byte{0xff, 0xfe}) {
		return len(b) > 0
	}
	strange := 0
	for _, c := range b[:min(len(b), 4096)] {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' {
			strange++
		}
	}
	return strange*32 <= min(len(b), 4096) && (utf8.Valid(b) || strange == 0)
}

// decodeString returns the characters of a string outside of pages.
func decodeString(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		return decodeUTF16(b[2:])
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		swapped := make([]byte, len(b)/2*2)
		for i := 0; i+1 < len(b); i += 2 {
			swapped[i], swapped[i+1] = b[i+1], b[i]
		}
		return decodeUTF16(swapped[2:])
	case utf8.Valid(b):
		return strings.TrimPrefix(string(b), "\ufeff")
	}
	s, err := charmap.Windows1252.NewDecoder().Bytes(b)
	if err != nil {
		return string(b)
	}
	return string(s)
}

// writeStrings writes the strings in a value, each on a line with its name: that of a form's field, else its key.
func (r *reader) writeStrings(label string, v any, depth int) {
	r.spendSteps(8)
	switch v := v.(type) {
	case text:
		if isReadable(v) {
			r.writeText(label + decodeString(v) + "\n")
		}
	case list:
		for _, v := range v {
			r.writeStrings(label, v, depth+1)
		}
	case dict:
		field := decodeString(r.textOf(v["T"]))
		_, isSignature := v["ByteRange"]
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "ID", "DA", "Panose", "CharSet", "Registry", "Ordering", "Parent":
				continue
			case "Contents":
				if isSignature {
					continue
				}
			}
			label := string(key) + ": "
			if (key == "V" || key == "DV") && field != "" {
				label = field + ": "
			}
			r.writeStrings(label, v[key], depth+1)
		}
	}
}
