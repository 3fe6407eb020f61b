package frames

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/wire"
)

// pieceSeeds are data of events: documents, several of them, and what is none.
var pieceSeeds = []string{
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\u00e9\"b"}}`,
	`{"choices":[{"index":1,"delta":{"content":"x","tool_calls":[{"index":2,"function":{"arguments":"{\"a\":1}"}}]}},{"index":-1.5e+3}],"u":null}`,
	`["a",["b",{"text":"c"}],{},[],true,false,null,1,"d"]`, ` "alone" `, `7`, `{"a/b":{"~":"x","":"y"}}`, `{"xindex":"no number","y_index":3,"in":{"index":[4]}}`,
	`{"text":"1","text":"2"}`, "{\"text\":\"\xff\xfe\",\"\xff\":\"v\"}", `"a" "b"`, `{"a":1}{"text":"b"}`, `{"open":"`, `[DONE]`, `plain words`, ``, `[1,2`, `{"\u0074ext":"escaped","in\u0064ex":9}`,
}

// FuzzPieces: what is read by hand is what jsontext reads.
func FuzzPieces(f *testing.F) {
	for _, s := range pieceSeeds {
		f.Add([]byte(s))
	}
	var r Pieces
	f.Fuzz(func(t *testing.T, data []byte) {
		got, i := r.Of(data)
		want, j := slowPieces(data)
		if !bytes.Equal(i, j) || !slices.EqualFunc(got, want, func(a, b part) bool {
			return bytes.Equal(a.Key, b.Key) && a.Start == b.Start && a.End == b.End && bytes.Equal(a.Text, b.Text) && a.Quoted == b.Quoted && a.Follows == b.Follows
		}) {
			t.Fatalf("%q\n got %+v %q\nwant %+v %q", data, got, i, want, j)
		}
		r.Done()
	})
}

// Whatever the pieces in which it comes, a stream is the same blocks, of which come
// gives those that are whole.
func TestBlocksAreTheSameForEveryCut(t *testing.T) {
	for _, c := range []struct {
		frame Frame
		in    string
		want  []string
	}{
		{Events, "a: 1\ndata: x\n\ndata: y\n\n", []string{"a: 1\ndata: x\n\n", "data: y\n\n"}},
		{Events, "data: x\r\n\r\ndata: y\r\n\r\n", []string{"data: x\r\n\r\n", "data: y\r\n\r\n"}},
		{Events, "data: x\r\rdata: y\r\r", []string{"data: x\r\r", "data: y\r\r"}},
		{Events, "\n\ndata: x\n\nrest", []string{"\n", "\n", "data: x\n\n", "rest"}},
		{Lines, "{}\n\r\n{\"a\":1}\nrest", []string{"{}\n", "\r\n", "{\"a\":1}\n", "rest"}},
		{Events, "data: " + strings.Repeat("long ", 3000) + "\n\ndata: y\n\n", []string{"data: " + strings.Repeat("long ", 3000) + "\n\n", "data: y\n\n"}},
	} {
		for n := 1; n <= len(c.in); n += 1 + n/7 {
			for _, eager := range []bool{false, true} {
				b := &Blocks{In: &slicing{[]byte(c.in), n}, Frame: c.frame, Pieces: new(wire.Lender)}
				var got []string
				for {
					block, err := b.Next()
					for ; len(block) > 0; block = b.Come() {
						if len(got) > 0 && string(block) == "\n" && strings.HasSuffix(got[len(got)-1], "\r") {
							got[len(got)-1] += "\n" // of a CR LF that was cut
						} else {
							got = append(got, string(block))
						}
						if !eager {
							break
						}
					}
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if !slices.Equal(got, c.want) {
					t.Fatalf("%.60q by %d: %.200q, want %.200q", c.in, n, got, c.want)
				}
			}
		}
	}
}

func TestBlocksAreBounded(t *testing.T) {
	b := &Blocks{In: strings.NewReader("data: x\n\ndata: " + strings.Repeat("y", maxEvent+10)), Pieces: new(wire.Lender)}
	if block, err := b.Next(); string(block) != "data: x\n\n" || err != nil {
		t.Fatalf("%q, %v", block, err)
	}
	for b.Come() != nil {
		t.Fatal("a block without its end came")
	}
	for range 2 {
		if block, err := b.Next(); len(block) > 0 || err != coding.ErrTooLarge {
			t.Fatalf("%d bytes, %v", len(block), err)
		}
	}
}

// slicing gives its bytes n at a time.
type slicing struct {
	b []byte
	n int
}

func (c *slicing) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.b[:min(c.n, len(c.b))])
	c.b = c.b[n:]
	return n, nil
}
