package format

import (
	"bytes"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// formBody redacts a form (application/x-www-form-urlencoded). Names and
// values are decoded; under a name that says its value is secret or personal
// the value is masked, as in JSON. What was not touched keeps its encoding.
func (n *nest) formBody(b []byte, level int) (finding.Result, error) {
	d := draft{in: b}
	for i := 0; i <= len(b); {
		end := i + indexOr(b[i:], '&')
		if err := n.pair(&d, i, end, level); err != nil {
			return finding.Result{}, within(err, "the field at byte "+strconv.Itoa(i))
		}
		i = end + 1
	}
	return d.result(), nil
}

// indexOr returns where c stands in s first, or s's length.
func indexOr(s []byte, c byte) int {
	if i := bytes.IndexByte(s, c); i >= 0 {
		return i
	}
	return len(s)
}

// pair redacts the name and the value in [from, to).
func (n *nest) pair(d *draft, from, to, level int) error {
	eq := from + indexOr(d.in[from:to], '=')
	name := formDecoded(d.in[from:eq])
	if err := n.field(d, from, eq, name, level); err != nil || eq == to {
		return err
	}
	value := formDecoded(d.in[eq+1 : to])
	if k := n.e.NameKind(name); fieldname.CanHold(k, value) {
		if mask.Len(value) != len(value) {
			r := fieldRule(k)
			d.findings = append(d.findings, finding.Finding{Rule: rule.Names[r], Offset: eq + 1, Length: to - eq - 1})
			d.replace(eq+1, to, formEncoded(n.e.AppendMask(nil, r, value)))
		}
		return nil
	}
	return n.field(d, eq+1, to, value, level)
}

// field redacts a name or a value that stands in [from, to) and reads text.
func (n *nest) field(d *draft, from, to int, text []byte, level int) error {
	r, exact, err := n.leaf(text, level)
	if err != nil || !r.Found() {
		return err
	}
	if exact && bytes.Equal(text, d.in[from:to]) {
		for _, f := range r.Findings {
			d.findings = append(d.findings, finding.Finding{Rule: f.Rule, Offset: from + f.Offset, Length: f.Length})
		}
	} else {
		d.whole(from, to, r.Findings)
	}
	d.replace(from, to, formEncoded(r.Out))
	return nil
}

// fieldRule is the rule under which a name has its value masked.
func fieldRule(k fieldname.Kind) rule.Rule {
	if k.IsSecret() {
		return rule.Field
	}
	return rule.PIIField
}

// formDecoded returns raw decoded once: "+" is a blank, and an escape that is
// none stays as it is.
func formDecoded(raw []byte) []byte {
	if bytes.IndexByte(raw, '%') < 0 && bytes.IndexByte(raw, '+') < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch b, ok := char.HexByte(raw, i+1); {
		case raw[i] == '%' && ok:
			out = append(out, b)
			i += 2
		case raw[i] == '+':
			out = append(out, ' ')
		default:
			out = append(out, raw[i])
		}
	}
	return out
}

func formEncoded(text []byte) []byte { return []byte(escapeQuery(string(text))) }
