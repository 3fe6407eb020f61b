package dissimilar_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/assure/dissimilar"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
)

// The numbers of RFC 8785, appendix B.
func TestK5_RFC8785_appendix_B(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0", 0x8000000000000000: "0", 0x0000000000000001: "5e-324", 0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308", 0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992", 0xc340000000000000: "-9007199254740992", 0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22", 0x44b52d02c7e14af6: "1e+23", 0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000", 0x444b1ae4d6e2ef4f: "999999999999999900000", 0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001", 0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325", 0x41b3de4355555555: "333333333.3333333", 0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343", 0xbecbf647612f3696: "-0.0000033333333333333333", 0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		f := math.Float64frombits(bits)
		got, err := dissimilar.Canonical([]byte(strconv.FormatFloat(f, 'e', -1, 64)))
		if err != nil || string(got) != want {
			t.Errorf("%016x: %s, want %s (%v)", bits, got, want, err)
		}
	}
}

// The example of RFC 8785, section 3.2.2 and 3.2.4, and the sorting of 3.2.3.
func TestK5_RFC8785_examples(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"section_3.2.2", `{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"` + "€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/" + `"}`},
		{"section_3.2.3", `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"},
		{"no_normalisation", `{"a\u030a":1,"\u00e5":2}`, "{\"a\u030a\":1,\"å\":2}"},
		{"white_space", " [ 1 , { } , [ ] ] \n", `[1,{},[]]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := dissimilar.Canonical([]byte(c.in))
			if err != nil || string(got) != c.want {
				t.Errorf("%q (%v)\nwant %q", got, err, c.want)
			}
		})
	}
}

func TestK5_what_has_no_canonical_form(t *testing.T) {
	for _, in := range []string{"", " ", "{", `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `"\ud800"`, `"\udc00\ud800"`, `"\ud800x"`, "1e400", "-1e400", "NaN", "Infinity",
		"01", "1.", ".5", "+1", "1e", `"` + "\xff" + `"`, `"` + "\x01" + `"`, `"\x"`, `{"a"}`, `[1,]`, `{,}`, `[1 2]`, "nul", "true false", "'a'", "\ufeff1",
		strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if got, err := dissimilar.Canonical([]byte(in)); err == nil {
			t.Errorf("%q has the form %q", in, got)
		}
	}
}

// The two implementations agree on every random document and on every broken
// one: the same form, the same key, or both a refusal.
func TestK5_two_implementations_agree(t *testing.T) {
	r := rand.New(rand.NewPCG(8785, 1))
	docs := 100_000
	if testing.Short() {
		docs = 10_000
	}
	refused := 0
	for range docs {
		doc := write(r, nil, 4)
		if r.IntN(3) == 0 && len(doc) > 0 {
			spoil(r, doc)
		}
		if agree(t, doc) {
			refused++
		}
	}
	if refused < docs/20 {
		t.Errorf("only %d of %d documents were refused: the corpus is too tame", refused, docs)
	}
}

func spoil(r *rand.Rand, doc []byte) {
	for range 1 + r.IntN(3) {
		doc[r.IntN(len(doc))] = []byte(`{}[]",:\0123456789eE+-.tfn `)[r.IntN(27)]
	}
}

// agree compares the two, and says whether they refuse.
func agree(t testing.TB, doc []byte) bool {
	t.Helper()
	ours, err := dissimilar.Canonical(doc)
	theirs, refusal := payload.Parse(doc)
	if holdfast.KindOf(refusal) == holdfast.KindPayloadTooLarge {
		return true
	}
	if (err == nil) != (refusal == nil) {
		t.Fatalf("%q\nkernel: %v\nhere: %v", doc, refusal, err)
	}
	if err != nil {
		return true
	}
	if !bytes.Equal(ours, theirs.Canonical()) {
		t.Fatalf("%q\nkernel %q\nhere   %q", doc, theirs.Canonical(), ours)
	}
	if key := hex.EncodeToString(sum(ours)); key != theirs.Key() {
		t.Fatalf("%q: key %s, here %s", doc, theirs.Key(), key)
	}
	return false
}

