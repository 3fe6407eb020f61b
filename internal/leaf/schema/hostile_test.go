package schema

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// TestHostile puts documents of megabytes to schemas that multiply, with a
// tenth of the real work, and wants that no unit of it costs much more than one
// of a document with nothing hostile about it, which takes less than a tenth of
// the gate's five seconds.
func TestHostile(t *testing.T) {
	list := func(element string, size int) string {
		return "[" + strings.Repeat(element+",", size/(len(element)+1)) + element + "]"
	}
	// Lists of strings that run together into one text unless lengths are
	// part of a comparison.
	colliding := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = "[" + strings.TrimSuffix(strings.NewReplacer("0", `"a","a",`, "1", `"a\u0004a",`).Replace(fmt.Sprintf("%014b", i)), ",") + "]"
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	var numbers strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&numbers, "%d.5,", i)
	}
	// With the race detector both are an eighth: what one costs the other does.
	mb, work := testrepeat.Times(1<<20, 1<<17), testrepeat.Times(maxWork/10, maxWork/80)
	plain, usual := mustCompile(t, `{"items":{"type":"integer","minimum":0}}`), tree(t, list("1", mb))
	floor := time.Hour
	for range 3 {
		start := testgrowth.Used()
		if found, err := plain.graph.within(context.Background(), usual, work/8); holdfast.KindOf(err) != holdfast.KindTimeout {
			t.Fatal(found, err)
		}
		floor = min(floor, 8*(testgrowth.Used()-start))
	}
	for _, c := range []struct {
		name, schema, doc string
		timeout           bool // the only right answer besides a no
	}{
		{"alternatives_in_items", `{"items":{"anyOf":[` + strings.Repeat(`{"items":{"type":"integer","minimum":7}},`, 200) + `{"items":{"type":"null"}}]}}`,
			"[" + list("1", 2*mb) + "]", false},
		{"recursive_alternatives", `{"anyOf":[{"type":"array","items":{"$ref":"#"},"maxItems":0},{"type":"array","items":{"$ref":"#"},"minItems":9},{"type":"array","items":{"$ref":"#"}},{"type":"string"}]}`,
			strings.Repeat("[", 19) + "[1]" + strings.Repeat("]", 19), false},
		{"recursive_doubling", `{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`, strings.Repeat("[", 64) + strings.Repeat("]", 64), true},
		{"enum_of_numbers", `{"items":{"enum":[` + numbers.String() + `0]}}`, list("7.5", 10*mb), false},
		{"tiny_exponents", `{"items":{"minimum":0,"maximum":1e-398,"type":"number"}}`, list("1e-399", 4*mb), false},
		{"tiny_exponents_divided", `{"items":{"multipleOf":1e-400}}`, list("1e-399", 4*mb), true},
		{"vast_exponents", `{"items":{"minimum":0,"maximum":1e300,"multipleOf":3}}`, list("1e-999999", 4*mb), false},
		{"vast_number", `{"multipleOf":3,"minimum":1}`, strings.Repeat("9", 10*mb-10), false},
		{"vast_numbers_equal", `{"uniqueItems":true}`, list(strings.Repeat("9", 5*mb-10), 10*mb), false},
		{"unique_objects", `{"uniqueItems":true}`, "[" + strings.TrimSuffix(strings.Join(objects(100_000), ","), ",") + "]", false},
		{"colliding_unique", `{"uniqueItems":true,"items":{"type":"array"}}`, colliding(20_000), false},
		{"pattern_on_long_string", `{"pattern":"(x+x+)+y"}`, `"` + strings.Repeat("x", 9*mb) + `"`, true},
		{"large_pattern", `{"items":{"pattern":"^b|(.{0,400}a){2}$"}}`, list(`"c`+strings.Repeat("b", 4000)+`"`, 4*mb), false},
		{"pattern_properties", `{"patternProperties":{` + patternsOf(100) + `}}`, object(100_000), true},
		{"format_regex", `{"$schema":"http://json-schema.org/draft-07/schema#","format":"regex"}`, `"` + strings.Repeat("(", 9*mb) + `"`, false},
		{"format_email", `{"$schema":"http://json-schema.org/draft-07/schema#","items":{"format":"uri"}}`, list(`"http://[::1]`+strings.Repeat("/a", 30000)+`"`, 4*mb), false},
		{"unevaluated", `{"unevaluatedProperties":false,"allOf":[` + strings.Repeat(`{"additionalProperties":true},`, 200) + `{}]}`, object(100_000), false},
		{"contains", `{"contains":{"contains":{"contains":{"const":1}}}}`, "[[" + list("[2]", 4*mb) + "]]", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustCompile(t, c.schema)
			doc := tree(t, c.doc)
			start := testgrowth.Used()
			found, err := s.graph.within(context.Background(), doc, work)
			took := testgrowth.Used() - start
			t.Logf("%d violations, %v, %v, %.1f of the floor", len(found), err, took.Round(time.Millisecond), float64(took)/float64(floor))
			if took > 20*floor {
				t.Errorf("took %v of the processor for two walks of %d units; what is not hostile takes %v", took, work, floor)
			}
			if err != nil && holdfast.KindOf(err) != holdfast.KindTimeout {
				t.Errorf("got %v", err)
			}
			if c.timeout && err == nil && len(found) == 0 {
				t.Error("valid, but cannot have been looked at whole")
			}
		})
	}
}

