package health

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes the report under the document's headings, with its lines; behind
// it, where there are several, each tenant in the same form. Names are cleaned
// by clean, for they may be anybody's words.
func (r Report) Markdown(w io.Writer, clean func(string) string) error {
	var b strings.Builder
	of := ""
	if r.Tenant != "" {
		of = " of " + clean(r.Tenant)
	}
	fmt.Fprintf(&b, "## Safety Net Daily Report - %s%s\n\n", r.Date, of)
	if !r.Over {
		fmt.Fprintf(&b, "So far, at %s.\n\n", r.At.Format("15:04 UTC"))
	}
	r.Section.lines(&b, clean)
	if len(r.Tenants)+r.More > 1 {
		for i := range r.Tenants {
			fmt.Fprintf(&b, "\n## Tenant %s\n\n", clean(r.Tenants[i].Tenant))
			r.Tenants[i].lines(&b, clean)
		}
		if r.More > 0 {
			fmt.Fprintf(&b, "\n%d more tenants are not shown.\n", r.More)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shortReasons is how many reasons a short report says.
const shortReasons = 3

// Short is the report of everything together, for a message that may be cut at its
// end: the health and why it is not GREEN first, then the layers, and no tenant's
// own. Names are cleaned by clean.
func (r Report) Short(clean func(string) string) string {
	var b strings.Builder
	r.Section.overall(&b, clean, shortReasons)
	r.Section.layers(&b, clean)
	return b.String()
}

func (s *Section) lines(b *strings.Builder, clean func(string) string) {
	s.layers(b, clean)
	s.overall(b, clean, len(s.Because))
}

func (s *Section) layers(b *strings.Builder, clean func(string) string) {
	for _, part := range s.Parts() {
		fmt.Fprintf(b, "### %s\n", part.Title)
		for _, l := range part.Lines {
			fmt.Fprintf(b, "- %s: %s\n", l.Name, clean(l.Value))
		}
		b.WriteByte('\n')
	}
}

// overall is the health, and at most so many reasons for it.
func (s *Section) overall(b *strings.Builder, clean func(string) string, most int) {
	fmt.Fprintf(b, "### Overall Health: %s\n", s.Health)
	for i, why := range s.Because {
		if i == most {
			fmt.Fprintf(b, "- and %d more\n", len(s.Because)-most)
			break
		}
		fmt.Fprintf(b, "- %s\n", clean(why))
	}
}

// Part is one layer of a report, with the document's title and lines.
type Part struct {
	Title string
	Lines []Line
}

// Line is one line of it.
type Line struct{ Name, Value string }

// Parts are the layers, in the document's words and order.
func (s *Section) Parts() []Part {
	return []Part{
		{"Layer 1: Cooldowns & Limits", []Line{
			{"Total iterations today", s.Iterations.String()},
			{"API cost today", s.Cost.dollars(true)},
			{"Budget remaining", s.remaining()},
		}},
		{"Layer 2: Threshold Scores", []Line{
			{"Actions auto-executed", s.Executed.String()},
			{"Actions escalated", s.Escalated.String()},
			{"Average confidence", s.confidence()},
		}},
		{"Layer 3: Version History", []Line{
			{"Commits today", s.Commits.String()},
			{"Rollbacks today", s.Rollbacks.String()},
			{"State snapshots", s.Snapshots},
		}},
		{"Layer 4: Human Override", []Line{
			{"Emergency stops", s.Stops.String()},
			{"Manual interventions", s.Interventions.String()},
			{"Decision queue items", s.Waiting.String()},
		}},
		{"Layer 5: Anomaly Detection", []Line{
			{"Anomalies detected", s.Anomalies.String()},
			{"Severity breakdown", s.breakdown()},
			{"Patterns observed", s.patterns()},
		}},
	}
}

func (s *Section) remaining() string {
	text := s.Remaining.dollars(false)
	if s.Percent != nil {
		text += fmt.Sprintf(" (%.0f%%)", floor(*s.Percent))
	}
	return text
}

// confidence is the mean; where no action had a score to judge by, that.
func (s *Section) confidence() string {
	switch {
	case s.Confidence != nil:
		return fmt.Sprintf("%.1f%%", *s.Confidence)
	case s.Scored.State == Is:
		return "none was asked for"
	}
	return "unknown"
}

func (s *Section) breakdown() string {
	var out []string
	for _, name := range Severities() {
		out = append(out, fmt.Sprintf("%s(%s)", name, s.Severities[name]))
	}
	return strings.Join(out, " ")
}

func (s *Section) patterns() string {
	var out []string
	for _, p := range s.Patterns {
		one := p.Condition
		if p.Times > 1 {
			one += fmt.Sprintf(" x %d", p.Times)
		}
		out = append(out, one)
	}
	if s.MoreFound > 0 {
		out = append(out, fmt.Sprintf("%d more", s.MoreFound))
	}
	switch {
	case len(out) > 0:
		return strings.Join(out, ", ")
	case s.Anomalies.State == Unknown:
		return "unknown"
	}
	return "none"
}

// dollars is an amount of millionths in whole cents: what was spent is rounded up,
// what remains down.
func (c Count) dollars(up bool) string {
	if c.State != Is {
		return c.String()
	}
	const cent = 10_000
	n := max(c.N, 0)
	cents := n / cent
	if up && n%cent > 0 {
		cents++
	}
	return fmt.Sprintf("$%d.%02d", cents/100, cents%100)
}

// floor is a share in whole hundredths that never says more than there is.
func floor(percent float64) float64 { return float64(int64(max(percent, 0))) }
