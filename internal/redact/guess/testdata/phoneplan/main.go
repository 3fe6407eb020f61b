// Command phoneplan writes the table of the world's telephone numbering plans
// that package guess judges by (phone_plan.bin), and the library's own
// verdicts on sample numbers (phones.tsv) that a test compares it with.
//
// The source is github.com/nyaruka/phonenumbers (MIT), which carries the
// metadata of libphonenumber (Apache-2.0). It stays in a module of its own,
// because linking it costs every start of a program about 6 ms, 2.5 MB of heap
// and 2.5 MB of binary whether a number is looked at or not. Run it in this
// folder after an update of the library:
//
//	go run . ../../phone_plan.bin ../phones.tsv
//
// The table holds entries of five bytes, big-endian and sorted, of 10 bits
// calling code, 4 bits length, 13 bits for each end of a range: a national number of that length
// may begin with the three digits from..to. Length 0 tells the trunk prefix
// instead: its value, and how many digits it has.
package main

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: phoneplan TABLE SAMPLES")
	}
	coll, err := phonenumbers.MetadataCollection()
	if err != nil {
		log.Fatal(err)
	}
	p := plan{may: map[uint64]*[1000]bool{}, trunk: map[int]string{}}
	for _, m := range coll.GetMetadata() {
		p.territory(m)
	}
	table := p.table()
	if err := os.WriteFile(os.Args[1], table, 0o644); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[2], samples(), 0o644); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(table)/5, "entries")
}

// plan says which three digits may begin a number, by code and length.
type plan struct {
	may   map[uint64]*[1000]bool
	trunk map[int]string
}

func (p *plan) territory(m *phonenumbers.PhoneMetadata) {
	code := int(m.GetCountryCode())
	if t := m.GetNationalPrefix(); t != "" && (m.GetMainCountryForCode() || p.trunk[code] == "") {
		p.trunk[code] = t
	}
	for _, d := range []*phonenumbers.PhoneNumberDesc{
		m.GetFixedLine(), m.GetMobile(), m.GetTollFree(), m.GetPremiumRate(), m.GetSharedCost(),
		m.GetPersonalNumber(), m.GetVoip(), m.GetPager(), m.GetUan(), m.GetVoicemail(),
	} {
		if d.GetNationalNumberPattern() == "" || d.GetNationalNumberPattern() == "NA" {
			continue
		}
		lengths := d.GetPossibleLength()
		if len(lengths) == 0 {
			lengths = m.GetGeneralDesc().GetPossibleLength()
		}
		for _, n := range lengths {
			if n >= 4 && n <= 15 {
				p.add(code, int(n), d.GetNationalNumberPattern())
			}
		}
	}
}

func (p *plan) add(code, n int, pattern string) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		log.Fatal(err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		log.Fatal(err)
	}
	key := uint64(code)<<4 | uint64(n)
	if p.may[key] == nil {
		p.may[key] = new([1000]bool)
	}
	for three := range 1000 {
		p.may[key][three] = p.may[key][three] || matches(prog, fmt.Sprintf("%03d", three), n)
	}
}

// matches says whether some string of n digits that begins with head matches
// the whole expression: the sets of states are followed, with every digit
// allowed where head has ended.
func matches(prog *syntax.Prog, head string, n int) bool {
	now := follow(prog, nil, uint32(prog.Start))
	for k := range n {
		var next []uint32
		for _, pc := range now {
			in := &prog.Inst[pc]
			for d := '0'; d <= '9'; d++ {
				if (k >= len(head) || rune(head[k]) == d) && in.MatchRune(d) {
					next = follow(prog, next, in.Out)
				}
			}
		}
		now = next
	}
	for _, pc := range now {
		if prog.Inst[pc].Op == syntax.InstMatch {
			return true
		}
	}
	return false
}

func follow(prog *syntax.Prog, set []uint32, pc uint32) []uint32 {
	in := &prog.Inst[pc]
	switch in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return follow(prog, follow(prog, set, in.Out), in.Arg)
	case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
		return follow(prog, set, in.Out)
	case syntax.InstFail:
		return set
	}
	if slices.Contains(set, pc) {
		return set
	}
	return append(set, pc)
}

func (p *plan) table() []byte {
	var entries []uint64
	for key, may := range p.may {
		for from := 0; from < 1000; from++ {
			if !may[from] {
				continue
			}
			to := from
			for to+1 < 1000 && may[to+1] {
				to++
			}
			entries = append(entries, key<<26|uint64(from)<<13|uint64(to))
			from = to
		}
	}
	for code, t := range p.trunk {
		if v, err := strconv.Atoi(t); err == nil && len(t) <= 3 {
			entries = append(entries, uint64(code)<<30|uint64(v)<<13|uint64(len(t)))
		}
	}
	slices.Sort(entries)
	out := make([]byte, 0, 5*len(entries))
	for _, e := range entries {
		out = append(out, byte(e>>32), byte(e>>24), byte(e>>16), byte(e>>8), byte(e))
	}
	return out
}

// samples lists, for each territory, an example of each kind as the library
// gives it and the same with digits changed or cut, each with the library's
// verdict: code, national number, valid.
func samples() []byte {
	rnd := rand.New(rand.NewPCG(4, 9))
	var rows []string
	regions := make([]string, 0, 300)
	for r := range phonenumbers.GetSupportedRegions() {
		regions = append(regions, r)
	}
	slices.Sort(regions)
	for _, r := range regions {
		for _, kind := range []phonenumbers.PhoneNumberType{phonenumbers.FIXED_LINE, phonenumbers.MOBILE} {
			n := phonenumbers.GetExampleNumberForType(r, kind)
			if n == nil {
				continue
			}
			good := phonenumbers.GetNationalSignificantNumber(n)
			changed := []byte(good)
			changed[rnd.IntN(3)] = byte('0' + rnd.IntN(10))
			for _, s := range []string{good, string(changed), good[:len(good)-2], good + "5"} {
				rows = append(rows, row(int(n.GetCountryCode()), s))
			}
		}
	}
	return []byte(strings.Join(slices.Compact(rows), ""))
}

func row(code int, national string) string {
	n, err := phonenumbers.Parse("+"+strconv.Itoa(code)+national, "ZZ")
	ok := err == nil && phonenumbers.IsValidNumber(n) && phonenumbers.GetNationalSignificantNumber(n) == national
	return fmt.Sprintf("%d\t%s\t%t\n", code, national, ok)
}
