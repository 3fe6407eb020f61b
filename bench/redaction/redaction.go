// Package redaction measures how well the redaction engine finds secrets and personal
// data in public sets, and what it changes wrongly. The sets are read from a directory
// outside of the repository. Gitleaks searches the same texts as a library.
//
// Each set has two halves. The unused half is the files whose path in the set has an odd
// last digit in SHA-256: no rule is written from them, and their figures count.
package redaction

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// command is one run of the benchmark.
type command struct {
	sets   string // directory of the sets; "" is none
	misses string // file for what went wrong in the used half
	missed *os.File
}

// set is one public set.
type set struct {
	name    string // its directory and its measurement
	measure func(c *command, b *measure.Run, dir string) ([]measure.Figure, error)
}

// listSets returns the sets in the order of the table.
func listSets() []set {
	return []set{
		{"CredData", measureTexts("CredData", readCredData, credDataTargets)},
		{"titus", measureTexts("titus", readTitus, titusTargets)},
		{"trufflehog", measureTexts("trufflehog", readTrufflehog, trufflehogTargets)},
		{"detect-secrets", measureTexts("detect-secrets", readDetectSecrets, detectSecretsTargets)},
		{"presidio-research", measureTexts("presidio-research", readPresidio, presidioTargets)},
		{"gorilla", measureGorilla},
		{"pydantic-ai", measureCassettes},
		{"sources", measureSources},
	}
}

// Subject returns what the benchmark of that name measures.
func Subject() *measure.Subject {
	c := &command{}
	var list []measure.Measurement
	for _, s := range listSets() {
		list = append(list, measure.Measurement{Name: s.name, Do: func(b *measure.Run) ([]measure.Figure, error) {
			return c.measureSet(b, s)
		}})
	}
	list = append(list, measure.Measurement{Name: "random", Do: c.measureRandom})
	return &measure.Subject{Name: "redaction",
		About:        "what redaction finds in public sets, and what it changes wrongly",
		Measurements: list, Draw: drawHalves,
		AddFlags: func(fs *flag.FlagSet) {
			fs.StringVar(&c.sets, "sets", "", "")
			fs.StringVar(&c.misses, "misses", "", "")
		},
		CheckFlags: c.checkFlags,
		Help: `
Measure what the certain tier of redaction finds in public sets of secrets and
personal data, and what it changes wrongly in source code, in requests to models
and in random values. Gitleaks searches the same texts. The figures are those of
the unused half of each set: the files whose path has an odd last digit in
SHA-256. It takes about ten minutes and downloads nothing.

    go run -C bench . redaction [flags]

    --sets DIR      the directory of the sets; doc/redaction.md names their
                    repositories. A set that is absent is listed as not run
    --misses FILE   write what went wrong in the used half
    --only NAME     ` + measure.ListNames(list) + `
    --dir DIR       taken as by the others; nothing is written there
    --short         a twentieth of the random values, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ go run -C bench . redaction --only random --short
`}
}

func (c *command) checkFlags() (err error) {
	if c.sets != "" {
		if info, err := os.Stat(c.sets); err != nil || !info.IsDir() {
			return measure.NewUsageError("name an existing directory", "cannot read --sets %q", c.sets)
		}
	}
	if c.misses != "" {
		c.missed, err = os.Create(c.misses)
	}
	return err
}

// measureSet measures one set, or returns a figure that says why it was not run.
func (c *command) measureSet(b *measure.Run, s set) ([]measure.Figure, error) {
	dir := filepath.Join(c.sets, s.name)
	if _, err := os.Stat(dir); c.sets == "" || errors.Is(err, fs.ErrNotExist) {
		return []measure.Figure{{Name: s.name, Note: "not run: no directory " + s.name + " in --sets"}}, nil
	}
	b.Say("%s: reading", s.name)
	list, err := s.measure(c, b, dir)
	if err != nil {
		return nil, fmt.Errorf("measure %s: %w", s.name, err)
	}
	if len(list) == 0 {
		list = []measure.Figure{{Name: s.name, Note: "not run: its directory has none of its files"}}
	}
	return list, nil
}

// halfOf returns the half of a set that a path belongs to: 1 is the unused one.
func halfOf(path string) int {
	sum := sha256.Sum256([]byte(filepath.ToSlash(path)))
	return int(sum[len(sum)-1] & 1)
}

const unused = 1

// noteMiss writes what went wrong, if it is of the used half and was asked for.
func (c *command) noteMiss(set, what, path, excerpt string) {
	if c.missed != nil && halfOf(path) != unused {
		fmt.Fprintf(c.missed, "%s\t%s\t%s\t%q\n", set, what, path, excerpt)
	}
}

// excerptAround returns at most limit bytes of s around the stretch from start to end.
func excerptAround(s []byte, start, end, limit int) string {
	around := max(0, limit-(end-start)) / 2
	return string(s[max(0, start-around):min(len(s), min(end, start+limit)+around)])
}

// walkFiles calls do with the path in dir and the content of each file that wanted
// accepts, in the order of the paths. A directory that is missing has no files.
func walkFiles(dir string, wanted func(path string) bool, do func(path string, content []byte) error) error {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if path, err = filepath.Rel(dir, path); err == nil && wanted(filepath.ToSlash(path)) {
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(paths)
	for _, path := range paths {
		content, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		if err := do(path, content); err != nil {
			return err
		}
	}
	return nil
}
