package console

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/survey"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/ledger"
)

// maxShown bounds one text of an agent's or a server's on a page, in code
// points; a preview has its own bound (4 KiB).
const maxShown = 2000

// maxBrief bounds what a card of the queue shows of a preview, in code points:
// more than the two lines that it has room for.
const maxBrief = 400

// words are the functions that templates use.
func words() template.FuncMap {
	return template.FuncMap{
		"text":    func(s any) template.HTML { return markText(fmt.Sprint(s), maxShown) },
		"brief":   func(s string) template.HTML { return markText(s, maxBrief) },
		"whole":   func(s string) template.HTML { return markText(s, 64<<10) },
		"lines":   lines,
		"ago":     story.Ago,
		"dollars": story.Dollars,
		"amount":  amount,
		"taken":   taken,
		"more":    func(n int64) bool { return n > 0 },
		"in":      func(t, now time.Time) string { return story.Short(t.Sub(now)) },
		"tree":    tree,
		"utc":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"stamp":   stamp,
		"pause":   pauseID,
		"later":   later,
		"days":    days,
		"tool":    toolPath,
		"take":    func(p page, body any) page { p.Body = body; return p },
	}
}

// amount is an amount of a resource, money in dollars.
func amount(r holdfast.Resource, n int64) string {
	if r == holdfast.MoneyMicro {
		return story.Dollars(n)
	}
	return fmt.Sprintf("%d %s", n, r)
}

// taken is how much of a budget is used and reserved, in percent.
func taken(s survey.Standing) string {
	share, _ := s.Share()
	return fmt.Sprintf("%.1f", 100*min(1, share))
}

// tree names a tenant's tree for people.
func tree(tenant string) template.HTML {
	if tenant == ledger.CheckpointsTenant {
		return "the log of signed heads"
	}
	return markText(tenant, maxShown)
}

// markText makes text of somebody else's safe to look at: escaped, bounded, and
// with a mark in the place of each character that cannot be seen or that moves
// what is beside it. The mark is an element of its own, so that no text can
// imitate it.
func markText(s string, limit int) template.HTML { return mark(s, limit, false) }

// lines is markText with line breaks kept.
func lines(s string) template.HTML { return mark(s, 64<<10, true) }

func mark(s string, limit int, breaks bool) template.HTML {
	var b strings.Builder
	n := 0
	for i, r := range s {
		if n++; n > limit {
			fmt.Fprintf(&b, `<span class="odd">%d more bytes</span>`, len(s)-i)
			break
		}
		switch {
		case r == '\n' && breaks:
			b.WriteByte('\n')
		case r == utf8.RuneError && strings.HasPrefix(s[i:], "\uFFFD"):
			b.WriteRune(r)
		case r == utf8.RuneError:
			fmt.Fprintf(&b, `<span class="odd">byte %02x</span>`, s[i])
		case visible.IsVisible(r):
			b.WriteString(html.EscapeString(string(r)))
		default:
			fmt.Fprintf(&b, `<span class="odd">U+%04X</span>`, r)
		}
	}
	return template.HTML(b.String())
}

// stamp is an instant as forms and <time> have it.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