// cpu is the processor time of this process, which other processes do not
// lengthen.
func cpu() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano())
}

// TestWholeBudget: a schema that doubles at every level of a document as deep
// as the limits allow ends by the real bound.
func TestWholeBudget(t *testing.T) {
	s := mustCompile(t, `{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`)
	doc := tree(t, strings.Repeat("[", 64)+strings.Repeat("]", 64))
	if _, err := s.Validate(context.Background(), doc); holdfast.KindOf(err) != holdfast.KindTimeout {
		t.Errorf("got %v", err)
	}
}

// TestHonestLarge: 10 MB that fit an ordinary schema are valid.
func TestHonestLarge(t *testing.T) {
	s := mustCompile(t, `{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer","minimum":0},"n":{"type":"string","maxLength":40,"pattern":"^[a-z]+$"}},"required":["id"],"additionalProperties":false}}`)
	doc := tree(t, "["+strings.Join(objects(testrepeat.Times(400_000, 50_000)), ",")+"]")
	if found, err := s.Validate(context.Background(), doc); err != nil || found != nil {
		t.Errorf("got %v, %v", found, err)
	}
}

func objects(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`{"id":%d,"n":"x"}`, i)
	}
	return out
}

func object(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"member-%d":0`, i)
	}
	b.WriteByte('}')
	return b.String()
}

func patternsOf(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"(a|b|c)+%d$":{}`, i))
	}
	return strings.Join(out, ",")
}

// TestCanceled: a walk notices the end of its context at once.
func TestCanceled(t *testing.T) {
	s := mustCompile(t, `{"items":{"type":"number"}}`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Validate(ctx, tree(t, "["+strings.Repeat("1,", 100_000)+"1]")); holdfast.KindOf(err) != holdfast.KindTimeout {
		t.Errorf("got %v", err)
	}
}

// TestManyAddressesBelowOneLongName: the pointer of a schema costs nothing unless an error
// has it.
func TestManyAddressesBelowOneLongName(t *testing.T) {
	testgrowth.Linear(t, 400, func(n int) func() {
		var ids strings.Builder
		for i := range n {
			fmt.Fprintf(&ids, `%s"%d":{"$id":"i%d"}`, strings.Repeat(",", min(i, 1)), i, i)
		}
		raw := []byte(`{"$defs":{"` + strings.Repeat("~", 300*n) + `":{"$defs":{` + ids.String() + `}}}}`)
		return func() {
			if _, err := Compile("long", raw); err != nil {
				t.Fatal(err)
			}
		}
	})
}
