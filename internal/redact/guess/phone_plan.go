package guess

import _ "embed"

// phonePlan is what the world's numbering plans allow: see
// testdata/phoneplan, which computes it from a maintained library. It is read
// where it lies, so that a start costs nothing and a look-up about 13 steps.
//
//go:embed phone_plan.bin
var phonePlan string

const planEntry = 5

// planAt returns an entry: 10 bits calling code, 4 bits length, 13 bits each
// the first and the last of the leading three digits.
func planAt(k int) uint64 {
	e := phonePlan[k*planEntry : k*planEntry+planEntry]
	return uint64(e[0])<<32 | uint64(e[1])<<24 | uint64(e[2])<<16 | uint64(e[3])<<8 | uint64(e[4])
}

// planFind returns the last entry that is not above key, 0 for none.
func planFind(key uint64) uint64 {
	lo, hi := 0, len(phonePlan)/planEntry
	for lo < hi {
		if mid := (lo + hi) / 2; planAt(mid) <= key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return 0
	}
	return planAt(lo - 1)
}

// inPlan says whether the national number d is one that the plan of a calling
// code allows, by its length and first three digits.
func inPlan(code int, d []byte) bool {
	if len(d) < 4 || len(d) > 15 {
		return false
	}
	three := uint64(d[0]-'0')*100 + uint64(d[1]-'0')*10 + uint64(d[2]-'0')
	key := uint64(code)<<30 | uint64(len(d))<<26 | three<<13
	e := planFind(key | (1<<13 - 1))
	return e>>26 == key>>26 && three <= e&(1<<13-1)
}

// withoutTrunk cuts the trunk prefix ("0") of a calling code's plan.
func withoutTrunk(code int, d []byte) []byte {
	key := uint64(code) << 30
	e := planFind(key | (1<<26 - 1))
	if e>>26 != key>>26 {
		return d
	}
	v, n := int(e>>13&(1<<13-1)), int(e&(1<<13-1))
	if n >= len(d) {
		return d
	}
	have := 0
	for _, c := range d[:n] {
		have = have*10 + int(c-'0')
	}
	if have == v {
		return d[n:]
	}
	return d
}

// international says whether d is a calling code and a number of its plan.
func international(d []byte) bool {
	code := 0
	for k := 0; k < 3 && k < len(d); k++ {
		code = code*10 + int(d[k]-'0')
		if code > 0 && (inPlan(code, d[k+1:]) || inPlan(code, withoutTrunk(code, d[k+1:]))) {
			return true
		}
	}
	return false
}

// home are the calling codes whose national forms are known without a code.
var home = [...]int{
	1, 44, 49, 33, 34, 39, 31, 32, 41, 43, 353, 351, 48, 46, 45, 47, 358, 61, 64, 91, 81, 82, 55, 52, 86, 27, 65, 852, 972, 90, 7, 380, 420, 36, 30, 40,
}

// planned says whether d is a national number somewhere at home, with its
// trunk prefix where the plan has one.
func planned(d []byte) bool {
	for _, code := range home {
		n := withoutTrunk(code, d)
		if d[0] == '0' && len(n) == len(d) && code != 39 {
			continue
		}
		if inPlan(code, n) {
			return true
		}
	}
	return false
}
