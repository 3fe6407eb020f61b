package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/cli/filter"
	"github.com/holdfast-dev/holdfast/internal/cli/progress"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"golang.org/x/term"
)

// look is how things are drawn: colour only for a terminal and without
// NO_COLOR, marks beyond ASCII only where the locale is UTF-8.
// columns is how wide a line may be.
type look struct {
	color, utf8 bool
	columns     int
}

func (a *app) look() look {
	_, plain := a.lookup("NO_COLOR")
	dumb, _ := a.lookup("TERM")
	return look{color: isTerminal(a.out) && !plain && dumb != "dumb", utf8: a.isUTF8(), columns: columnsOf(a.out)}
}

// columnsOf is how wide a terminal is; 160 for what is none.
func columnsOf(x any) int {
	if n, _ := sizeOf(x); n > 0 {
		return max(n, 40)
	}
	return 160
}

// rowsOf is how high a terminal is; plainRows for what is none.
func rowsOf(x any) int {
	if _, n := sizeOf(x); n > 0 {
		return n
	}
	return plainRows
}

// sizeOf is the size of a terminal; 0 for what is none.
func sizeOf(x any) (columns, rows int) {
	if o, ok := x.(*output); ok {
		x = o.Writer
	}
	f, ok := x.(*os.File)
	if !ok {
		return 0, 0
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

// clipped is one line of at most so many columns; "..." says that there is more.
func clipped(s string, columns int) string {
	if width(s) <= columns {
		return s
	}
	return string([]rune(s)[:columns-3]) + "..."
}

func (a *app) isUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, _ := a.lookup(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// isTerminal says whether a reader or writer is a terminal.
func isTerminal(x any) bool {
	if o, ok := x.(*output); ok {
		x = o.Writer
	}
	f, ok := x.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// mark is a verdict as one sign.
func (l look) mark(v holdfast.Verdict) string {
	sign, code := "x", "31"
	switch v {
	case holdfast.Allow:
		sign, code = "+", "32"
	case holdfast.Hold:
		sign, code = "?", "33"
	}
	if l.utf8 {
		sign = map[string]string{"x": "✗", "+": "✓", "?": "…"}[sign]
	}
	return l.paint(code, sign)
}

func (l look) paint(code, s string) string {
	if !l.color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (l look) dim(s string) string  { return l.paint("2", s) }
func (l look) bold(s string) string { return l.paint("1", s) }

// clean makes text safe for a terminal.
func clean(s string) string { return excerpt.Printable(s) }

// table writes rows in columns as wide as their widest cell; the last column
// is not padded. Cells are made safe for a terminal; the first column may be a
// mark that mark made.
func table(w io.Writer, rows [][]string) { fmt.Fprint(w, tabled(rows)) }

// tabled is what table writes.
func tabled(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i := range row {
			if i > 0 {
				row[i] = clean(row[i])
			}
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(row[i]))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-width(cell)+2))
			}
		}
		fmt.Fprintln(&out, strings.TrimRight(b.String(), " "))
	}
	return out.String()
}

// width is how many columns a cell takes, without its colours.
func width(s string) int {
	n, in := 0, false
	for _, r := range s {
		switch {
		case r == '\x1b':
			in = true
		case in:
			in = r != 'm'
		default:
			n++
		}
	}
	return n
}

// newCounter returns a counter of leaves that is shown on standard error if that is a terminal.
func (a *app) newCounter(total int64) *progress.Counter {
	return progress.NewCounter(a.err, isTerminal(a.err), total)
}

// printJSON writes one value to standard output.
func (a *app) printJSON(v any) error { return filter.WriteJSON(a.out, v) }

// bytesOf is a size as people say it.
func bytesOf(n int64) string { return filter.FormatBytes(n) }
