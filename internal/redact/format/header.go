package format

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact/engine"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// Header redacts the fields of a message's head, as redact.Engine documents it.
func (e *Reader) Header(h map[string][]string) (map[string][]string, []finding.Finding) {
	var list []finding.Finding
	out := make(map[string][]string, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		clean, found := e.headerName(name, out)
		list = append(list, found...)
		values := make([]string, len(h[name]))
		for i, v := range h[name] {
			values[i], found = e.headerValue(name, v)
			list = append(list, found...)
		}
		if found = e.across(h[name], values); len(found) > 0 {
			list = append(list, found...)
		}
		out[clean] = values
	}
	if len(list) == 0 {
		return h, nil
	}
	return out, list
}

// headerName returns a name, or one that stands for it and is new in out: a
// mask is no token (RFC 9110 section 5.6.2).
func (e *Reader) headerName(name string, out map[string][]string) (string, []finding.Finding) {
	text := []byte(name)
	if e.familiarHeaders().of(text) != nil {
		return name, nil
	}
	found := e.nameFindings(name)
	if len(found) == 0 {
		e.familiarHeaders().keep(text, fieldname.None)
		return name, nil
	}
	for n := 1; ; n++ {
		plain := "Redacted-" + strconv.Itoa(n)
		if _, taken := out[plain]; !taken {
			return plain, found
		}
	}
}

// nameFindings returns what is found in a field's name, which is written in any case on
// its way, and in what is encoded in it.
func (e *Reader) nameFindings(name string) (list []finding.Finding) {
	defer func() {
		if recover() != nil || e.Engine == nil {
			list = engine.Hidden([]byte(name)).Findings
		}
	}()
	if e.Engine == nil {
		return nil
	}
	for _, form := range [...]string{name, strings.ToLower(name), strings.ToUpper(name)} {
		d := e.nest(len(form))
		spans, err := d.spans([]byte(form), 0)
		d.done()
		if err != nil {
			spans = []span.Span{{Start: 0, End: len(name), Rule: rule.Fault}}
		}
		if len(spans) > 0 {
			return finding.FromSpans(spans, 0, nil)
		}
	}
	if e.Literals.HasFold([]byte(name)) {
		return []finding.Finding{{Rule: rule.Names[rule.Literal], Offset: 0, Length: len(name)}}
	}
	return nil
}

// across masks the values of one name, each of them whole, where something
// shows only in all of them together: readers join them (RFC 9110 section 5.3).
// values are was, each redacted by itself; those in which something was found
// stand for what they were.
func (e *Reader) across(was, values []string) []finding.Finding {
	if len(was) < 2 || !slices.Equal(was, values) {
		return nil
	}
	r := e.Text([]byte(strings.Join(was, "")))
	if !r.Found() {
		return nil
	}
	for i, v := range values {
		values[i] = string(e.AppendMask(nil, rule.Fault, []byte(v)))
	}
	return r.Findings
}

// headerValue redacts one value.
func (e *Reader) headerValue(name, value string) (out string, list []finding.Finding) {
	defer func() {
		if recover() != nil {
			r := engine.Hidden([]byte(value))
			out, list = string(r.Out), r.Findings
		}
	}()
	if e.Engine == nil || value == "" {
		if value == "" {
			return value, nil
		}
		r := engine.Hidden([]byte(value))
		return string(r.Out), r.Findings
	}
	secrets := e.Class.Has(rule.Field)
	switch low := strings.ToLower(name); {
	case low == "cookie" && secrets:
		return e.cookies(value, false)
	case low == "set-cookie" && secrets:
		return e.cookies(value, true)
	case low == "access-control-allow-credentials":
		// It says whether credentials may be sent, and holds none: true.
	case fieldname.CanHold(e.NameKind([]byte(name)), []byte(value)), secrets && fieldname.IsCredential(name):
		if mask.Len([]byte(value)) == len(value) {
			return value, nil
		}
		k := fieldname.Of([]byte(name))
		r := rule.Field
		if k != fieldname.None {
			r = fieldRule(k)
		}
		return string(e.AppendMask(nil, r, []byte(value))), []finding.Finding{{Rule: rule.Names[r], Offset: 0, Length: len(value)}}
	case isURL(value):
		return e.URL(value)
	}
	return e.headerText(value)
}

func isURL(v string) bool {
	scheme, _, ok := strings.Cut(v, "://")
	return ok && len(scheme) > 0 && len(scheme) < 16 && !strings.ContainsAny(v, " \t\r\n,<>\"")
}

// headerText redacts a value in which anything may be wrapped.
func (e *Reader) headerText(value string) (string, []finding.Finding) {
	s := []byte(value)
	var list []finding.Finding
	for n := 0; n < maxReadings; n++ {
		d := e.nest(len(s))
		r, exact, err := d.leaf(s, 0)
		d.done()
		if err != nil {
			break
		}
		if !r.Found() {
			return string(s), list
		}
		switch {
		case n > 0:
			list = later(list, r, len(value))
		case exact:
			list = r.Findings
		default:
			d := draft{in: s}
			d.whole(0, len(s), r.Findings)
			list = d.findings
		}
		s = r.Out
	}
	r := engine.Hidden([]byte(value))
	return string(e.AppendMask(nil, rule.Fault, []byte(value))), r.Findings
}

// cookies masks the values of "a=b; c=d"; of a cookie that is set only the
// first is one, the others say how it is kept (RFC 6265 sections 4.1, 4.2).
func (e *Reader) cookies(value string, set bool) (string, []finding.Finding) {
	d := draft{in: []byte(value)}
	for i, first := 0, true; i <= len(value); first = false {
		end := i + indexOr(d.in[i:], ';')
		eq := i + indexOr(d.in[i:end], '=')
		from := min(eq+1, end)
		if eq == end {
			// A cookie without a name is all value.
			for from = i; from < end && d.in[from] == ' '; from++ {
			}
		}
		switch text := d.in[from:end]; {
		case set && !first:
			d.take(i, end, e.Text(d.in[i:end]))
		case len(text) > 0 && mask.Len(text) != len(text):
			d.findings = append(d.findings, finding.Finding{Rule: rule.Names[rule.Field], Offset: from, Length: end - from})
			d.replace(from, end, e.AppendMask(nil, rule.Field, text))
		}
		i = end + 1
	}
	r := d.result()
	return string(r.Out), r.Findings
}
