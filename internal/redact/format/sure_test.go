package format

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// surely are documents, good and bad, about which sureJSON must not be wrong.
var surely = []string{
	``, ` `, `null`, ` true `, `false`, `nul`, `truex`, `nullnull`, `0`, `-0`, `00`, `01`, `-`, `1.`, `.5`, `1.5`, `1e5`, `1E+5`, `1e`, `1e-`, `1.e1`, `1 2`, `+1`, `-01`,
	`""`, `"a"`, `"a`, `"\"`, `"\""`, `"\x"`, `"\u"`, `"\u12"`, `"\u00e9"`, `"\uD834\uDD1E"`, `"\ud834"`, `"\udd1e"`, `"\u00zz"`, "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\n\"",
	"\"\xff\"", "\"\xc3\xa9\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\xef\xbb\xbf{}", "\xc2\xa0{}", `"seven..` + "\x1f" + `"`, `"eight bytes and \t more \\ of them"`,
	`{}`, `[]`, `{ }`, `[ ]`, `[,]`, `[1,]`, `[1 2]`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a":1,"b":2}`, `{"a":1,"a":2}`, `{"a":{"a":1},"b":{"a":2}}`,
	`{"a":{"b":1},"a":2}`, `{"":1,"":2}`, `{"":1}`, `{"ab":1,"ac":2,"ab":3}`, `{"a\u0062":1,"ab":2}`, `{"a":[{"a":1},{"a":1}],"b":[]}`, `{a:1}`, `{"a":1}}`, `{"a":1]`, `[{]}`, `[[]`, `]`, `}`,
	`{"a":1}x`, `{"a":1} {"b":2}`, "\t[\r\n1 , 2\n]\n", "[1\f]", "{\"\xc3\xa9\":1,\"\xc3\xa9\":2}", `{"a" : 1 , "b" : [ ] }`, `[{},[],"",0,null,true,false]`, `[nulll]`, `"` + strings.Repeat("é", 20) + `"`,
}

// holdsSure asks what always holds: what sureJSON takes for good is good, by
// jsontext's word. usual says that it must be taken where it is good.
func holdsSure(t *testing.T, doc []byte, usual bool) {
	t.Helper()
	strict := jsontext.Value(doc).IsValid()
	lenient := jsontext.Value(doc).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if got := sureJSON(doc, true); got && !strict || usual && !got && strict {
		t.Errorf("sureJSON(%q, strict) = %v, it is %v", doc, got, strict)
	}
	if got := sureJSON(doc, false); got && !lenient || usual && !got && lenient {
		t.Errorf("sureJSON(%q) = %v, it is %v", doc, got, lenient)
	}
}

// unusual says that a document has what sureJSON leaves to jsontext.
func unusual(doc string) bool {
	low := strings.ToLower(doc)
	return strings.Contains(low, `\ud`) || strings.Contains(low, `\u0062"`)
}

func TestSureOfJSONOnlyWhereItIs(t *testing.T) {
	for _, doc := range surely {
		holdsSure(t, []byte(doc), !unusual(doc))
	}
	for n := range 40 { // at every place in a word of eight bytes
		text := strings.Repeat("x", n)
		for _, odd := range []string{`\`, `\n`, `\u0041`, `"`, "\x01", "é", "\xff", "\x7f", " "} {
			holdsSure(t, []byte(`["`+text+odd+text+`","y"]`), true)
		}
	}
}

func TestSureOfJSONWithinItsBounds(t *testing.T) {
	deep := func(n int) []byte {
		return []byte(strings.Repeat(`{"a":[`, n/2) + strings.Repeat(`]}`, n/2))
	}
	holdsSure(t, deep(sureDepth), true)
	if sureJSON(deep(sureDepth+2), true) {
		t.Error("it followed brackets deeper than its bound")
	}
	named := func(n int, more string) []byte {
		var b bytes.Buffer
		for i := range n {
			fmt.Fprintf(&b, `,"name %d":0`, i)
		}
		return []byte("{" + b.String()[1:] + more + "}")
	}
	holdsSure(t, named(sureNames, ""), true)
	holdsSure(t, named(sureNames-1, `,"name 7":1`), true)
	if sureJSON(named(sureNames+1, ""), true) {
		t.Error("it compared more names than it keeps")
	}
}

func FuzzSureJSON(f *testing.F) {
	for _, doc := range surely {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		holdsSure(t, doc, false)
		q, _ := jsontext.AppendQuote(nil, doc)
		holdsSure(t, append(append([]byte(`{"a":`), q...), `,"b":[1,{"a":null}]}`...), false)
	})
}
