package encoded

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

const (
	// MinRun is the shortest run of base64, base32 or hexadecimal that is decoded: 18, 15 or 12 bytes.
	MinRun = 24
	// maxShifted bounds the runs that are decoded at any alignment, because a word may precede the base64;
	// longer ones begin where they begin.
	maxShifted = 64 << 10
	// minReadable and minStretch are the shortest stretches of ASCII that are read between other bytes: 12 of
	// hexadecimal and base32, of which there is little; of base64 16, so that a megabyte of noise has one by chance.
	minReadable = 12
	minStretch  = 16
)

// IsRun is the class of a byte of base64, in either alphabet.
const IsRun = char.Std64 | char.URL64

// Reader reads what a run holds. Its methods report whether the search is over.
type Reader interface {
	// ReadWhole reads d if it is text or another known form; read is false if it is not.
	ReadWhole(d []byte) (over, read bool)
	// ReadStretch reads text between other bytes. media says that they are those of a picture or a font.
	ReadStretch(d []byte, media bool) (over bool)
}

// Search is a search in what runs hold.
type Search struct {
	Reader
	// OnlyText says that ReadWhole gets only text of what base64 holds.
	OnlyText bool
	// Scratch is used for what is decoded, if it is not nil.
	Scratch []byte
}

// Run decodes one run in every way that gives something to read. over reports whether the reader ended the
// search; it did so for [from, to) of the run.
func (s *Search) Run(run []byte) (over bool, from, to int) {
	if over, from, to := s.plainRuns(run); over {
		return true, from, to
	}
	return s.Base64(run), 0, len(run)
}

// Base64 decodes one run of base64, or of hexadecimal as a whole.
func (s *Search) Base64(run []byte) (over bool) {
	var seen runByte
	for _, c := range run {
		seen |= runBytes[c]
	}
	if seen&noHex == 0 && !s.OnlyText {
		s.Scratch = Unhex(s.Scratch[:0], run)
		if over, _ := s.ReadWhole(s.Scratch); over {
			return true
		}
	}
	if s.OnlyText && (seen&noHex == 0 || seen&(upperByte|noBase32) == noBase32) {
		return false // a hash, a path, a name: base64 of text has capitals
	}
	ways, skip := byte(15), byte(0)
	if s.OnlyText {
		ways = findTexts(run)
	}
	for shift := 0; shift < 4 && len(run)-shift >= MinRun-3; shift++ {
		if ways>>shift&1 == 0 {
			continue
		}
		s.Scratch = Unbase64(s.Scratch[:0], run[shift:])
		over, read := s.ReadWhole(s.Scratch)
		if over {
			return true
		}
		if read {
			skip |= 1 << shift
		}
		if s.OnlyText && isAllText(s.Scratch) {
			return false // other places give nonsense
		}
		if len(run) > maxShifted {
			break
		}
	}
	return s.readBinary(run, skip)
}

// plainRuns decodes the stretches of hexadecimal and base32 in a run, also where other letters touch them.
func (s *Search) plainRuns(run []byte) (over bool, from, to int) {
	const all = noHex | noUpper32 | noLower32
	var done [3]int // where the stretch of each kind ended that was read last
	// A stretch of 24 covers one of the places that are looked at.
	for i := MinRun - 1; i < len(run); i += MinRun {
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
			if done[k] = e; e-b >= MinRun && s.plainRun(run[b:e], no == noHex) {
				return true, b, e
			}
		}
	}
	return false, 0, 0
}

// plainRun decodes a run of hexadecimal or of base32, from every place at which a byte may begin.
func (s *Search) plainRun(run []byte, isHex bool) (over bool) {
	places := 8
	if isHex {
		places = 2
	}
	for from := range places {
		if isHex {
			if !hasReadableHex(run[from:]) {
				continue
			}
			s.Scratch = Unhex(s.Scratch[:0], run[from:])
		} else {
			s.Scratch = Unbase32(s.Scratch[:0], run[from:])
		}
		over, read := s.ReadWhole(s.Scratch)
		if over || !read && s.readStretches(s.Scratch, minReadable, false) {
			return true
		}
		if s.OnlyText && isAllText(s.Scratch) {
			return false // other places give nonsense
		}
	}
	return false
}

// hasReadableHex reports whether hexadecimal has enough bytes of ASCII next to each other, also with a NUL between
// each two.
func hasReadableHex(run []byte) bool {
	n, gap := 0, false
	for i := 0; i+1 < len(run); i += 2 {
		switch c := char.Unhex(run[i])<<4 | char.Unhex(run[i+1]); {
		case TextByte[c]:
			gap = false
			if n++; n >= minReadable {
				return true
			}
		case c == 0 && !gap:
			gap = true
		default:
			n = 0
		}
	}
	return false
}

// readBinary reads the text between the other bytes that a run of base64 holds, at each of the four places at
// which it may begin except those in skip.
func (s *Search) readBinary(run []byte, skip byte) (over bool) {
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
			s.Scratch = Unbase64(s.Scratch[:0], code[max(0, 4*b-4):min(len(code), 4*e+4)])
			if s.readStretches(s.Scratch, minStretch, isMediaCode(run)) {
				return true
			}
		}
	}
	return false
}

// isMediaCode reports whether a run of base64 begins as that of a picture does.
func isMediaCode(run []byte) bool {
	var head [24]byte
	return FindMedium(Unbase64(head[:0], run[:min(len(run), 32)])) != ""
}

// isASCIIGroup reports whether the three bytes of the first four characters are ASCII.
func isASCIIGroup(code []byte) bool {
	g := (*[4]byte)(code)
	return sextet[g[0]]&0x20|sextet[g[1]]&0x08|sextet[g[2]]&0x02 == 0
}

// readStretches reads the stretches of ASCII in d that are long enough.
func (s *Search) readStretches(d []byte, least int, media bool) (over bool) {
	for i := 0; i < len(d); i++ {
		start := i
		for i < len(d) && TextByte[d[i]] {
			i++
		}
		if i-start >= least && s.ReadStretch(d[start:i], media) {
			return true
		}
	}
	return false
}

// TrimPath returns the part of a run in which the reader ended the search without the words of a path around it, as
// in a URL, if it does so for that part: [0, len(run)) if not.
func (s *Search) TrimPath(run []byte) (from, to int) {
	to = len(run)
	for {
		k := bytes.IndexByte(run[from:to], '/')
		if k < 0 || !isPathWord(run[from:from+k]) {
			break
		}
		from += k + 1
	}
	for {
		k := bytes.LastIndexByte(run[from:to], '/')
		if k < 0 || from+k+1 == to || !isPathWord(run[from+k+1:to]) {
			break
		}
		to = from + k
	}
	if to-from < len(run) && to-from >= MinRun && s.Base64(run[from:to]) {
		return from, to
	}
	return 0, len(run)
}

// isPathWord reports whether w is one that base64 seldom has between two slashes: short and of one case.
func isPathWord(w []byte) bool {
	var have uint16
	for _, c := range w {
		have |= char.Class[c]
	}
	return len(w) < MinRun && have&char.Letter != char.Letter
}
