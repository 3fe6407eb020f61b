package pdftext

import (
	"bytes"
	"compress/lzw"
	"compress/zlib"
	"context"
	"encoding/ascii85"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

func TestMain(m *testing.M) {
	reportFault = func(fault any) { panic(fault) }
	os.Exit(m.Run())
}

// readText returns the text of a document by page.
func readText(t *testing.T, data []byte) (pages map[int]string, gaps []Gap) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d := Read(ctx, data)
	pages = map[int]string{}
	for _, s := range d.Sections {
		pages[s.Page] += string(s.Text)
	}
	return pages, d.Gaps
}

// makePDF returns a document of objects, whose numbers count from 1. The first is the catalog.
func makePDF(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	for i, o := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	b.WriteString("trailer <</Root 1 0 R>>\n%%EOF\n")
	return b.Bytes()
}

func makeStream(entries, content string) string {
	return fmt.Sprintf("<<%s /Length %d>>\nstream\n%s\nendstream", entries, len(content), content)
}

// makePage returns a document with one page of that content. Its fonts are /F and those in the entries.
func makePage(content, fonts string, more ...string) []byte {
	return makePDF(append([]string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 1/Kids[3 0 R]>>",
		"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R " + fonts +
			">>/XObject<</X 6 0 R>>/Properties<</P 6 0 R>>>>/Annots 6 0 R>>",
		makeStream("", content), "<</Type/Font/Subtype/Type1/BaseFont/Courier/Encoding/WinAnsiEncoding>>"}, more...)...)
}

// TestReadFindsTextOfOtherWriters: documents of ReportLab 3.6, also with object streams, linearized and encrypted
// by qpdf 11 with an empty user password.
func TestReadFindsTextOfOtherWriters(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pdf")
	if err != nil || len(files) < 9 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages, gaps := readText(t, data)
		if filepath.Base(file) == "password.pdf" {
			if len(pages) > 0 || !slices.Equal(gaps, []Gap{Encrypted}) {
				t.Errorf("%s: %v %v", file, gaps, pages)
			}
			continue
		}
		if len(gaps) > 0 || pages[1] != "The first page says nothing.\n" || pages[2] != "The token is\n"+token+"\n" ||
			!strings.Contains(pages[0], "Title: A small document\n") {
			t.Errorf("%s: %v %v", file, gaps, pages)
		}
	}
}

// splitText returns a token in two halves.
func splitText() (a, b string) { return token[:13], token[13:] }

