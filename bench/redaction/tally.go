package redaction

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// target is what a class of a set should reach, in percent; 0 is no target.
type target struct {
	atLeast float64 // of the secrets masked
	atMost  float64 // of the others masked
}

// every is the class of a whole set.
const every = "all"

// tally counts a set by class.
type tally struct {
	secrets, others map[string]*measure.Halves
}

func newTally() *tally {
	return &tally{map[string]*measure.Halves{}, map[string]*measure.Halves{}}
}

// addMark counts one mark, in its class, its group and the whole.
func (t *tally) addMark(m Mark, half int, ours, theirs bool) {
	in := t.others
	if m.Secret {
		in = t.secrets
	}
	for _, class := range []string{every, m.Class, m.Group} {
		if class == "" {
			continue
		}
		h := in[class]
		if h == nil {
			h = &measure.Halves{}
			in[class] = h
		}
		h.Add(half == unused, ours, theirs)
	}
}

// measureTexts returns what measures a set of texts with marks.
func measureTexts(name string, read func(dir string, each func(Text) error) error,
	targets map[string]target) func(*command, *measure.Run, string) ([]measure.Figure, error) {
	return func(c *command, b *measure.Run, dir string) ([]measure.Figure, error) {
		s, err := newScanner()
		if err != nil {
			return nil, err
		}
		t, size, files := newTally(), 0, 0
		err = read(dir, func(text Text) error {
			if err := b.Ctx.Err(); err != nil {
				return err
			}
			ours, err := s.findOurs(text.Body)
			if err != nil {
				return fmt.Errorf("%s: %w", text.Path, err)
			}
			theirs := s.findTheirs(text.Body)
			for _, m := range text.Marks {
				masked := m.isMasked(text.Body, ours)
				t.addMark(m, halfOf(text.Path), masked, m.isMasked(text.Body, theirs))
				if masked != m.Secret {
					what := "missed " + m.Class
					if masked {
						what = "false " + m.Class
					}
					c.noteMiss(name, what, text.Path, excerptAround(text.Body, m.Start, m.End, 200))
				}
			}
			if size, files = size+len(text.Body), files+1; files%500 == 0 {
				b.Say("%s: %d texts, %d MB", name, files, size/1e6)
			}
			return nil
		})
		return t.listFigures(name, targets), err
	}
}

// minClass is the number of marks in the unused half from which a class has a line.
const minClass = 25

// listFigures returns a figure for each class.
func (t *tally) listFigures(name string, targets map[string]target) []measure.Figure {
	var list []measure.Figure
	for _, class := range slices.SortedFunc(maps.Keys(t.secrets), compareClasses) {
		aim, has := targets[class]
		if h := t.secrets[class]; class == every || has || h.Unused.Of >= minClass {
			list = append(list, newFigure(name+": "+class+": masked", *h, aim.atLeast, true))
		}
	}
	for _, class := range slices.SortedFunc(maps.Keys(t.others), compareClasses) {
		aim := targets[class]
		if h := t.others[class]; class == every || aim.atMost > 0 || h.Unused.Of >= minClass {
			list = append(list, newFigure(name+": "+class+falseOnes, *h, aim.atMost, false))
		}
	}
	return list
}

// compareClasses orders classes by name, the whole first.
func compareClasses(a, b string) int {
	if (a == every) != (b == every) {
		if a == every {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

// newFigure returns a figure in percent of the unused half.
func newFigure(name string, h measure.Halves, aim float64, atLeast bool) measure.Figure {
	f := measure.Figure{Name: name, Measured: h.Unused.Percent(h.Unused.Holdfast), Unit: "%", BesideIs: "gitleaks",
		Beside: h.Unused.Percent(h.Unused.Gitleaks), Halves: &h}
	if aim > 0 {
		f.Target, f.Met = fmt.Sprintf("at most %g %%", aim), f.Measured <= aim
		if atLeast {
			f.Target, f.Met = fmt.Sprintf("at least %g %%", aim), f.Measured >= aim
		}
	}
	return f
}

// drawHalves writes figures as the table of doc/redaction.md.
func drawHalves(w io.Writer, all []measure.Figure) error {
	var b strings.Builder
	b.WriteString("| what | of | Holdfast | gitleaks | target | used half |\n|---|---|---|---|---|---|\n")
	for _, f := range all {
		if f.Halves == nil {
			fmt.Fprintf(&b, "| %s | | %s | | | |\n", f.Name, f.Note)
			continue
		}
		u, target := f.Halves.Unused, f.Target
		if target != "" && !f.Met {
			target += ", missed"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", f.Name, formatOf(f, u.Of), formatShare(f, u, u.Holdfast),
			formatPeer(f, u), target, formatUsed(f))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// formatOf returns the size of a half: a count, or megabytes.
func formatOf(f measure.Figure, of int) string {
	if f.Unit == perMB {
		return fmt.Sprintf("%.1f MB", float64(of)/1e6)
	}
	return fmt.Sprint(of)
}

// formatShare returns n of a half in the figure's unit.
func formatShare(f measure.Figure, h measure.HalfCount, n int) string {
	switch {
	case h.Of == 0:
		return "none"
	case f.Unit == perMB:
		return fmt.Sprintf("%.2f a MB", float64(n)/(float64(h.Of)/1e6))
	case f.Unit == "%":
		return fmt.Sprintf("%.1f %%", h.Percent(n))
	}
	return fmt.Sprint(n)
}

// formatUsed returns the figure of the used half, and by how much it is better.
func formatUsed(f measure.Figure) string {
	u, n := f.Halves.Unused, f.Halves.Used
	better := n.Percent(n.Holdfast) - u.Percent(u.Holdfast)
	if strings.HasSuffix(f.Name, falseOnes) {
		better = -better
	}
	text := formatShare(f, n, n.Holdfast)
	if f.Unit == "%" && n.Of > 0 && better > 3 {
		text += fmt.Sprintf(", better by %.1f", better)
	}
	return text
}

// falseOnes ends the name of a figure that should be low.
const falseOnes = ": false ones masked"

// formatPeer returns the peer's figure, if it has one.
func formatPeer(f measure.Figure, h measure.HalfCount) string {
	if f.BesideIs == "" {
		return ""
	}
	return formatShare(f, h, h.Gitleaks)
}

// perMB is the unit of findings in source code.
const perMB = "findings per MB"
