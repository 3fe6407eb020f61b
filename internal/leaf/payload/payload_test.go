package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
)

func mustParse(t testing.TB, s string) *Doc {
	t.Helper()
	d, err := Parse([]byte(s))
	if err != nil {
		t.Fatalf("Parse(%.80q): %v", s, err)
	}
	return d
}

// TestRFC8785 holds the RFC's own figures: the structure example of section
// 3.2.2, the sorting example of 3.2.3 and the numbers of appendix B.
func TestRFC8785(t *testing.T) {
	structure := `{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`
	want := `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
	if got := string(mustParse(t, structure).Canonical()); got != want {
		t.Errorf("structure\n got %s\nwant %s", got, want)
	}
	sorting := `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",` +
		`"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`
	want = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\"," +
		"\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"
	if got := string(mustParse(t, sorting).Canonical()); got != want {
		t.Errorf("sorting\n got %q\nwant %q", got, want)
	}
	for _, c := range []struct {
		bits uint64
		want string
	}{
		{0x0000000000000000, "0"}, {0x8000000000000000, "0"},
		{0x0000000000000001, "5e-324"}, {0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"}, {0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x4340000000000000, "9007199254740992"}, {0xc340000000000000, "-9007199254740992"},
		{0x4430000000000000, "295147905179352830000"},
		{0x44b52d02c7e14af5, "9.999999999999997e+22"}, {0x44b52d02c7e14af6, "1e+23"}, {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef4e, "999999999999999700000"}, {0x444b1ae4d6e2ef4f, "999999999999999900000"}, {0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"}, {0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"}, {0x41b3de4355555554, "333333333.33333325"},
		{0x41b3de4355555555, "333333333.3333333"}, {0x41b3de4355555556, "333333333.3333334"}, {0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"}, {0x43143ff3c1cb0959, "1424953923781206.2"},
	} {
		// 25 digits are a form that no canonicaliser writes.
		source := strconv.FormatFloat(math.Float64frombits(c.bits), 'E', 24, 64)
		if got := string(mustParse(t, source).Canonical()); got != c.want {
			t.Errorf("%016x (%s): got %s, want %s", c.bits, source, got, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		name, in string
		kind     holdfast.Kind
		place    string
	}{
		{"K5_FP4_null_payload", "", holdfast.KindValue, "the root (byte 0)"},
		{"K5_FP1_only_space", " \n\t", holdfast.KindValue, "the root (byte 0)"},
		{"K5_AC6_K5_FP1_non_json", "not json", holdfast.KindValue, "(byte 1)"},
		{"K5_FP1_truncated", `{"a":[1,`, holdfast.KindValue, "(byte 8)"},
		{"K5_FP1_truncated_string", `{"a":"x`, holdfast.KindValue, "(byte 7)"},
		{"K5_FP1_trailing_data", `{} {}`, holdfast.KindValue, "(byte 3)"},
		{"K5_FP1_trailing_brace", `{}}`, holdfast.KindValue, "(byte 2)"},
		{"K5_FP1_trailing_comma", `{"a":[1,2,]}`, holdfast.KindValue, "/a (byte 9)"},
		{"K5_FP1_object_comma", `{"a":1,}`, holdfast.KindValue, "(byte"},
		{"K5_FP1_bom", "\xef\xbb\xbf{}", holdfast.KindValue, "(byte 0)"},
		{"K5_FP1_utf16", "\xff\xfe{\x00}\x00", holdfast.KindValue, "(byte 0)"},
		{"K5_FP1_invalid_utf8", "{\"a\":\"x\xff\"}", holdfast.KindValue, "/a (byte 7)"},
		{"K5_FP1_invalid_utf8_name", "{\"\xc3\x28\":1}", holdfast.KindValue, "(byte 2)"},
		{"K5_FP1_surrogate_as_utf8", "\"\xed\xa0\x80\"", holdfast.KindValue, "(byte 1)"},
		{"K5_FP1_overlong", "\"\xc0\x80\"", holdfast.KindValue, "(byte 1)"},
		{"K5_FP1_raw_nul", "\"a\x00b\"", holdfast.KindValue, "(byte 2)"},
		{"K5_FP1_nul_after", "{}\x00", holdfast.KindValue, "(byte 2)"},
		{"K5_FP1_raw_newline", "\"a\nb\"", holdfast.KindValue, "(byte 2)"},
		{"K5_FP1_leading_zero", `[01]`, holdfast.KindValue, "(byte"},
		{"K5_FP1_plus", `[+1]`, holdfast.KindValue, "(byte 1)"},
		{"K5_FP1_hex", `[0x10]`, holdfast.KindValue, "(byte"},
		{"K5_FP1_single_quotes", `{'a':1}`, holdfast.KindValue, "(byte 1)"},
		{"K5_FP1_comment", `{} // x`, holdfast.KindValue, "(byte 3)"},
		{"K5_FP1_number_name", `{1:2}`, holdfast.KindValue, "(byte 1)"},
		{"D10_nan", `{"a":NaN}`, holdfast.KindCanonicalize, "/a (byte 5)"},
		{"D10_infinity", `[-Infinity]`, holdfast.KindCanonicalize, "/0 (byte"},
		{"D10_duplicate", `{"x":{"k":1,"j":2,"k":3}}`, holdfast.KindCanonicalize, "/x/k (byte 18)"},
		{"D10_duplicate_escaped", `{"a":1,"\u0061":2}`, holdfast.KindCanonicalize, "/a (byte 7)"},
		{"D10_duplicate_in_array", `[1,{"b":1,"a":1,"b":1,"a":2}]`, holdfast.KindCanonicalize, "/1/b (byte 16)"},
		{"D10_lone_surrogate", `{"a":"\ud800"}`, holdfast.KindCanonicalize, "/a (byte 6)"},
		{"D10_lone_low_surrogate", `"x\uDC00y"`, holdfast.KindCanonicalize, "(byte 2)"},
		{"D10_surrogate_and_letter", `"\ud83dabcdefgh"`, holdfast.KindCanonicalize, "(byte 1)"},
		{"D10_overflow", `{"n":[1e400]}`, holdfast.KindCanonicalize, "/n/0 (byte 6)"},
		{"D10_overflow_negative", `-1e309`, holdfast.KindCanonicalize, "the root (byte 0)"},
		{"D10_overflow_digits", strings.Repeat("9", 400), holdfast.KindCanonicalize, "(byte 0)"},
		{"K1_FP9_too_deep", deep(21), holdfast.KindPayloadTooLarge, "(byte 20)"},
		{"K1_FP9_million_deep", strings.Repeat("[", 1_000_000), holdfast.KindPayloadTooLarge, "(byte 20)"},
		{"K1_FP8_too_large", `"` + strings.Repeat("a", holdfast.MaxPayload-1) + `"`, holdfast.KindPayloadTooLarge, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.in))
			var e *holdfast.Error
			if !errors.As(err, &e) {
				t.Fatalf("no *holdfast.Error: %v", err)
			}
			if e.Kind != c.kind || !strings.Contains(e.Why, c.place) {
				t.Errorf("got %v, want %s with %q", e, c.kind, c.place)
			}
			if len(e.Why) > 400 || strings.ContainsAny(e.Why, "\n\x00") {
				t.Errorf("error text is not fit for a log: %q", e.Why)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Run("K1_AC6_exactly_the_limit_passes", func(t *testing.T) {
		d := mustParse(t, `"`+strings.Repeat("a", holdfast.MaxPayload-2)+`"`)
		if d.Size() != holdfast.MaxPayload {
			t.Errorf("size %d", d.Size())
		}
	})
	t.Run("K1_AC6_large_payload_rejection", func(t *testing.T) {
		_, err := Parse(make([]byte, holdfast.MaxPayload+1))
		if holdfast.KindOf(err) != holdfast.KindPayloadTooLarge {
			t.Errorf("got %v", err)
		}
	})
	for in, want := range map[string]int{`1`: 1, `{}`: 1, `{"a":1}`: 1, `[[1],[]]`: 2, `{"a":{"b":[0]}}`: 3,
		strings.Repeat("[", 20) + strings.Repeat("]", 20): 20} {
		if got := mustParse(t, in).Depth(); got != want {
			t.Errorf("depth of %s: got %d, want %d", in, got, want)
		}
	}
	if _, err := ParseLimited([]byte(`[[1]]`), 100, 1); holdfast.KindOf(err) != holdfast.KindPayloadTooLarge {
		t.Errorf("depth limit 1: %v", err)
	}
	if _, err := ParseLimited([]byte(`1`), 100, 0); holdfast.KindOf(err) != holdfast.KindPayloadTooLarge {
		t.Errorf("depth limit 0: %v", err)
	}
	if _, err := ParseLimited([]byte(`1`), 0, 5); holdfast.KindOf(err) != holdfast.KindPayloadTooLarge {
		t.Errorf("byte limit 0: %v", err)
	}
}

func TestErrorsQuoteNothing(t *testing.T) {
	secret := "sk-live-4f9a8b7c6d5e4f3a2b1c"
	for _, in := range []string{
		`{"` + secret + `":NaN}`, `{"a":"` + secret + `\ud800"}`, `{"` + secret + `":1,"` + secret + `":2}`,
		`{"` + secret + `":"` + secret + "\xff\"}", `{"a":` + secret + `}`, `{"user@example.com":1e999}`,
		`{"4111111111111111":1e999}`, `{"` + strings.Repeat("x", 10000) + `":1e999}`,
	} {
		_, err := Parse([]byte(in))
		var e *holdfast.Error
		if !errors.As(err, &e) {
			t.Fatalf("%q parsed", in)
		}
		text := e.Error() + e.Hint
		for _, bad := range []string{"sk-live", "4f9a8b7c", "example.com", "41111111", strings.Repeat("x", 65)} {
			if strings.Contains(text, bad) {
				t.Errorf("error quotes %q: %s", bad, text)
			}
		}
	}
}

// What is no JSON at all is told what a payload looks like; inside of one the
// next character is the better hint.
func TestHintsOfWhatIsNoJSON(t *testing.T) {
	for in, want := range map[string]string{
		"nojson": `such as '{"path": "a"}'`, "": "send one JSON document", "hello": `such as '{"path": "a"}'`, `{"a":{"b":tru}}`: "expecting ",
	} {
		_, err := Parse([]byte(in))
		var e *holdfast.Error
		if !errors.As(err, &e) || !strings.Contains(e.Hint, want) {
			t.Errorf("%q: %+v", in, e)
		}
	}
}

func TestTree(t *testing.T) {
	d := mustParse(t, ` {"s":"a\u0000b\/","n":-0.0,"big":12345678901234567890,"l":[],"o":{},"t":true,"f":false,"z":null, "":1} `)
	want := map[string]any{"s": "a\x00b/", "n": json.Number("-0.0"), "big": json.Number("12345678901234567890"),
		"l": []any{}, "o": map[string]any{}, "t": true, "f": false, "z": nil, "": json.Number("1")}
	if !reflect.DeepEqual(d.Value(), want) {
		t.Errorf("got %#v", d.Value())
	}
	if got, want := string(d.Canonical()), `{"":1,"big":12345678901234567000,"f":false,"l":[],"n":0,"o":{},"s":"a\u0000b/","t":true,"z":null}`; got != want {
		t.Errorf("canonical\n got %s\nwant %s", got, want)
	}
}

func TestKeys(t *testing.T) {
	same := func(name, a, b string) {
		t.Run(name, func(t *testing.T) {
			x, y := mustParse(t, a), mustParse(t, b)
			if x.Key() != y.Key() || x.Exact() != y.Exact() {
				t.Errorf("%s and %s differ", a, b)
			}
		})
	}
	same("K5_AC1_deterministic_keys", `{"a":[1,2.5,"x"]}`, `{"a":[1,2.5,"x"]}`)
	same("K5_AC2_field_order_independence", `{"a":1,"b":{"d":2.50,"c":3}}`, `{"b":{"c":3,"d":2.50},"a":1}`)
	same("K5_AC3_whitespace_independence", `{"a":[1,{"b":2}]}`, "\t{ \"a\" :\r\n [ 1 , { \"b\" : 2 } ] } \n")
	same("K5_AC4_unicode_escapes_are_one_form", `"\u00e9\u0041\ud83d\ude00"`, `"éA😀"`)
	t.Run("K5_AC4_D10_no_normalisation", func(t *testing.T) {
		if mustParse(t, `"é"`).Key() == mustParse(t, `"e\u0301"`).Key() {
			t.Error("NFC and NFD share a key, which RFC 8785 forbids")
		}
	})
	t.Run("K5_AC7_key_format_and_known_answer", func(t *testing.T) {
		sum := sha256.Sum256([]byte(`{"a":1,"b":2}`))
		k := mustParse(t, `{ "b": 2.0, "a": 1e0 }`).Key()
		if k != hex.EncodeToString(sum[:]) || len(k) != 64 || strings.ToLower(k) != k {
			t.Errorf("got %s", k)
		}
	})
	t.Run("D10_exact_tells_numbers_apart", func(t *testing.T) {
		a, b := mustParse(t, `{"b":1,"a":9007199254740993}`), mustParse(t, `{"a":9007199254740992,"b":1}`)
		if a.Key() != b.Key() || a.Exact() == b.Exact() {
			t.Errorf("key %v, exact %v", a.Key() == b.Key(), a.Exact() == b.Exact())
		}
		sum := sha256.Sum256([]byte(`{"a":9007199254740993,"b":1}`))
		if a.Exact() != hex.EncodeToString(sum[:]) {
			t.Error("exact is not the canonical form with source numbers")
		}
	})
	t.Run("K5_AC5_K5_INV2_different_payloads", func(t *testing.T) {
		seen := map[string]string{}
		for _, s := range []string{`1`, `"1"`, `[1]`, `{"1":1}`, `null`, `"null"`, `[]`, `{}`, `""`, `false`, `[[]]`, `{"a":null}`, `{"a":{}}`} {
			k := mustParse(t, s).Key()
			if was, ok := seen[k]; ok {
				t.Errorf("%s and %s share a key", was, s)
			}
			seen[k] = s
		}
	})
}

// TestRandomDocuments is K5's invariants over random documents: agreement with
// the tokenizer's own canonicaliser, one form for all orders and spacings
// (INV4), a fixed point (INV1), input left alone and results that never change
// (INV3, K1_INV4).
func TestRandomDocuments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8785))
	keys := map[string]string{}
	for range 3000 {
		v := randomValue(r, 4)
		src := render(r, v)
		before := bytes.Clone(src)
		d, err := Parse(src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if !bytes.Equal(src, before) {
			t.Fatal("K1_INV4_K1_AC7_payload_changed")
		}
		ref := jsontext.Value(bytes.Clone(src))
		if err := ref.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(d.Canonical(), ref) {
			t.Fatalf("canonicalisers differ\n src %s\nours %s\nref  %s", src, d.Canonical(), ref)
		}
		if was, ok := keys[d.Key()]; ok && was != string(d.Canonical()) {
			t.Fatalf("K5_AC5: %s and %s share a key", was, d.Canonical())
		}
		keys[d.Key()] = string(d.Canonical())
		other := mustParse(t, string(render(r, v)))
		if other.Key() != d.Key() || other.Exact() != d.Exact() {
			t.Fatalf("K5_INV4: orders or spacing change the hashes of %s", src)
		}
		again := mustParse(t, string(d.Canonical()))
		if again.Key() != d.Key() || !bytes.Equal(again.Canonical(), d.Canonical()) || again.Exact() != again.Key() {
			t.Fatalf("K5_INV1: not a fixed point: %s", d.Canonical())
		}
		key, exact := d.Key(), d.Exact()
		for i := range src {
			src[i] = 'x'
		}
		if d.Key() != key || d.Exact() != exact || !bytes.Equal(d.Canonical(), ref) {
			t.Fatal("K5_INV3: the document follows the caller's buffer")
		}
	}
}

// TestLargeIsLinear parses the worst shapes in a large and in a small size: none
// may cost much more than its bytes.
func TestLargeIsLinear(t *testing.T) {
	backwards := func(n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf(`"%07d":1`, 9_999_999-i))
		}
		return "{" + strings.Join(names, ",") + "}"
	}
	for name, c := range map[string]struct {
		n   int
		doc func(n int) string
	}{
		"backwards": {16_000, backwards},
		"backwards_nested": {16_000, func(n int) string {
			deep := backwards(n)
			for range 19 {
				deep = `{"z":` + deep + `,"a":0}`
			}
			return deep
		}},
		"duplicate_at_end":  {16_000, func(n int) string { return strings.TrimSuffix(backwards(n), "}") + `,"9999999":1}` }},
		"escapes":           {40_000, func(n int) string { return `"` + strings.Repeat(`\u00e9`, n) + `"` }},
		"numbers":           {40_000, func(n int) string { return "[" + strings.Repeat("1.5e0,", n) + "1]" }},
		"digits":            {400_000, func(n int) string { return strings.Repeat("1", 300) + "." + strings.Repeat("7", n) }},
		"many_small":        {40_000, func(n int) string { return "[" + strings.Repeat(`{},`, n) + "{}]" }},
		"space":             {4_000_000, func(n int) string { return strings.Repeat(" ", n) + "1" }},
		"names_differ_late": {1_000_000, func(n int) string { return `{"` + strings.Repeat("a", n) + `1":1,"` + strings.Repeat("a", n) + `0":1}` }},
	} {
		t.Run(name, func(t *testing.T) {
			testgrowth.Linear(t, c.n, func(n int) func() {
				doc := []byte(c.doc(n))
				return func() { _, _ = Parse(doc) }
			})
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	d := mustParse(t, string(sample()))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				_ = d.Key() + d.Exact() + string(d.Canonical())
				_ = d.Value().(map[string]any)["f00"]
			}
		})
	}
	wg.Wait()
}