// TestReadJoinsPiecesOfAWord: a token that is written in pieces is one word of its page.
func TestReadJoinsPiecesOfAWord(t *testing.T) {
	a, b := splitText()
	var glyphs, shown, codes strings.Builder
	for i, c := range token {
		fmt.Fprintf(&glyphs, "1 0 0 1 %.1f 700 Tm (%c) Tj ", 50+6*float64(i), c)
		fmt.Fprintf(&shown, "(%c) %d ", c, (i%7-3)*20)
		fmt.Fprintf(&codes, "%04x", i+3)
	}
	toUnicode := "begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange\n"
	for i, c := range token[:30] {
		toUnicode += fmt.Sprintf("1 beginbfchar <%04x> <%04x> endbfchar\n", i+3, c)
	}
	toUnicode += "1 beginbfrange <0021> <0024> <0047> endbfrange 1 beginbfrange <0025> <002a> " +
		"[<0030> <0031> <0032> <0033> <0034> <0035>] endbfrange"
	// GHIJ012345 are the last ten of the token: codes 33 to 42.
	composite := func(encoding, more string) string {
		return "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding" + encoding + more +
			"/DescendantFonts[<</Subtype/CIDFontType2" +
			"/CIDSystemInfo<</Ordering(Japan1)>>/DW 600>>]>>"
	}
	wide := func(add int) (s string) {
		for _, c := range token {
			s += fmt.Sprintf("%04x", int(c)+add)
		}
		return s
	}
	names := "/Differences[1/g/h/p/underscore/zero.alt/uni0031/u0032/three]"
	for what, data := range map[string][]byte{
		"one string":  makePage("BT /F 10 Tf 50 700 Td ("+token+") Tj ET", ""),
		"hex":         makePage("BT /F 10 Tf 50 700 Td <"+hex.EncodeToString([]byte(token))+"> Tj ET", ""),
		"octal":       makePage(`BT /F 10 Tf (\147hp\`+"\n_"+token[4:]+") Tj ET", ""),
		"kerned":      makePage("BT /F 10 Tf 50 700 Td [("+a+") -90 ("+b+")] TJ ET", ""),
		"by glyph":    makePage("BT /F 10 Tf ["+shown.String()+"] TJ ET", ""),
		"two strings": makePage("BT /F 10 Tf 50 700 Td ("+a+") Tj ("+b+") Tj ET", ""),
		"moved":       makePage(fmt.Sprintf("BT /F 10 Tf 50 700 Td (%s) Tj %d 0 Td (%s) Tj ET", a, 6*len(a), b), ""),
		"two blocks": makePage(fmt.Sprintf("BT /F 10 Tf 50 700 Td (%s) Tj ET q 0.5 g BT /F 10 Tf %d 700 Td (%s) Tj ET Q",
			a, 50+6*len(a), b), ""),
		"positions":  makePage("BT /F 10 Tf "+glyphs.String()+"ET", ""),
		"rotated":    makePage("q 0 1 -1 0 300 0 cm BT /F 10 Tf "+glyphs.String()+"ET Q", ""),
		"quotes":     makePage("BT /F 10 Tf 12 TL ("+token+") ' ET", ""),
		"two quotes": makePage("BT /F 10 Tf 12 TL 0 0 ("+token+") \" ET", ""),
		"scaled": makePage(fmt.Sprintf("BT /F 1 Tf 10 0 0 10 50 700 Tm (%s) Tj %.1f 0 Td (%s) Tj ET", a,
			0.6*float64(len(a)), b), ""),
		"invisible":   makePage("BT 3 Tr /F 10 Tf ("+token+") Tj ET", ""),
		"no font":     makePage("BT ("+token+") Tj ET", ""),
		"after image": makePage("BI /W 1 /H 1 ID \x00EI\xff(Tj EI BT /F 9 Tf ("+token+") Tj ET", ""),
		"form": makePage("/X Do", "", makeStream("/Type/XObject/Subtype/Form/Matrix[1 0 0 1 5 5]",
			"BT /F 10 Tf ("+token+") Tj ET")),
		"appearance": makePage("", "", "[<</Subtype/Widget/AP<</N 7 0 R>>>>]", makeStream(
			"/Subtype/Form/Resources<</Font<</F 5 0 R>>>>", "BT /F 10 Tf ("+token+") Tj ET")),
		"identity": makePage("BT /G 10 Tf <"+codes.String()+"> Tj ET", "/G 6 0 R",
			composite("/Identity-H", "/ToUnicode 7 0 R"), makeStream("", toUnicode)),
		"utf-16":    makePage("BT /G 10 Tf <"+wide(0)+"> Tj ET", "/G 6 0 R", composite("/UniJIS-UTF16-H", "")),
		"japan":     makePage("BT /G 10 Tf <"+wide(-31)+"> Tj ET", "/G 6 0 R", composite("/Identity-H", "")),
		"shift jis": makePage("BT /G 10 Tf ("+token+") Tj ET", "/G 6 0 R", composite("/90ms-RKSJ-H", "")),
		"glyphs": makePage("BT /G 10 Tf <0102030405060708> Tj (", "/G 6 0 R",
			"<</Type/Font/Subtype/Type3/FontMatrix[0.001 0 0 0.001 0 0]/Encoding<<"+names+">>>>"),
		"properties": makePage("/Span /P BDC /F 10 Tf (x) Tj EMC", "", "<</ActualText("+token+")>>"),
		"actual":     makePage("/Span <</ActualText <feff"+wide(0)+">>> BDC EMC", ""),
		"note":       makePage("", "", "[<</Subtype/Text/Contents("+token+")>>]"),
	} {
		want := token
		if what == "glyphs" {
			want = "ghp_0123"
		}
		pages, gaps := readText(t, data)
		if !strings.Contains(pages[1], want) || len(gaps) > 0 {
			t.Errorf("%s: %v %v", what, gaps, pages)
		}
	}
}

// TestReadKeepsWordsApart: what a reader sees as two words or lines is not one.
func TestReadKeepsWordsApart(t *testing.T) {
	for content, want := range map[string]string{
		"[(one) -250 (two)] TJ":            "one two",
		"(one) Tj 24 0 Td (two) Tj":        "one two",
		"(one) Tj 0 -12 Td (two) Tj":       "one\ntwo",
		"12 TL (one) Tj T* (two) Tj":       "one\ntwo",
		"(one) Tj 1 0 0 1 0 0 Tm (two) Tj": "one\ntwo",
		"(one) Tj 5 Ts (a) Tj":             "onea",
		"4 Tw (one two) Tj":                "one two",
		"(one\xa0two) Tj":                  "one two",
	} {
		pages, gaps := readText(t, makePage("BT /F 10 Tf 100 700 Td "+content+" ET", ""))
		if strings.TrimSpace(pages[1]) != want || len(gaps) > 0 {
			t.Errorf("%s: %v %q, want %q", content, gaps, pages[1], want)
		}
	}
}

// TestReadFindsTextOutsideOfPages: what no page shows is text of the document.
func TestReadFindsTextOutsideOfPages(t *testing.T) {
	utf16 := "\xfe\xff"
	for _, c := range []byte(token) {
		utf16 += "\x00" + string(rune(c))
	}
	superseded := makePage("BT /F 10 Tf ("+token+") Tj ET", "")
	superseded = append(superseded, "4 0 obj\n"+makeStream("", "BT /F 10 Tf (new) Tj ET")+"\nendobj\n"...)
	for what, c := range map[string]struct {
		data []byte
		want string
	}{
		"title":      {makePage("", "", "null", "<</Title("+token+")>>"), "Title: " + token},
		"utf-16":     {makePage("", "", "null", "<</Author("+utf16+")>>"), "Author: " + token},
		"field":      {makePage("", "", "null", "<</FT/Tx/T(Password)/V("+token+")>>"), "Password: " + token},
		"metadata":   {makePage("", "", "null", makeStream("/Type/Metadata/Subtype/XML", "<x>"+token+"</x>")), token},
		"attachment": {makePage("", "", "null", makeStream("/Type/EmbeddedFile", "key="+token)), "key=" + token},
		"script":     {makePage("", "", "null", "<</S/JavaScript/JS(var a = '"+token+"')>>"), token},
		"orphan":     {makePage("", "", "null", makeStream("", "BT /F 9 Tf [(ghp_)-3("+token[4:]+")]TJ ET")), token},
		"superseded": {superseded, token},
	} {
		pages, gaps := readText(t, c.data)
		if !strings.Contains(pages[0], c.want) || len(gaps) > 0 {
			t.Errorf("%s: %v %v", what, gaps, pages)
		}
	}
}

// encodeLZW is LZW whose codes grow one code early.
func encodeLZW(s string) string {
	var out bytes.Buffer
	bits, held, width := 0, 0, 9
	put := func(code int) {
		for bits, held = bits<<width|code, held+width; held >= 8; held -= 8 {
			out.WriteByte(byte(bits >> (held - 8)))
			bits &= 1<<(held-8) - 1
		}
	}
	table, last := map[string]int{}, ""
	code := func(s string) int {
		if len(s) == 1 {
			return int(s[0])
		}
		return table[s]
	}
	put(256)
	for i := range s {
		c := s[i : i+1]
		if _, known := table[last+c]; last == "" || known {
			last += c
			continue
		}
		put(code(last))
		table[last+c] = 258 + len(table)
		if n := 258 + len(table); n == 4094 {
			put(256)
			table, width = map[string]int{}, 9
		} else if n+1 > 1<<width {
			width++
		}
		last = c
	}
	put(code(last))
	put(257)
	put(0)
	return out.String()
}

func TestReadDecodesEveryFilter(t *testing.T) {
	content := "BT /F 10 Tf 50 700 Td (" + token + ") Tj ET " + strings.Repeat("0.1 0.22 0.333 rg ", 800)
	deflate := func(s string) string {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		_, _ = w.Write([]byte(s)) // to memory
		_ = w.Close()
		return b.String()
	}
	var late, base85, rows bytes.Buffer
	w := lzw.NewWriter(&late, lzw.MSB, 8)
	_, _ = w.Write([]byte(content)) // to memory
	_ = w.Close()
	e := ascii85.NewEncoder(&base85)
	_, _ = e.Write([]byte(content)) // to memory
	_ = e.Close()
	above := make([]byte, 10)
	for at := 0; at < len(content); at += 10 {
		row := []byte((content + strings.Repeat(" ", 10))[at : at+10])
		kind := byte(at / 10 % 5)
		rows.WriteByte(kind)
		for i, c := range row {
			var left, corner byte
			if i > 0 {
				left, corner = row[i-1], above[i-1]
			}
			rows.WriteByte(c - [5]byte{0, left, above[i], byte((int(left) + int(above[i])) / 2),
				choosePaeth(left, above[i], corner)}[kind])
		}
		above = row
	}
	differences := []byte(content + strings.Repeat(" ", 10-len(content)%10))
	for i := len(differences) - 1; i >= 0; i-- {
		if i%10 > 0 {
			differences[i] -= differences[i-1]
		}
	}
	var runs strings.Builder
	for at := 0; at < len(content); at += 100 {
		piece := content[at:min(len(content), at+100)]
		runs.WriteString(string([]byte{byte(len(piece) - 1)}) + piece + "\xff ")
	}
	for entries, stream := range map[string]string{
		"/Filter/FlateDecode":                                          deflate(content),
		"/Filter[/ASCIIHexDecode/FlateDecode]":                         hex.EncodeToString([]byte(deflate(content))) + ">",
		"/Filter/LZWDecode":                                            encodeLZW(content),
		"/Filter/LZWDecode/DecodeParms<</EarlyChange 0>>":              late.String(),
		"/Filter/ASCII85Decode":                                        base85.String() + "~>",
		"/Filter/RunLengthDecode":                                      runs.String() + "\x80",
		"/Filter/FlateDecode/DecodeParms<</Predictor 15/Columns 10>>":  deflate(rows.String()),
		"/Filter/FlateDecode/DecodeParms[<</Predictor 2/Columns 10>>]": deflate(string(differences)),
	} {
		data := makePDF("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]>>",
			"<</Type/Page/Contents[4 0 R]>>", makeStream(entries, stream))
		pages, gaps := readText(t, data)
		if !strings.Contains(pages[1], token) || len(gaps) > 0 {
			t.Errorf("%s: %v %v", entries, gaps, pages)
		}
	}
	// The example of the specification.
	b, _ := hex.DecodeString("800b6050220c0c8501")
	r := &reader{budget: &budget{ctx: t.Context()}}
	if got := string(r.decodeLZW(b, true)); got != "-----A---B" {
		t.Errorf("%q", got)
	}
}

// TestReadSaysWhatIsMissing: unreadable parts are gaps, and the rest is text.
func TestReadSaysWhatIsMissing(t *testing.T) {
	whole := makePage("BT ("+token+") Tj ET", "")
	picture := makeStream("/Subtype/Image/Filter/DCTDecode", "\xff\xd8")
	for what, c := range map[string]struct {
		data []byte
		want Gap
	}{
		"scan": {makePage("/X Do", "", picture), PictureOnly},
		"glyphs": {makePage("BT /G 9 Tf <00010002> Tj ET", "/G 6 0 R",
			"<</Subtype/Type0/Encoding/Identity-H>>"), NoUnicode},
		"attachment": {makePage("", "", "null", makeStream("/Type/EmbeddedFile", "\x00\x01\x02\x03PK")), Attachment},
		"no PDF":     {[]byte("%PDF-1.4\nnothing"), Damaged},
		"empty":      {nil, Damaged},
		"cut":        {whole[:bytes.Index(whole, []byte("ghp_"))], Damaged},
		"cut early":  {whole[:bytes.Index(whole, []byte("4 0 obj"))], Damaged},
		"no pages":   {whole[:bytes.Index(whole, []byte("2 0 obj"))], Damaged},
		"deflated":   {makePDF(makeStream("/Filter/FlateDecode", "x\x9cnot deflated")), Damaged},
		"nested":     {makePDF(strings.Repeat("[", 1000)), Damaged},
		"unknown":    {makePDF(makeStream("/Filter/Other", "x")), Damaged},
		"handler":    {append(makePDF("<</Filter/Other/V 1>>"), "trailer<</Encrypt 1 0 R>>"...), Encrypted},
		"short key": {append(makePDF("<</Filter/Standard/V 5/R 2/O<"+strings.Repeat("41", 48)+">/U<"+
			strings.Repeat("41", 48)+">>>"), "trailer<</Encrypt 1 0 R>>"...), Encrypted},
		"large": {make([]byte, MaxSize+1), TooLarge},
	} {
		if _, gaps := readText(t, c.data); !slices.Contains(gaps, c.want) {
			t.Errorf("%s: %v", what, gaps)
		}
	}
	pages, gaps := readText(t, makePage("/X Do BT /F 9 Tf (a) Tj ET", "", picture))
	if len(gaps) > 0 || pages[1] != "a\n" {
		t.Errorf("a page with text and a picture: %v %v", gaps, pages)
	}
}