func sum(b []byte) []byte { h, _ := hex.DecodeString(sha(b)); return h }

func write(r *rand.Rand, b []byte, depth int) []byte {
	b = append(b, []string{"", "", " ", "\n\t"}[r.IntN(4)]...)
	n := 7
	if depth == 0 {
		n = 5
	}
	switch r.IntN(n) {
	case 0:
		return append(b, []string{"null", "true", "false"}[r.IntN(3)]...)
	case 1, 2:
		return append(b, number(r)...)
	case 3, 4:
		return writeText(r, b)
	case 5:
		b = append(b, '[')
		for i := range r.IntN(4) {
			if i > 0 {
				b = append(b, ',')
			}
			b = write(r, b, depth-1)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i := range r.IntN(5) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(writeText(r, b), ':')
		b = write(r, b, depth-1)
	}
	return append(b, '}')
}

func writeText(r *rand.Rand, b []byte) []byte {
	b = append(b, '"')
	for range r.IntN(6) {
		c := []rune{rune(r.IntN(0x80)), 0x80 + rune(r.IntN(0x780)), 0x800 + rune(r.IntN(0xd000)), 0xe000 + rune(r.IntN(0x2000)), 0x10000 + rune(r.IntN(0x100000)), 'a', 'b'}[r.IntN(7)]
		switch {
		case r.IntN(3) == 0 && c < 0x10000:
			b = fmt.Appendf(b, `\u%04x`, c)
		case r.IntN(3) == 0 && c >= 0x10000:
			b = fmt.Appendf(b, `\u%04X\u%04x`, 0xd800+(c-0x10000)>>10, 0xdc00+(c-0x10000)&0x3ff)
		default:
			enc, _ := json.Marshal(string(c))
			b = append(b, enc[1:len(enc)-1]...)
		}
	}
	return append(b, '"')
}

func number(r *rand.Rand) string {
	switch r.IntN(6) {
	case 0:
		return strconv.Itoa(r.IntN(2000) - 1000)
	case 1:
		return strconv.FormatUint(r.Uint64(), 10)
	case 2:
		return []string{"-0", "0.0", "-0.000", "1e-400", "1E+2", "0e5", "1.0", "100000000000000000000000", "5e-324", "2.5e-324", "1e21", "1e-7"}[r.IntN(12)]
	case 3:
		return fmt.Sprintf("%d.%de%d", r.IntN(1000), r.IntN(1000000), r.IntN(60)-30)
	}
	for {
		f := math.Float64frombits(r.Uint64())
		if !math.IsNaN(f) && !math.IsInf(f, 0) {
			return strconv.FormatFloat(f, []byte{'e', 'E', 'g'}[r.IntN(3)], []int{-1, 16}[r.IntN(2)], 64)
		}
	}
}

// TestK5_node compares 100 000 numbers with JSON.stringify.
func TestK5_node(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: the comparison with ECMAScript's own numbers did not run")
	}
	r := rand.New(rand.NewPCG(7, 7))
	var in bytes.Buffer
	var asked []string
	for range 100_000 {
		n := number(r)
		asked = append(asked, n)
		in.WriteString(n + "\n")
	}
	cmd := exec.Command(node, "-e", `const l=require('fs').readFileSync(0,'utf8').split('\n');l.pop();process.stdout.write(l.map(x=>JSON.stringify(JSON.parse(x))+'\n').join(''))`)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for i, n := range asked {
		if !lines.Scan() {
			t.Fatalf("node answered %d of %d", i, len(asked))
		}
		got, err := dissimilar.Canonical([]byte(n))
		if err != nil || string(got) != lines.Text() {
			t.Fatalf("%s: %s, node says %s (%v)", n, got, lines.Text(), err)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		f.Add(write(r, nil, 3))
	}
	f.Fuzz(func(t *testing.T, doc []byte) { agree(t, doc) })
}