func TestOf(t *testing.T) {
	d, err := Of(map[string]any{"b": []any{1, int64(2), 1.5, json.Number("3.0"), "x", nil, true}, "a": map[string]any{}})
	if err != nil || string(d.Canonical()) != `{"a":{},"b":[1,2,1.5,3,"x",null,true]}` {
		t.Fatalf("%v %v", d, err)
	}
	loop := map[string]any{}
	loop["x"] = []any{loop}
	deep := any(1)
	for range holdfast.MaxDepth + 1 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		name string
		in   any
		kind holdfast.Kind
	}{
		{"K5_FP2_circular_reference", loop, holdfast.KindCanonicalize},
		{"K5_FP3_non_serializable", map[string]any{"t": struct{}{}}, holdfast.KindType},
		{"K5_FP3_typed_slice", []string{"a"}, holdfast.KindType},
		{"nan", []any{math.NaN()}, holdfast.KindCanonicalize},
		{"inf", math.Inf(1), holdfast.KindCanonicalize},
		{"invalid_utf8", "\xff", holdfast.KindCanonicalize},
		{"number_that_is_none", json.Number("12;"), holdfast.KindValue},
		{"too_deep", deep, holdfast.KindPayloadTooLarge},
		{"too_large", strings.Repeat("x", holdfast.MaxPayload), holdfast.KindPayloadTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Of(c.in); holdfast.KindOf(err) != c.kind {
				t.Errorf("got %v", err)
			}
		})
	}
	shared := []any{1}
	if _, err := Of([]any{shared, shared, []any{}, []any{}}); err != nil {
		t.Errorf("a container used twice is no circle: %v", err)
	}
}
