package gateway

import "testing"

// What became of the work of a call that failed stands behind the server's own texts.
func TestNoted(t *testing.T) {
	for _, c := range [][3]string{
		{`{"content":[{"type":"text","text":"no"}],"isError":true}`, "", `{"content":[{"type":"text","text":"no"}],"isError":true}`},
		{`{"content":[{"type":"text","text":"no"}],"isError":true}`, "it was put back", `{"content":[{"type":"text","text":"no"},{"type":"text","text":"holdfast: it failed, and it was put back"}],"isError":true}`},
		{`{"contents":[]}`, "it was put back", `{"contents":[]}`},
		{`{"content":"none"}`, "it was put back", `{"content":"none"}`},
	} {
		if got := string(noted([]byte(c[0]), c[1])); got != c[2] {
			t.Errorf("%s, not %s", got, c[2])
		}
	}
}
