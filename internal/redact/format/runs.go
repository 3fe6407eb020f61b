package format

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/encoded"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

const minRun = encoded.MinRun

// isRun is the class of a byte of base64, either alphabet.
const isRun = encoded.IsRun

// runs decodes what looks like base64, base64url, base32 or hexadecimal in s and
// returns those runs in which something was found, whole, under the rule of
// what is inside. What is masked already is left out.
func (n *nest) runs(s []byte, masked []span.Span, level int) ([]span.Span, error) {
	var out []span.Span
	for i := 0; i+minRun <= len(s); {
		// No run of 24 begins before a byte that is none.
		if j := i + minRun - 1; char.Class[s[j]]&isRun == 0 {
			i = j + 1
			continue
		}
		start := i
		for k := i + minRun - 1; k >= i; k-- {
			if char.Class[s[k]]&isRun == 0 {
				start = k + 1
				break
			}
		}
		run, end := lines(s, start)
		if i = end; len(run) < minRun || isMasked(masked, start, end) {
			continue
		}
		r, from, to, err := n.run(run, level)
		switch {
		case err != nil && n.peeks:
			r = rule.Fault
		case err != nil:
			return nil, err
		}
		if r != rule.None {
			stop := end
			if len(run) == end-start { // not of several lines
				start, stop = start+from, start+to
			}
			for stop < len(s) && s[stop] == '=' {
				stop++
			}
			out = append(out, span.Span{Start: start, End: stop, Rule: r})
		}
	}
	return out, nil
}

// lines returns the run that begins at i and where it ends. Lines of one
// length are one run, as base64 is written in mail (RFC 2045 section 6.8).
func lines(s []byte, i int) (run []byte, end int) {
	end = runEnd(s, i)
	width := end - i
	run = s[i:end]
	if width < 32 || width%4 != 0 {
		return run, end
	}
	run = run[:len(run):len(run)]
	for {
		next := end
		if next < len(s) && s[next] == '\r' {
			next++
		}
		if next >= len(s) || s[next] != '\n' {
			return run, end
		}
		next++
		stop := runEnd(s, next)
		if stop == next || stop-next > width || stop-next < width && !encoded.EndsLine(s, stop) {
			return run, end
		}
		run = append(run, s[next:stop]...)
		if end = stop; stop-next < width {
			return run, end
		}
	}
}

func runEnd(s []byte, i int) int {
	for i < len(s) && char.Class[s[i]]&isRun != 0 {
		i++
	}
	return i
}

// isMasked says whether [start, end) lies inside one of the spans.
func isMasked(spans []span.Span, start, end int) bool {
	lo, hi := 0, len(spans)
	for lo < hi {
		if mid := (lo + hi) / 2; spans[mid].End < end {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(spans) && spans[lo].Start <= start
}

// run decodes one run in every way that gives something to read. What is found is in
// [from, to) of it.
func (n *nest) run(run []byte, level int) (r rule.Rule, from, to int, err error) {
	if n.peeks && !encoded.MayHold(run) {
		return rule.None, 0, 0, nil
	}
	reader := runReader{nest: n, level: level}
	search := encoded.Search{Reader: &reader, OnlyText: n.peeks, Scratch: n.scratch}
	n.scratch = nil // what is decoded may hold runs itself
	over, from, to := search.Run(run)
	if r, err = reader.found, reader.err; over && err == nil && from == 0 && to == len(run) {
		if from, to = search.TrimPath(run); reader.err != nil {
			from, to = 0, len(run)
		}
	}
	n.scratch = search.Scratch
	return r, from, to, err
}

// runReader reads what a run holds, for one nest.
type runReader struct {
	*nest
	level int
	found rule.Rule
	err   error
}

func (r *runReader) ReadWhole(d []byte) (over, read bool) {
	if r.err = r.spend(len(d)); r.err != nil {
		return true, false
	}
	r.found, read, r.err = r.decoded(d, r.level)
	return r.found != rule.None || r.err != nil, read
}

// ReadStretch reads text between other bytes. In a picture or a font only secrets count: those name their makers.
func (r *runReader) ReadStretch(d []byte, media bool) (over bool) {
	if r.err = r.spend(len(d)); r.err != nil {
		return true
	}
	if r.level >= maxLevels {
		r.err = unscannable("text encoded more than 4 times", nil)
		return true
	}
	found, err := r.spans(d, r.level+1)
	if err != nil {
		r.err = within(err, "between bytes that are not text")
		return true
	}
	r.found = encoded.Strongest(found, media)
	return r.found != rule.None
}

// decoded reads what a run held: a private key, text in any shape, something
// compressed. Other bytes are hashes, identifiers, pictures: read is false then.
func (n *nest) decoded(d []byte, level int) (r rule.Rule, read bool, err error) {
	if encoded.IsPrivateKey(d) && n.e.Class.Has(rule.PrivateKey) {
		return rule.PrivateKey, true, nil
	}
	if n.peeks && !encoded.IsReadable(d) && encoded.FindWide(d).Size == 0 {
		return rule.None, false, nil
	}
	isPlain := packing(d) == packNone && sealedName(d) == "" && encoded.FindWide(d).Size == 0
	if isPlain && (!encoded.IsReadable(d) || mediaName(d) != "") {
		return rule.None, false, nil
	}
	if level >= maxLevels {
		return rule.None, false, unscannable("text encoded more than 4 times", nil)
	}
	doc, err := n.doc("", d, level+1, true)
	if err != nil {
		return rule.None, false, within(err, "in base64")
	}
	return strongest(doc.Findings), true, nil
}
