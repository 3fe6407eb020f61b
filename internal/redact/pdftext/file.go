package pdftext

import (
	"bytes"
	"strconv"
)

// object is an object of the file.
type object struct {
	ref
	at    int // its offset in the file, or that of the stream that it is in
	value any
	// raw is the content of a stream as it is in the file, whose dict is value. It is nil for other objects.
	raw     []byte
	decoded []byte // of a form, once it was decoded
	isRead  bool   // its content was read as a page's, a font's or the file's own
	isTold  bool   // its strings were written
}

// scanFile finds all objects.
func (r *reader) scanFile() {
	var trailers []dict
	for at := 0; at < len(r.data); {
		n := bytes.Index(r.data[at:], []byte("obj"))
		if n < 0 {
			trailers = r.findTrailers(trailers, r.data[at:])
			break
		}
		trailers = r.findTrailers(trailers, r.data[at:at+n])
		r.spendSteps(n + 32)
		number, generation, ok := readHead(r.data[max(0, at+n-24) : at+n])
		if at += n + 3; !ok {
			continue
		}
		o := &object{ref: ref{number, generation}, at: at}
		at = r.readObject(o)
		if r.addObject(o); o.raw != nil && o.isType("XRef") {
			trailers = append(trailers, o.value.(dict))
			o.isRead = true
		}
	}
	for _, t := range trailers {
		if own := r.objectOf(t["Encrypt"]); own != nil {
			own.isTold = true
		}
		if r.crypt == nil && r.openCrypt(t) {
			break
		}
	}
	for _, o := range r.list[:len(r.list):len(r.list)] {
		if o.raw != nil && o.isType("ObjStm") {
			r.readObjectStream(o)
		}
	}
}

// readHead reads "12 0 " at the end of b, before the keyword obj.
func readHead(b []byte) (number, generation int, ok bool) {
	fields := bytes.Fields(b)
	if len(b) == 0 || !isSpace(b[len(b)-1]) || len(fields) < 2 {
		return 0, 0, false
	}
	generation, err := strconv.Atoi(string(fields[len(fields)-1]))
	head := fields[len(fields)-2]
	digits := len(head)
	for digits > 0 && head[digits-1] >= '0' && head[digits-1] <= '9' {
		digits--
	}
	number, wrong := strconv.Atoi(string(head[digits:]))
	return number, generation, err == nil && wrong == nil && len(head)-digits <= 10
}

// findTrailers appends the trailers in b.
func (r *reader) findTrailers(to []dict, b []byte) []dict {
	for len(to) < 1000 {
		n := bytes.Index(b, []byte("trailer"))
		if n < 0 {
			break
		}
		l := lexer{budget: r.budget, b: b, at: n + len("trailer")}
		if v, _ := l.readValue(0); v != nil {
			if d, is := v.(dict); is {
				to = append(to, d)
			}
		}
		b = b[min(len(b), max(l.at, n+1)):]
	}
	return to
}

// readObject reads the object at o.at, and returns the offset after it.
func (r *reader) readObject(o *object) int {
	l := lexer{budget: r.budget, b: r.data, at: o.at}
	o.value, _ = l.readValue(0)
	d, is := o.value.(dict)
	if !is {
		return l.at
	}
	l.skipSpace()
	rest := r.data[l.at:]
	if !bytes.HasPrefix(rest, []byte("stream")) {
		return l.at
	}
	start := l.at + len("stream")
	for start < len(r.data) && r.data[start] == ' ' {
		start++
	}
	if start < len(r.data) && r.data[start] == '\r' {
		start++
	}
	if start < len(r.data) && r.data[start] == '\n' {
		start++
	}
	if n, is := d["Length"].(float64); is && n >= 0 && n <= float64(len(r.data)-start) {
		end := start + int(n)
		if after := bytes.TrimLeft(r.data[end:min(len(r.data), end+16)], "\r\n \t"); bytes.HasPrefix(after,
			[]byte("endstream")) || bytes.HasPrefix(after, []byte("endobj")) {
			o.raw = r.data[start:end:end]
			return end
		}
	}
	n := bytes.Index(r.data[start:], []byte("endstream"))
	if n < 0 {
		n = len(r.data) - start
		r.gaps = addGap(r.gaps, Damaged)
	}
	r.spendSteps(n)
	o.raw = bytes.TrimSuffix(bytes.TrimSuffix(r.data[start:start+n:start+n], []byte("\n")), []byte("\r"))
	return start + n
}

// addObject lists an object. The last one in the file with a number has it.
func (r *reader) addObject(o *object) {
	if len(r.list) == maxObjects {
		panic(TooMuch)
	}
	r.list = append(r.list, o)
	if have := r.objects[o.number]; have == nil || have.at <= o.at {
		r.objects[o.number] = o
	}
}

// readObjectStream lists the objects in a stream.
func (r *reader) readObjectStream(o *object) {
	o.isRead = true
	b := r.decodeStream(o)
	first, is := o.value.(dict)["First"].(float64)
	if !is || first < 0 || int(first) > len(b) {
		r.gaps = addGap(r.gaps, Damaged)
		return
	}
	head := lexer{budget: r.budget, b: b[:int(first)]}
	for {
		number, ok := head.readValue(0)
		offset, both := head.readValue(0)
		n, is := number.(float64)
		k, are := offset.(float64)
		if !ok || !both || !is || !are || k < 0 || first+k > float64(len(b)) {
			return
		}
		l := lexer{budget: r.budget, b: b, at: int(first + k)}
		v, _ := l.readValue(0)
		r.addObject(&object{ref: ref{int(n), 0}, at: o.at, value: v})
	}
}

// isType reports whether an object is a dict of that type.
func (o *object) isType(t name) bool {
	d, _ := o.value.(dict)
	have, _ := d["Type"].(name)
	return have == t
}

// followRefs returns the value that v refers to.
func (r *reader) followRefs(v any) any {
	for range 8 {
		at, is := v.(ref)
		if !is {
			return v
		}
		o := r.objects[at.number]
		if o == nil {
			return nil
		}
		v = o.value
	}
	return nil
}

// objectOf returns the object that v refers to, or nil.
func (r *reader) objectOf(v any) *object {
	for range 8 {
		at, is := v.(ref)
		if !is {
			return nil
		}
		o := r.objects[at.number]
		if o == nil {
			return nil
		}
		if _, again := o.value.(ref); !again {
			return o
		}
		v = o.value
	}
	return nil
}

func (r *reader) dictOf(v any) dict {
	d, _ := r.followRefs(v).(dict)
	return d
}

func (r *reader) nameOf(v any) name {
	n, _ := r.followRefs(v).(name)
	return n
}

func (r *reader) numberOf(v any, absent float64) float64 {
	if n, is := r.followRefs(v).(float64); is {
		return n
	}
	return absent
}

// listOf returns the list that v is or refers to; of any other value one that holds it.
func (r *reader) listOf(v any) list {
	switch v := r.followRefs(v).(type) {
	case nil:
		return nil
	case list:
		return v
	}
	return list{v}
}
