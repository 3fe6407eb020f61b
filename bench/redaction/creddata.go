package redaction

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

var credDataTargets = map[string]target{secretsAlone: {atLeast: 88}, every: {atMost: 6}}

// secretsAlone are the true labels but for the classes of idClasses, which name values that
// open nothing alone and are like any other id.
const secretsAlone = "secrets without ids"

var idClasses = []string{"UUID", "Nonce", "Salt", "AWS S3 Bucket", "Firebase Domain", "Tencent WeChat API App ID"}

// compositeClasses label several values at once, and what is between them.
var compositeClasses = []string{"AWS Multi", "Google Multi", "JWK"}

// readCredData reads the files that CredData's download_data.py has built in data/, and
// their labels in meta/. A file that is missing is left out: not all repositories exist
// any more.
func readCredData(dir string, each func(Text) error) error {
	labels, err := readLabels(filepath.Join(dir, "meta"))
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(labels)) {
		body, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			continue
		}
		if err := each(markLabels(path, body, labels[path])); err != nil {
			return err
		}
	}
	return nil
}

// label is one row of a meta file. Lines count from 1; values are counted in characters
// of their line, and are -1 for whole lines.
type label struct {
	line, lastLine, start, end int
	truth, class               string
}

// readLabels returns the labels of each file. Malformed rows are left out.
func readLabels(dir string) (map[string][]label, error) {
	labels := map[string][]label{}
	err := walkFiles(dir, hasExtension(".csv"), func(path string, content []byte) error {
		rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
		if err != nil || len(rows) == 0 {
			return fmt.Errorf("read %s: %w", path, err)
		}
		column := map[string]int{}
		for i, name := range rows[0] {
			column[name] = i
		}
		for _, row := range rows[1:] {
			field := func(name string) string { return row[column[name]] }
			number := func(name string) int {
				if n, err := strconv.Atoi(field(name)); err == nil {
					return n
				}
				return -1
			}
			l := label{number("LineStart"), number("LineEnd"), number("ValueStart"), number("ValueEnd"),
				field("GroundTruth"), field("Category")}
			if l.line >= 1 && l.lastLine >= l.line {
				labels[field("FilePath")] = append(labels[field("FilePath")], l)
			}
		}
		return nil
	})
	return labels, err
}

// markLabels turns the labels of a file into marks. A false label of a whole line is that
// line without the true values in it. A true one without a value is the lines between the
// first and the last, such as a PEM block's.
func markLabels(path string, body []byte, list []label) Text {
	body = bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	t := Text{Path: path, Body: body}
	starts := []int{0}
	for i, c := range body {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	end := func(line int) int { // the end of a line without its break
		if line < len(starts) {
			return starts[line] - 1
		}
		return len(body)
	}
	at := func(line, character int) int {
		from := starts[line-1]
		for i := range string(body[from:end(line)]) {
			if character == 0 {
				return from + i
			}
			character--
		}
		return end(line)
	}
	for _, l := range list {
		if l.lastLine > len(starts) {
			continue
		}
		m := Mark{Class: nameClass(l.class), Start: starts[l.line-1], End: end(l.lastLine), Secret: l.truth == "T"}
		switch {
		case l.start >= 0 && l.end >= 0:
			m.Start, m.End = at(l.line, l.start), at(l.lastLine, l.end)
		case m.Secret && l.lastLine > l.line+1:
			m.Start, m.End = starts[l.line], end(l.lastLine-1)
		}
		if m.Secret && !hasWord(body[m.Start:max(m.Start, m.End)]) || m.End <= m.Start {
			continue
		}
		m.InPart = m.Secret && slices.Contains(compositeClasses, m.Class)
		switch {
		case l.truth == "X":
			m.Class = "example or unknown (X)"
		case !m.Secret:
			m.Group = "labelled false (F)"
		case !slices.Contains(idClasses, m.Class):
			m.Group = secretsAlone
		}
		t.Marks = append(t.Marks, m)
	}
	return excludeTrue(t)
}

// excludeTrue removes the false marks that overlap true ones.
func excludeTrue(t Text) Text {
	t.Marks = slices.DeleteFunc(t.Marks, func(m Mark) bool {
		return !m.Secret && slices.ContainsFunc(t.Marks, func(o Mark) bool {
			return o.Secret && o.Start < m.End && m.Start < o.End
		})
	})
	return t
}

// nameClass returns the first of several categories.
func nameClass(category string) string {
	first, _, _ := strings.Cut(category, ":")
	return first
}

// hasExtension returns what accepts paths that end so.
func hasExtension(ext ...string) func(string) bool {
	return func(path string) bool { return slices.Contains(ext, filepath.Ext(path)) }
}
