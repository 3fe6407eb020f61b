package pdftext

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// makeHostile are documents that are made to take time or memory.
func makeHostile() map[string][]byte {
	bomb := func(size int) string {
		var b bytes.Buffer
		w, _ := zlib.NewWriterLevel(&b, 1) // of a known level
		chunk := bytes.Repeat([]byte("0 "), 1<<15)
		for ; size > 0; size -= len(chunk) {
			_, _ = w.Write(chunk) // to memory
		}
		_ = w.Close()
		return b.String()
	}
	var forms []string
	for i := range 11 {
		forms = append(forms, makeStream(fmt.Sprintf("/Subtype/Form/Resources<</XObject<</X %d 0 R>>>>", i+7),
			strings.Repeat("/X Do ", 200)))
	}
	var small []string
	for range 40 {
		small = append(small, makeStream("/Filter/FlateDecode", bomb(3<<20)))
	}
	var many, wide strings.Builder
	for i := range 250_000 {
		fmt.Fprintf(&many, "%d 0 obj 1 endobj ", i)
	}
	for range 5000 {
		wide.WriteString("<0000> <ffff> <0041> ")
	}
	pages := []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[" + strings.Repeat("3 0 R ", 200_000) +
		"]>>",
		"<</Type/Page/Contents[" + strings.Repeat("4 0 R ", 100_000) + "]>>", makeStream("/Filter/FlateDecode",
			bomb(1<<20))}
	return map[string][]byte{
		"a bomb":           makePage("", "", makeStream("/Filter/FlateDecode", bomb(100<<20))),
		"many small bombs": makePage("", "", small...),
		"bomb of bombs":    makePage("", "", makeStream("/Filter[/FlateDecode/RunLengthDecode]", bomb(15<<20))),
		"page tree loop": makePDF("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[2 0 R 1 0 R 3 0 R]>>",
			"<</Kids[2 0 R 3 0 R]>>"),
		"reference loop": makePDF("<</Type/Catalog/Pages 2 0 R>>", "3 0 R", "2 0 R"),
		"one page often": makePDF(pages...),
		"form loop": makePage("/X Do", "", makeStream("/Subtype/Form/Resources<</XObject<</X 6 0 R>>>>",
			"/X Do /X Do /X Do")),
		"forms in forms":     makePage("/X Do", "", forms...),
		"nested lists":       makePDF(strings.Repeat("[", 1<<20)),
		"nested dicts":       makePDF(strings.Repeat("<</A", 1<<18)),
		"nested parentheses": makePDF(strings.Repeat("(", 1<<20)),
		"trailers":           []byte("%PDF-1.4 " + strings.Repeat("trailer<<", 1<<17)),
		"objects":            []byte("%PDF-1.4 " + many.String()),
		"values":             makePDF("[" + strings.Repeat("1 ", 4<<20) + "]"),
		"streams":            []byte("%PDF-1.4 " + strings.Repeat("1 0 obj<<>>stream ", 1<<18)),
		"images":             makePage(strings.Repeat("BI ID ", 1<<19), ""),
		"ranges": makePage("BT /G 9 Tf (a) Tj ET", "/G 6 0 R", "<</ToUnicode 7 0 R>>",
			makeStream("", "begincmap "+wide.String()+"endbfrange")),
		"widths": makePage("BT /G 9 Tf (a) Tj ET", "/G 6 0 R", "<</Subtype/Type0/DescendantFonts[<</W["+
			strings.Repeat("0 65535 1 ", 10000)+"]>>]>>"),
		"far numbers": makePage("1e308 1e308 1e308 1e308 1e308 1e308 cm BT /F 1e300 Tf (a) Tj 1 1 Td (b) Tj ET", ""),
		"saved":       makePage(strings.Repeat("q ", 1<<20), ""),
	}
}

// TestReadIsBounded: no document takes more than a few seconds of this machine's slowest hour, or more memory than
// a small multiple of the limits.
func TestReadIsBounded(t *testing.T) {
	for what, data := range makeHostile() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		d := Read(ctx, data)
		took := time.Since(begun)
		runtime.ReadMemStats(&after)
		cancel()
		if took > 10*time.Second {
			t.Errorf("%s: took %v", what, took)
		}
		if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 600 {
			t.Errorf("%s: allocated %d MB", what, n)
		}
		t.Logf("%-20s %9d bytes %8v %v", what, len(data), took.Round(time.Millisecond), d.Gaps)
	}
}

// TestReadEndsWithItsContext: what was read until then is returned.
func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	text := strings.Repeat("BT (abc) Tj ET ", 1<<16)
	if d := Read(ctx, makePage(text, "")); !slices.Equal(d.Gaps, []Gap{OutOfTime}) {
		t.Errorf("%v", d.Gaps)
	}
	r := &reader{budget: &budget{ctx: t.Context()}, objects: map[int]*object{}}
	r.readPart(func() { r.writeText("abc"); panic(OutOfTime) })
	if len(r.sections) != 1 || !slices.Equal(r.gaps, []Gap{OutOfTime}) {
		t.Errorf("%v %v", r.sections, r.gaps)
	}
}

// TestReadTakesEveryCut: a document that is cut anywhere is read to the cut.
func TestReadTakesEveryCut(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pdf")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(data); n += 7 {
			Read(t.Context(), data[:n])
			Read(t.Context(), data[n:])
		}
	}
}

// FuzzRead: no document makes Read fail, or return more than its limits.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.pdf")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(makePage("BT /F 9 Tf [(a) -3 <41>] TJ /X Do BI ID EI (b) ' ET", "/G 6 0 R",
		"<</Subtype/Type0/ToUnicode 7 0 R/DescendantFonts[<</W[1 2 3 4[5]]>>]>>",
		makeStream("/Filter/LZWDecode", "1 begincodespacerange <00> <ff> endcodespacerange <00> <01> <41> endbfrange")))
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		size := 0
		for _, s := range Read(ctx, data).Sections {
			size += len(s.Text)
		}
		if size > maxText+1<<20 {
			t.Errorf("%d bytes of text", size)
		}
	})
}
