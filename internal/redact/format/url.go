package format

import (
	"bytes"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact/engine"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// hiddenHost stands for a host in which something was found: a mask is no
// host. The name can never be resolved (RFC 2606 section 2).
const hiddenHost = "redacted.invalid"

// URL redacts a URL in any part, as redact.Engine documents it.
func (e *Reader) URL(raw string) (out string, list []finding.Finding) {
	defer func() {
		if recover() != nil {
			out, list = e.hiddenURL(raw)
		}
	}()
	if e.Engine == nil {
		return e.hiddenURL(raw)
	}
	s := []byte(raw)
	var all []finding.Finding
	for n := 0; n < maxReadings; n++ {
		d := e.nest(len(s))
		spans, err := d.urlSpans(s)
		d.done()
		if err != nil {
			return e.hiddenURL(raw)
		}
		if len(spans) == 0 {
			return string(s), all
		}
		if n == 0 {
			all = finding.FromSpans(spans, 0, nil)
		} else {
			all = later(all, finding.Result{Findings: finding.FromSpans(spans, 0, nil)}, len(raw))
		}
		s = e.applyURL(s, spans)
	}
	return e.hiddenURL(raw)
}

func (e *Reader) hiddenURL(raw string) (string, []finding.Finding) {
	r := engine.Hidden([]byte(raw))
	return escapePath(string(r.Out)), r.Findings
}

// urlSpans returns what is to be masked in a URL; what is a mask already,
// percent-encoded, is left out.
func (n *nest) urlSpans(s []byte) ([]span.Span, error) {
	all, err := n.spans(s, 0)
	if err != nil {
		return nil, err
	}
	host, info := authority(s)
	all = slices.DeleteFunc(all, func(sp span.Span) bool {
		// A user's name before a host is no address.
		return sp.Rule == rule.Email && sp.Start >= info.start && sp.Start < info.end && sp.End > host.start
	})
	all = append(all, n.hostSpans(s, host)...)
	if u := s[info.start:info.end]; len(u) > 0 && (bytes.IndexByte(u, ':') >= 0 || len(u) >= 16) {
		all = append(all, span.Span{Start: info.start, End: info.end, Rule: rule.URL})
	}
	at := indexOr(s, '?')
	if hash := indexOr(s, '#'); hash < at {
		at = hash
	}
	all = append(all, n.e.KeepSought(namedValues(s, min(at+1, len(s))))...)
	for i := range all {
		// A mask within the host cannot stand there.
		if sp := &all[i]; sp.Start < host.end && sp.End > host.start && host.start < host.end {
			if info.start == info.end && sp.Start >= host.start-len("//") {
				sp.Start = max(sp.Start, host.start)
			}
			sp.Start, sp.End = min(sp.Start, host.start), max(sp.End, host.end)
		}
	}
	var out []span.Span
	for _, sp := range span.Union(all) {
		if text := formDecoded(s[sp.Start:sp.End]); mask.Len(text) != len(text) {
			out = append(out, sp)
		}
	}
	return out, nil
}

// hostSpans returns what shows only where the case of a host's letters does not count.
func (n *nest) hostSpans(s []byte, host piece) []span.Span {
	name, r := s[host.start:host.end], rule.None
	if n.e.Literals.HasFold(name) {
		r = rule.Literal
	} else if _, found := n.e.Clean(bytes.ToUpper(name)); len(found) > 0 && found[0].Rule.IsSecret() {
		r = found[0].Rule
	}
	if r == rule.None {
		return nil
	}
	return []span.Span{{Start: host.start, End: host.end, Rule: r}}
}

// authority returns where a URL's host and port stand, and its credentials
// without their "@"; readers take "\" for "/".
func authority(s []byte) (host, info piece) {
	at := 0
	if n := bytes.Index(s, []byte("://")); n >= 0 && !bytes.ContainsAny(s[:n], "/?#") {
		at = n + 3
	} else if bytes.HasPrefix(s, []byte("//")) {
		at = 2
	} else {
		return piece{}, piece{}
	}
	end := len(s)
	if n := bytes.IndexAny(s[at:], `/?#\`); n >= 0 {
		end = at + n
	}
	host = piece{at, end}
	if n := bytes.LastIndexByte(s[at:end], '@'); n >= 0 {
		host.start = at + n + 1
		info = piece{at, at + n}
	}
	return host, info
}

// namedValues returns the values from i on whose names say that they are
// secret or personal.
func namedValues(s []byte, i int) []span.Span {
	var out []span.Span
	for i < len(s) {
		end := len(s)
		if n := bytes.IndexAny(s[i:], "&;?#"); n >= 0 {
			end = i + n
		}
		if eq := i + indexOr(s[i:end], '='); eq+1 < end {
			if k := fieldname.Of(decodedTwice(s[i:eq])); fieldname.CanHold(k, decodedTwice(s[eq+1:end])) {
				out = append(out, span.Span{Start: eq + 1, End: end, Rule: fieldRule(k)})
			}
		}
		i = end + 1
	}
	return out
}

func decodedTwice(name []byte) []byte { return formDecoded(formDecoded(name)) }

// applyURL puts masks into a URL.
func (e *Reader) applyURL(s []byte, spans []span.Span) []byte {
	host, _ := authority(s)
	var out []byte
	last := 0
	for _, sp := range spans {
		out = append(out, s[last:sp.Start]...)
		last = sp.End
		if host.start < host.end && sp.Start <= host.start && sp.End >= host.end {
			if sp.Start < host.start {
				out = append(append(out, escapePath(string(e.AppendMask(nil, sp.Rule, s[sp.Start:host.start])))...), '@')
			}
			out = append(out, hiddenHost...)
			if sp.End > host.end {
				out = append(append(out, '/'), escapePath(string(e.AppendMask(nil, sp.Rule, s[host.end:sp.End])))...)
			}
			continue
		}
		out = append(out, strings.ReplaceAll(escapePath(string(e.AppendMask(nil, sp.Rule, formDecoded(s[sp.Start:sp.End])))), ":", "%3A")...)
	}
	return append(out, s[last:]...)
}
