package console

import (
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// maxChanged bounds how many changed tools the queue names.
const maxChanged = 20

// toolView is a tool that says of itself something else than at first.
type toolView struct {
	review.Change
	Parts []part
	// Back says that it says again what it said at first, Elsewhere that it
	// says by now what was not kept, Lost that its first text is not known.
	Back, Elsewhere, Lost bool
}

// part is one thing that the tool says, at first and changed.
type part struct {
	Name       string
	First, Now side
	// Alike says that the two differ in nothing that can be shown.
	Alike bool
}

// side is one text of a part, in three pieces of which the middle one differs.
type side struct {
	// Hash is there in the place of a text that was too long to be kept;
	// Absent says that the tool did not say this at all.
	Hash                 string
	Absent               bool
	Before, Other, After string
}

// tool shows what changed, the two texts beside each other.
func (s *Console) tool(v *visit) {
	c, err := s.c.Kernel.Changed(v.r.Context(), v.r.URL.Query().Get("boundary"))
	if err != nil {
		v.fail(err)
		return
	}
	v.show(c.Boundary, "tool", toolViewOf(c))
}

func toolViewOf(c review.Change) toolView {
	out := toolView{Change: c, Back: c.Shows == c.First.Pin, Lost: c.What == nil}
	out.Elsewhere = c.Shows != "" && !out.Back && c.Shows != c.Now.Pin
	names := c.What
	if out.Lost {
		known := review.Change{First: review.Sighting{Says: map[string]review.Said{}}, Now: c.Now}
		names = known.Differs()
	}
	for _, name := range names {
		p := part{Name: name, First: sideOf(c.First.Says, name), Now: sideOf(c.Now.Says, name)}
		if p.First.Hash == "" && p.Now.Hash == "" && !p.First.Absent && !p.Now.Absent {
			if p.Alike = p.First.Other == p.Now.Other; !p.Alike {
				apart(&p.First, &p.Now)
			}
		}
		out.Parts = append(out.Parts, p)
	}
	return out
}

func sideOf(says map[string]review.Said, name string) side {
	s, there := says[name]
	switch {
	case !there:
		return side{Absent: true}
	case s.Text == "":
		return side{Hash: s.Hash}
	}
	if v := jsontext.Value(s.Text); v.IsValid() {
		_, text := kindOf(v)
		return side{Other: text}
	}
	return side{Other: s.Text}
}

// apart takes what two texts begin and end with alike out of their middles.
func apart(a, b *side) {
	x, y := []rune(a.Other), []rune(b.Other)
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	m := 0
	for m < len(x)-n && m < len(y)-n && x[len(x)-1-m] == y[len(y)-1-m] {
		m++
	}
	for _, s := range []struct {
		to   *side
		text []rune
	}{{a, x}, {b, y}} {
		end := len(s.text) - m
		s.to.Before, s.to.Other, s.to.After = string(s.text[:n]), string(s.text[n:end]), string(s.text[end:])
	}
}

// accept takes the tool for the text whose pin the page's button has; the
// kernel refuses it where the tool is not what the page showed.
func (s *Console) accept(v *visit) {
	f := v.r.PostForm
	boundary := f.Get("boundary")
	signed, err := v.s.sign(operator.Statement{Act: operator.Accept, Subject: boundary, Exact: f.Get("pin"), PreviewHash: f.Get("first"),
		Reason: oneLine(f.Get("reason"))}, s.c.Runtime, v.now)
	if err == nil {
		_, err = s.c.Kernel.Accept(signed)
	}
	if err != nil {
		v.back("not accepted: "+letter(s.asError(err)), true)
		return
	}
	what := "what it was changed to"
	if f.Get("pin") == f.Get("first") {
		what = "what it said at first"
	}
	v.goTo(v.at, "/", excerpt.Of(boundary, 128)+" is accepted for "+what, false)
}

// toolPath is the page of a tool.
func toolPath(boundary string) string {
	return "/tool?boundary=" + strings.ReplaceAll(url.QueryEscape(boundary), "%2F", "/")
}
