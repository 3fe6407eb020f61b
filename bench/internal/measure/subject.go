package measure

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Subject is what one name of the command measures.
type Subject struct {
	Name  string
	About string // one line for the list of all subjects
	// Help is prose whose example works when pasted. CommonFlags follow its own.
	Help         string
	Measurements []Measurement
	// AddFlags adds flags of its own; nil is none.
	AddFlags func(*flag.FlagSet)
	// Draw prints the figures; nil is the common table.
	Draw func(io.Writer, []Figure) error
	// CheckFlags looks at them after they were read; nil is nothing.
	CheckFlags func() error
}

// ErrUsage marks a mistake in the command line.
var ErrUsage = errors.New("usage")

// NewUsageError returns an error that is ErrUsage, with a hint what to do.
func NewUsageError(hint, format string, args ...any) error {
	return fmt.Errorf("%w: %s (%s)", ErrUsage, fmt.Sprintf(format, args...), hint)
}

// CommonFlags is help for the flags that every subject takes.
const CommonFlags = `
Every benchmark takes:

    --holdfast FILE  the program to measure; built from this repository if absent
    --config FILE    the configuration that names a guest's kernel;
                     $HOLDFAST_CONFIG, else ~/.config/holdfast/holdfast.yaml
    --json           print JSON
`

// HelpText returns all help for the subject.
func (s *Subject) HelpText() string { return strings.TrimLeft(s.Help, "\n") + CommonFlags }

// ListNames returns the help of --only: the measurements' names, in lines of the help's
// width.
func ListNames(list []Measurement) string {
	const width, indent = 58, "\n                    "
	var b strings.Builder
	b.WriteString("one measurement: ")
	for i, line := 0, len("one measurement: "); i < len(list); i++ {
		name := list[i].Name
		if i > 0 {
			b.WriteByte(',')
			if line += len(name) + 2; line > width {
				b.WriteString(indent)
				line = len(name)
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteString(name)
	}
	return b.String()
}

// Execute reads the flags of args, carries out the measurements and prints their
// figures to out. A figure that is binding and misses its target is an error.
func (s *Subject) Execute(ctx context.Context, args []string, out, errOut io.Writer) (err error) {
	fs := flag.NewFlagSet(s.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	only := fs.String("only", "", "")
	dir := fs.String("dir", "", "")
	short := fs.Bool("short", false, "")
	asJSON := fs.Bool("json", false, "")
	config := fs.String("config", "", "")
	program := fs.String("holdfast", "", "")
	if s.AddFlags != nil {
		s.AddFlags(fs)
	}
	err = fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, err = io.WriteString(out, s.HelpText())
		return err
	case err != nil:
		return NewUsageError("-h says more", "%v", err)
	case fs.NArg() > 0:
		return NewUsageError("-h says more", "%s does not take %q", s.Name, fs.Arg(0))
	}
	if s.CheckFlags != nil {
		if err := s.CheckFlags(); err != nil {
			return err
		}
	}
	list, err := s.chooseMeasurements(*only)
	if err != nil {
		return err
	}
	b := &Run{Ctx: ctx, Short: *short, Config: *config, Holdfast: *program, Say: func(format string, args ...any) {
		fmt.Fprintf(errOut, "bench: %s\n", excerpt.Printable(fmt.Sprintf(format, args...)))
	}}
	if *dir == "" {
		*dir = os.TempDir()
	}
	if *dir, err = filepath.Abs(*dir); err != nil {
		return err
	}
	if b.Dir, err = os.MkdirTemp(*dir, "holdfast-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.Dir)
	all, err := b.measureAll(list)
	if err != nil {
		return err
	}
	if *asJSON {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		err = e.Encode(all)
	} else {
		draw := s.Draw
		if draw == nil {
			draw = drawTable
		}
		err = draw(out, all)
	}
	return errors.Join(err, findMissed(all))
}

func (s *Subject) chooseMeasurements(only string) ([]Measurement, error) {
	if only == "" {
		return s.Measurements, nil
	}
	var names []string
	for i, m := range s.Measurements {
		if m.Name == only {
			return s.Measurements[i : i+1], nil
		}
		names = append(names, m.Name)
	}
	return nil, NewUsageError("one of "+strings.Join(names, ", "), "there is no measurement %q", only)
}

func (b *Run) measureAll(list []Measurement) (all []Figure, err error) {
	for _, m := range list {
		b.Say("measuring %s", m.Name)
		fs, err := m.Do(b)
		if err != nil {
			return nil, fmt.Errorf("measuring %s: %w", m.Name, err)
		}
		all = append(all, fs...)
	}
	return all, nil
}

// findMissed returns an error for each binding figure that misses its target.
func findMissed(all []Figure) (err error) {
	for _, f := range all {
		if f.Binding && !f.Met {
			err = errors.Join(err, fmt.Errorf("%s: measured %s %s, target %s: see its note",
				f.Name, Number(f.Measured), f.Unit, f.Target))
		}
	}
	return err
}

// drawTable writes the figures as a table, and their notes under it.
func drawTable(w io.Writer, all []Figure) error {
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintln(t, "what\tmeasured\tbeside\tratio\ttarget\t")
	for _, f := range all {
		beside, ratio, met := "", "", ""
		if f.Beside != 0 {
			beside, ratio = Number(f.Beside)+" "+f.BesideIs, fmt.Sprintf("%.2f", f.Ratio)
		}
		if f.Target != "" {
			met = "missed"
			if f.Met {
				met = "met"
			}
		}
		measured := Number(f.Measured) + " " + f.Unit
		if f.Unit == "" {
			measured = "not measured"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, measured, beside, ratio, f.Target, met)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range all {
		if f.Note != "" {
			fmt.Fprintf(w, "%s: %s\n", f.Name, f.Note)
		}
		if by := limitedBy(f.Limits); by != "" {
			fmt.Fprintf(w, "%s: limited by %s\n", strings.TrimSpace(f.Name), by)
		}
	}
	return nil
}
