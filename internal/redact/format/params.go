package format

import (
	"bytes"
	"mime"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

// param is one parameter of a field: filename="x" (RFC 2183), filename*=x
// (RFC 8187). [start, end) is its value as it stands.
type param struct {
	key        string
	start, end int
	quoted     bool
}

// params reads the parameters after the first ";" of a field's value, loosely.
func params(v []byte) []param {
	var out []param
	i := indexOr(v, ';')
	for i < len(v) {
		i++
		eq := i
		for eq < len(v) && v[eq] != '=' && v[eq] != ';' {
			eq++
		}
		if eq == len(v) || v[eq] == ';' {
			i = eq
			continue
		}
		p := param{key: strings.ToLower(strings.TrimSpace(string(v[i:eq]))), start: eq + 1}
		for p.start < len(v) && char.Class[v[p.start]]&char.Space != 0 {
			p.start++
		}
		p.end = p.start
		if p.start < len(v) && v[p.start] == '"' {
			p.quoted = true
			for p.end++; p.end < len(v) && v[p.end] != '"'; p.end++ {
				if v[p.end] == '\\' {
					p.end++
				}
			}
			p.end = min(p.end+1, len(v))
		} else {
			p.end += indexOr(v[p.start:], ';')
		}
		out = append(out, p)
		i = p.end + indexOr(v[p.end:], ';')
	}
	return out
}

// text returns what a parameter of v says.
func (p param) text(v []byte) []byte {
	raw := v[p.start:p.end]
	if p.quoted {
		raw = bytes.TrimSuffix(raw[1:], []byte(`"`))
		var out []byte
		for i := 0; i < len(raw); i++ {
			// Browsers write a backslash as it is: only a quote is escaped.
			if raw[i] == '\\' && i+1 < len(raw) && (raw[i+1] == '"' || raw[i+1] == '\\') {
				i++
			}
			out = append(out, raw[i])
		}
		return decodedWord(out)
	}
	if strings.HasSuffix(p.key, "*") {
		if k := bytes.LastIndexByte(raw, '\''); k >= 0 {
			raw = raw[k+1:]
		}
		return bytes.TrimSpace(unpercent(raw))
	}
	return decodedWord(bytes.TrimSpace(raw))
}

// unpercent decodes percent-encoding only: "+" is a plus.
func unpercent(raw []byte) []byte {
	return formDecoded(bytes.ReplaceAll(raw, []byte("+"), []byte("%2B")))
}

// decodedWord decodes the encoded words of a field (RFC 2047).
func decodedWord(text []byte) []byte {
	if !bytes.Contains(text, []byte("=?")) {
		return text
	}
	var d mime.WordDecoder
	s, err := d.DecodeHeader(string(text))
	if err != nil {
		return text
	}
	return []byte(s)
}

// fieldLine redacts one field of a part's head: each parameter by what it
// says, then the line as it stands.
func (n *nest) fieldLine(line []byte, level int) (finding.Result, error) {
	colon := indexOr(line, ':')
	value := line[colon:]
	d := draft{in: line}
	for _, p := range params(value) {
		r, exact, err := n.leaf(p.text(value), level)
		if err != nil {
			return finding.Result{}, err
		}
		if !r.Found() {
			continue
		}
		from, to := colon+p.start, colon+p.end
		if exact && p.quoted && bytes.Equal(p.text(value), line[from+1:max(to-1, from+1)]) {
			for _, f := range r.Findings {
				d.findings = append(d.findings, finding.Finding{Rule: f.Rule, Offset: from + 1 + f.Offset, Length: f.Length})
			}
		} else {
			d.whole(from, to, r.Findings)
		}
		d.replace(from, to, p.written(value, r.Out))
	}
	if len(d.findings) > 0 {
		return d.result(), nil
	}
	plain := decodedWord(line)
	r, err := n.text(plain, level)
	if err != nil || !r.Found() {
		return finding.Result{Out: line}, err
	}
	if bytes.Equal(plain, line) {
		return r, nil
	}
	d.whole(0, len(line), r.Findings)
	d.replace(0, len(line), r.Out)
	return d.result(), nil
}

// written returns the value of a parameter that shall say text.
func (p param) written(v, text []byte) []byte {
	if strings.HasSuffix(p.key, "*") && !p.quoted {
		raw := v[p.start:p.end]
		head := raw[:bytes.LastIndexByte(raw, '\'')+1]
		return append(bytes.Clone(head), escapePath(string(text))...)
	}
	out := []byte{'"'}
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == '\r' || c == '\n':
			out = append(out, ' ')
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
