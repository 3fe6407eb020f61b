package redaction

import (
	"bytes"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"

	"github.com/zricethezav/gitleaks/v8/detect"

	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// Mark is a stretch of a text that is a secret or personal data, or only looks like it.
type Mark struct {
	Class      string
	Group      string // of several classes; "" is none
	Start, End int
	Secret     bool
	// InPart says that a secret counts as masked where a part of it is: its label
	// covers several values and what is between them.
	InPart bool
	// Rules are the prefixes of the rules that count; nil is all for a secret, and those
	// of secrets for what is none.
	Rules []string
}

// Text is one text of a set.
type Text struct {
	Path  string // of its file in the set
	Body  []byte
	Marks []Mark
}

// stretch is what a scanner masks.
type stretch struct {
	start, end int
	rule       string
}

// scanner has the engine and its peer.
type scanner struct {
	engine *redact.Engine
	peer   *detect.Detector
}

func newScanner() (*scanner, error) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	d, err := detect.NewDetectorDefaultConfig()
	return &scanner{e, d}, err
}

// newSession returns a mapping as a request to a model has it.
func newSession() *mapping.Session {
	return mapping.NewSessions(bytes.Repeat([]byte("key of figures. "), 2), time.Now).Find(mapping.Owner{Tenant: "t"})
}

// replacement is one value that was replaced.
type replacement struct {
	rule  string
	value string
}

// replaceText redacts a text as requests to models are, and returns what was replaced.
func (s *scanner) replaceText(text []byte) (redact.Result, []replacement, error) {
	var list []replacement
	request := newSession().Begin(nil, nil)
	r, _, err := s.engine.WithReplace(func(rule string, found []byte) []byte {
		if !request.IsPlaceholder(found) {
			list = append(list, replacement{rule, string(found)})
		}
		return request.Replace(rule, found)
	}).Replace(text)
	return r, list, err
}

// findOurs returns what the engine masks in a text. A finding that is a whole JSON string
// with escapes is narrowed to the values that were replaced in it.
func (s *scanner) findOurs(text []byte) ([]stretch, error) {
	r, replaced, err := s.replaceText(text)
	if err != nil {
		return nil, err
	}
	var list []stretch
	for _, f := range r.Findings {
		end := f.Offset + f.Length
		raw := text[f.Offset:end]
		if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' || bytes.IndexByte(raw, '\\') < 0 {
			list = append(list, stretch{f.Offset, end, f.Rule})
			continue
		}
		for _, p := range replaced {
			escaped, _ := json.Marshal(p.value)
			for _, form := range []string{p.value, strings.Trim(string(escaped), `"`)} {
				if at := bytes.Index(raw, []byte(form)); at >= 0 && p.rule == f.Rule {
					list = append(list, stretch{f.Offset + at, f.Offset + at + len(form), f.Rule})
				}
			}
		}
	}
	return sortStretches(list), nil
}

// findTheirs returns where gitleaks would mask: each occurrence of what it found.
func (s *scanner) findTheirs(text []byte) []stretch {
	var list []stretch
	done := map[string]bool{}
	for _, f := range s.peer.DetectString(string(text)) {
		if f.Secret == "" || done[f.Secret] {
			continue
		}
		done[f.Secret] = true
		for from := 0; ; {
			at := bytes.Index(text[from:], []byte(f.Secret))
			if at < 0 {
				break
			}
			list = append(list, stretch{from + at, from + at + len(f.Secret), "secret." + f.RuleID})
			from += at + len(f.Secret)
		}
	}
	return sortStretches(list)
}

// sortStretches orders stretches by their start, each once.
func sortStretches(list []stretch) []stretch {
	sort.Slice(list, func(i, j int) bool { return list[i].start < list[j].start })
	return slices.Compact(list)
}

// isAccepted reports whether a rule counts for the mark.
func (m Mark) isAccepted(rule string) bool {
	prefixes := m.Rules
	if prefixes == nil {
		if m.Secret {
			return true
		}
		prefixes = []string{"secret."}
	}
	for _, p := range prefixes {
		if strings.HasPrefix(rule, p) {
			return true
		}
	}
	return false
}

// isMasked reports whether all letters and digits of a secret are masked, or any byte of
// a value that is none.
func (m Mark) isMasked(text []byte, list []stretch) bool {
	at := m.Start
	for _, s := range list {
		if s.start >= m.End {
			break
		}
		if s.end <= m.Start || !m.isAccepted(s.rule) {
			continue
		}
		if !m.Secret || m.InPart {
			return true
		}
		if s.start > at && hasWord(text[at:s.start]) {
			return false
		}
		at = max(at, s.end)
	}
	return m.Secret && at > m.Start && (at >= m.End || !hasWord(text[at:m.End]))
}

func hasWord(s []byte) bool {
	return bytes.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
