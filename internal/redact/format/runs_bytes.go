package format

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// minReadable is the shortest stretch of ASCII that is read between other bytes: 12 of
// hexadecimal and base32, of which there is little; of base64 16, so that a megabyte of
// noise has one by chance.
const (
	minReadable = 12
	minStretch  = 16
)

// plainRuns decodes the stretches of hexadecimal and base32 in a run, also where other
// letters touch them, and reads the text in them.
func (n *nest) plainRuns(run []byte, level int) (r rule.Rule, from, to int, err error) {
	const all = noHex | noUpper32 | noLower32
	var done [3]int // where the stretch of each kind ended that was read last
	// A stretch of 24 covers one of the places that are looked at.
	for i := minRun - 1; i < len(run); i += minRun {
		if runBytes[run[i]]&all == all {
			continue
		}
		for k, no := range [...]runByte{noHex, noUpper32, noLower32} {
			if runBytes[run[i]]&no != 0 || i < done[k] {
				continue
			}
			b, e := i, i+1
			for b > 0 && runBytes[run[b-1]]&no == 0 {
				b--
			}
			for e < len(run) && runBytes[run[e]]&no == 0 {
				e++
			}
			if done[k] = e; e-b < minRun {
				continue
			}
			if r, err = n.plainRun(run[b:e], no == noHex, level); r != rule.None || err != nil {
				return r, b, e, err
			}
		}
	}
	return rule.None, 0, 0, nil
}

// plainRun decodes a run of hexadecimal, or of base32 (RFC 4648 section 6), from every
// place at which a byte may begin.
func (n *nest) plainRun(run []byte, isHex bool, level int) (rule.Rule, error) {
	places := 8
	if isHex {
		places = 2
	}
	var d []byte
	for from := range places {
		if isHex {
			if !hasReadableHex(run[from:]) {
				continue
			}
			d = unhexed(d[:0], run[from:])
		} else {
			d = unbase32(d[:0], run[from:])
		}
		if err := n.spend(len(d)); err != nil {
			return rule.None, err
		}
		if r, read, err := n.decoded(d, level); r != rule.None || err != nil || read {
			if r != rule.None || err != nil {
				return r, err
			}
			continue
		}
		if r, err := n.readStretches(d, minReadable, false, level); r != rule.None || err != nil {
			return r, err
		}
	}
	return rule.None, nil
}

// hasReadableHex reports whether hexadecimal has enough bytes of ASCII in a row.
func hasReadableHex(run []byte) bool {
	n := 0
	for i := 0; i+1 < len(run); i += 2 {
		if !textByte[char.Unhex(run[i])<<4|char.Unhex(run[i+1])] {
			n = 0
		} else if n++; n >= minReadable {
			return true
		}
	}
	return false
}

// readBinary reads the text between the other bytes that a run of base64 holds, at each of
// the four places at which it may begin except those in skip.
func (n *nest) readBinary(run []byte, skip byte, level int) (rule.Rule, error) {
	const groups = 4 // that a stretch covers, of four characters each
	for shift := range 4 {
		if skip>>shift&1 != 0 {
			continue
		}
		code := run[min(shift, len(run)):]
		count := len(code) / 4
		for k := groups - 1; k < count; k += groups {
			if !isASCIIGroup(code[4*k:]) {
				continue
			}
			b, e := k, k+1
			for b > 0 && isASCIIGroup(code[4*b-4:]) {
				b--
			}
			for e < count && isASCIIGroup(code[4*e:]) {
				e++
			}
			k = e - e%groups - 1
			if e-b < groups {
				continue
			}
			d := unbase64(nil, code[max(0, 4*b-4):min(len(code), 4*e+4)])
			if err := n.spend(len(d)); err != nil {
				return rule.None, err
			}
			if r, err := n.readStretches(d, minStretch, isMediaCode(run), level); r != rule.None || err != nil {
				return r, err
			}
		}
	}
	return rule.None, nil
}

// isMediaCode reports whether a run of base64 begins as that of a picture does.
func isMediaCode(run []byte) bool {
	var head [24]byte
	return mediaName(unbase64(head[:0], run[:min(len(run), 32)])) != ""
}

// isASCIIGroup reports whether the three bytes of the first four characters are ASCII.
func isASCIIGroup(code []byte) bool {
	g := (*[4]byte)(code)
	return sextet[g[0]]&0x20|sextet[g[1]]&0x08|sextet[g[2]]&0x02 == 0
}

// readStretches reads the stretches of ASCII in d that are long enough. In a picture or
// a font only secrets count: those name their makers.
func (n *nest) readStretches(d []byte, least int, media bool, level int) (rule.Rule, error) {
	for i := 0; i < len(d); i++ {
		start := i
		for i < len(d) && textByte[d[i]] {
			i++
		}
		if i-start < least {
			continue
		}
		if level >= maxLevels {
			return rule.None, unscannable("text encoded more than 4 times", nil)
		}
		found, err := n.spans(d[start:i], level+1)
		if err != nil {
			return rule.None, within(err, "between bytes that are not text")
		}
		best := rule.None
		for _, sp := range found {
			if !media || sp.Rule.IsSecret() {
				best = max(best, sp.Rule)
			}
		}
		if best == rule.Card {
			best = rule.PIIField // its mask would show digits
		}
		if best != rule.None {
			return best, nil
		}
	}
	return rule.None, nil
}
