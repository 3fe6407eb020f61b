package pdftext

import (
	"bytes"
	"compress/flate"
	"io"
)

// isPicture reports whether a filter's output is a picture.
func isPicture(filter name) bool {
	switch filter {
	case "DCTDecode", "DCT", "JPXDecode", "CCITTFaxDecode", "CCF", "JBIG2Decode":
		return true
	}
	return false
}

// decodeStream returns the content of a stream: nil of a picture, and what could be decoded of a damaged one.
func (r *reader) decodeStream(o *object) []byte {
	d := o.value.(dict)
	filters, params := r.listOf(firstOf(d, "Filter", "F")), r.listOf(firstOf(d, "DecodeParms", "DP"))
	b := o.raw
	if r.crypt != nil && !o.isType("XRef") {
		isPlain := len(filters) > 0 && r.nameOf(filters[0]) == "Crypt" ||
			o.isType("Metadata") && !r.crypt.hasMetadata
		if !isPlain {
			b = r.crypt.decryptBytes(o.ref, b, r.crypt.streams)
			r.spendSteps(len(b))
		}
	}
	for i, f := range filters {
		if i == 8 {
			r.gaps = addGap(r.gaps, Damaged)
			return nil
		}
		var p dict
		if i < len(params) {
			p = r.dictOf(params[i])
		}
		filter := r.nameOf(f)
		if isPicture(filter) {
			return nil
		}
		b = r.decodeFilter(filter, b, p)
		addTo(&r.decoded, len(b), maxDecoded)
	}
	return b
}

// firstOf returns the value of the first of two keys that a dict has.
func firstOf(d dict, keys ...name) any {
	for _, k := range keys {
		if v, is := d[k]; is {
			return v
		}
	}
	return nil
}

func (r *reader) decodeFilter(filter name, b []byte, params dict) []byte {
	switch filter {
	case "FlateDecode", "Fl":
		return r.undoPredictor(r.inflateData(b), params)
	case "LZWDecode", "LZW":
		return r.undoPredictor(r.decodeLZW(b, r.numberOf(params["EarlyChange"], 1) != 0), params)
	case "ASCIIHexDecode", "AHx":
		r.spendSteps(len(b))
		if n := bytes.IndexByte(b, '>'); n >= 0 {
			b = b[:n]
		}
		return decodeHex(b)
	case "ASCII85Decode", "A85":
		r.spendSteps(len(b))
		return decodeASCII85(b)
	case "RunLengthDecode", "RL":
		return r.decodeRuns(b)
	case "Crypt":
		return b
	}
	r.gaps = addGap(r.gaps, Damaged)
	return nil
}

// inflateData decodes zlib. What is damaged is read to the damage.
func (r *reader) inflateData(b []byte) []byte {
	b = bytes.TrimLeft(b, "\r\n")
	if len(b) > 2 && b[0]&0x0f == 8 && (int(b[0])<<8|int(b[1]))%31 == 0 {
		b = b[2:]
	}
	in := flate.NewReader(bytes.NewReader(b))
	var out []byte
	buf := make([]byte, min(32<<10, 64+8*len(b)))
	for {
		n, err := in.Read(buf)
		out = append(out, buf[:n]...)
		if r.spendSteps(n + 1); len(out) > maxStream {
			panic(TooMuch)
		}
		if err == io.EOF {
			return out
		}
		if err != nil {
			r.gaps = addGap(r.gaps, Damaged)
			return out
		}
	}
}

// decodeLZW decodes LZW as PDF has it: with codes that grow one code early.
func (r *reader) decodeLZW(b []byte, early bool) []byte {
	const clear, end = 256, 257
	var (
		out           []byte
		table         = make([]lzwString, 0, 4096)
		bits, held    uint
		width         = uint(9)
		last          lzwString
		hasLast, soon = false, 0
	)
	if early {
		soon = 1
	}
	for _, c := range b {
		bits, held = bits<<8|uint(c), held+8
		if held < width {
			continue
		}
		held -= width
		code := int(bits >> held & (1<<width - 1))
		bits &= 1<<held - 1
		switch at := len(out); {
		case code == end:
			return out
		case code == clear:
			table, width, hasLast = table[:0], 9, false
			continue
		case code < 256:
			out = append(out, byte(code))
			last, table = growTable(table, last, hasLast, at, 1)
		case code-258 < len(table):
			e := table[code-258]
			out = append(out, out[e.start:e.start+e.size]...)
			last, table = growTable(table, last, hasLast, at, e.size)
		case code-258 == len(table) && hasLast:
			out = append(append(out, out[last.start:last.start+last.size]...), out[last.start])
			last, table = growTable(table, last, hasLast, at, last.size+1)
		default:
			r.gaps = addGap(r.gaps, Damaged)
			return out
		}
		hasLast = true
		if r.spendSteps(len(out) - last.start); len(out) > maxStream {
			panic(TooMuch)
		}
		for width < 12 && len(table)+258+soon >= 1<<width {
			width++
		}
	}
	return out
}

