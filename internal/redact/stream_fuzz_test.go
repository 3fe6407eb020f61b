package redact

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzStream asks that a stream, however its text is cut, writes what Text
// gives for the whole, and that no registered literal is among it. plan says
// how long the pieces are, and which engine reads them.
func FuzzStream(f *testing.F) {
	for i, s := range corpus() {
		if i%6 == 0 {
			f.Add(s, []byte{byte(i / 6), byte(i % 11), 3})
		}
	}
	for i, text := range labelledTexts() {
		if i%150 == 0 {
			f.Add([]byte(text), []byte{byte(i), 1, 7, 40})
		}
	}
	for i, text := range joints {
		f.Add([]byte(text+canary+text), []byte{byte(i), 5, 9})
	}
	es := engines(f)
	f.Fuzz(func(t *testing.T, text, plan []byte) {
		if len(plan) == 0 {
			return
		}
		e := es[int(plan[0])%len(es)]
		texts := [][]byte{text, slices.Concat(text, []byte(canary), text)}
		if len(plan)%4 == 0 { // behind the head of a line that is long
			texts = append(texts, slices.Concat([]byte("cookie: "), bytes.Repeat([]byte("a b "), 2060), text))
		}
		for _, s := range texts {
			want := e.Text(s)
			if bytes.Contains(want.Out, []byte(canary)) {
				t.Fatalf("Text(%q) = %q", s, want.Out)
			}
			agrees(t, e, want, asPlanned(s, plan[1:])...)
		}
	})
}

// asPlanned cuts s as a plan says.
func asPlanned(s, plan []byte) (l [][]byte) {
	for i := 0; len(s) > 0; i++ {
		n := len(s)
		if len(plan) > 0 {
			n = min(n, 1+int(plan[i%len(plan)]))
		}
		l, s = append(l, s[:n]), s[n:]
	}
	return l
}
