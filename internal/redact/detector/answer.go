package detector

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

const (
	// maxAnswer bounds a line of the program, in bytes.
	maxAnswer = 1 << 20
	// maxFindings bounds the findings of one answer.
	maxFindings = 8192
	// maxKind bounds a kind, in bytes.
	maxKind = 32
)

// answer is one line of the program.
type answer struct {
	ID       *int64        `json:"id"`
	Findings *[]oneFinding `json:"findings"`
	Error    *string       `json:"error"`
}

// oneFinding is what the program says that it found.
type oneFinding struct {
	Start *int   `json:"start"`
	End   *int   `json:"end"`
	Kind  string `json:"kind"`
}

// parseAnswer reads a line as far as it belongs to no text.
func parseAnswer(line []byte) (a answer, err error) {
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("%w: not one JSON object", ErrMalformed) // the cause may quote the text
	}
	if a.ID == nil {
		return a, fmt.Errorf("%w: no id", ErrMalformed)
	}
	return a, nil
}

// checkFindings returns the findings of an answer to text. An error is the text's alone: the next answer may be right.
func (a *answer) checkFindings(text []byte) ([]finding.Finding, error) {
	switch {
	case a.Error != nil:
		return nil, ErrReported // what it says may quote the text
	case a.Findings == nil:
		return nil, fmt.Errorf("%w: no findings", ErrMalformed)
	case len(*a.Findings) > maxFindings:
		return nil, fmt.Errorf("%w: more than %d findings", ErrMalformed, maxFindings)
	}
	var out []finding.Finding
	for _, f := range *a.Findings {
		if f.Start == nil || f.End == nil || *f.Start < 0 || *f.Start >= *f.End || *f.End > len(text) {
			return nil, fmt.Errorf("%w: a finding out of range", ErrMalformed)
		}
		if !utf8.RuneStart(text[*f.Start]) || *f.End < len(text) && !utf8.RuneStart(text[*f.End]) {
			return nil, fmt.Errorf("%w: a finding that cuts a character", ErrMalformed)
		}
		name, ok := ruleOf(f.Kind)
		if !ok {
			return nil, fmt.Errorf("%w: a kind that is not a word", ErrMalformed)
		}
		out = append(out, finding.Finding{Rule: rule.Names[name], Offset: *f.Start, Length: *f.End - *f.Start})
	}
	return out, nil
}

// ruleOf returns the rule of a kind. The kind itself is never recorded: a program could put a text there.
func ruleOf(kind string) (rule.Rule, bool) {
	switch kind {
	case "name":
		return rule.DetectorName, true
	case "address":
		return rule.DetectorAddress, true
	}
	if kind == "" || len(kind) > maxKind {
		return rule.None, false
	}
	for _, c := range []byte(kind) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return rule.None, false
		}
	}
	return rule.DetectorOther, true
}