// lzwString is a string of the table of LZW, by its place in the output.
type lzwString struct{ start, size int }

// growTable adds the last string and one byte more to the table, both of which are in the output already. It
// returns the string of that size at the offset, which is the last one next time.
func growTable(table []lzwString, last lzwString, hasLast bool, at, size int) (lzwString, []lzwString) {
	if hasLast && len(table) < 4096-258 {
		table = append(table, lzwString{last.start, last.size + 1})
	}
	return lzwString{at, size}, table
}

func (r *reader) decodeRuns(b []byte) (out []byte) {
	for len(b) > 1 && b[0] != 128 {
		n := int(b[0])
		if n < 128 {
			n = min(n+1, len(b)-1)
			out, b = append(out, b[1:1+n]...), b[1+n:]
		} else {
			n = 257 - n
			out, b = append(out, bytes.Repeat(b[1:2], n)...), b[2:]
		}
		if r.spendSteps(n); len(out) > maxStream {
			panic(TooMuch)
		}
	}
	return out
}

// decodeHex decodes hexadecimal digits, and passes over other bytes.
func decodeHex(b []byte) []byte {
	out := make([]byte, 0, len(b)/2+1)
	var n, held byte
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			continue
		}
		n = n<<4 | c
		if held++; held == 2 {
			out, n, held = append(out, n), 0, 0
		}
	}
	if held == 1 {
		out = append(out, n<<4)
	}
	return out
}

func decodeASCII85(b []byte) (out []byte) {
	b = bytes.TrimPrefix(bytes.TrimLeft(b, " \r\n\t"), []byte("<~"))
	var n uint32
	held := 0
	for _, c := range b {
		if c == '~' {
			break
		}
		if c == 'z' && held == 0 {
			out = append(out, 0, 0, 0, 0)
			continue
		}
		if c < '!' || c > 'u' {
			continue
		}
		n = n*85 + uint32(c-'!')
		if held++; held == 5 {
			out = append(out, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
			n, held = 0, 0
		}
	}
	if held > 1 {
		for range 5 - held {
			n = n*85 + 84
		}
		out = append(out, []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8)}[:held-1]...)
	}
	return out
}

// undoPredictor undoes the differences of bytes that make data smaller.
func (r *reader) undoPredictor(b []byte, params dict) []byte {
	predictor := int(r.numberOf(params["Predictor"], 1))
	if predictor < 2 {
		return b
	}
	bound := func(key name, absent float64) int {
		return int(min(max(r.numberOf(params[key], absent), 1), 1<<16))
	}
	pixel := max(1, bound("Colors", 1)*bound("BitsPerComponent", 8)/8)
	row := max(1, (bound("Columns", 1)*bound("Colors", 1)*bound("BitsPerComponent", 8)+7)/8)
	r.spendSteps(len(b))
	if predictor == 2 {
		for start := 0; start+row <= len(b); start += row {
			for i := start + pixel; i < start+row; i++ {
				b[i] += b[i-pixel]
			}
		}
		return b
	}
	out := make([]byte, 0, len(b))
	above := make([]byte, min(row, len(b)))
	for len(b) > 1 {
		kind, line := b[0], b[1:min(len(b), row+1)]
		b = b[1+len(line):]
		for i := range line {
			var left, corner byte
			if i >= pixel {
				left, corner = line[i-pixel], above[i-pixel]
			}
			switch kind {
			case 1:
				line[i] += left
			case 2:
				line[i] += above[i]
			case 3:
				line[i] += byte((int(left) + int(above[i])) / 2)
			case 4:
				line[i] += choosePaeth(left, above[i], corner)
			}
		}
		out, above = append(out, line...), line
		if len(b) > 0 && len(line) < row {
			break
		}
	}
	return out
}

// choosePaeth returns the neighbour that is nearest to left + above - corner.
func choosePaeth(left, above, corner byte) byte {
	p := int(left) + int(above) - int(corner)
	distance := func(c byte) int { return max(p-int(c), int(c)-p) }
	switch a, b, c := distance(left), distance(above), distance(corner); {
	case a <= b && a <= c:
		return left
	case b <= c:
		return above
	}
	return corner
}
