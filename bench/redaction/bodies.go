package redaction

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/modeltext"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/substitute"
)

// body is a request to a model, or its answer.
type body struct {
	path    string
	dialect dialect.Dialect // of a request; Unknown is not read as one
	media   string
	content []byte
}

// bodyCounts are what bodies came to as requests to models, and as other traffic.
type bodyCounts struct{ requests, plain wayCounts }

// wayCounts are what bodies came to in one way of sending them.
type wayCounts struct {
	wrong          measure.Halves // Holdfast is the number of wrongly changed ones
	right, refused int            // in both halves
	causes         map[string]int // rules of wrong changes, or other causes
}

// checkBody redacts a body as a request to a model and as a message of ordinary traffic.
func (n *bodyCounts) checkBody(c *command, s *scanner, set string, b body) {
	if b.dialect != dialect.Unknown {
		wrong, changed := s.checkRequest(b)
		n.requests.addResult(b, wrong, changed, false)
		noteWrong(c, set, "request", b, wrong)
	}
	wrong, changed, refused := s.checkPlain(b)
	n.plain.addResult(b, wrong, changed, refused)
	noteWrong(c, set, "body", b, wrong)
}

func (w *wayCounts) addResult(b body, wrong string, changed, refused bool) {
	w.wrong.Add(halfOf(b.path) == unused, wrong != "", false)
	if wrong == "" && changed {
		w.right++
	}
	if wrong != "" {
		if w.causes == nil {
			w.causes = map[string]int{}
		}
		cause, _, _ := strings.Cut(wrong, ":")
		w.causes[cause]++
	}
	if refused {
		w.refused++
	}
}

func noteWrong(c *command, set, way string, b body, wrong string) {
	if wrong != "" {
		c.noteMiss(set, "wrongly changed "+way, b.path, wrong)
	}
}

// checkRequest puts placeholders into a request. wrong is its fault, if it has one.
func (s *scanner) checkRequest(b body) (wrong string, changed bool) {
	r, err := substitute.Replace(s.engine, nil, newSession(), b.dialect, b.content, substitute.AllowBinaries)
	switch {
	case err != nil:
		return "refused: " + err.Error(), true
	case bytes.Equal(r.Body, b.content):
		return "", false
	case !keepsShape(b.content, r.Body):
		return "another shape", true
	}
	texts, err := modeltext.ListTexts(b.dialect, b.content)
	if err != nil {
		return err.Error(), true
	}
	for _, t := range texts {
		text := b.content[t.Start:t.End]
		if t.Kind == modeltext.Signed || t.Kind == modeltext.Binary {
			continue
		}
		if text[0] == '"' {
			if text, err = jsontext.AppendUnquote(nil, text); err != nil {
				return err.Error(), true
			}
		}
		_, replaced, err := s.replaceText(text)
		if err != nil {
			return err.Error(), true
		}
		for _, p := range replaced {
			if before := lineBefore(text, p.value); !isRight(p.rule, p.value, before) {
				return fmt.Sprintf("%s: %.80q behind %q at %s", p.rule, p.value, before, t.Path), true
			}
		}
	}
	return "", true
}

// checkPlain redacts a body as traffic to other hosts is. refused says that it would not be sent.
func (s *scanner) checkPlain(b body) (wrong string, changed, refused bool) {
	r, err := s.engine.Body(b.media, b.content)
	switch {
	case err != nil:
		return "", false, true
	case bytes.Equal(r.Out, b.content):
		return "", false, false
	case !keepsShape(b.content, r.Out):
		return "another shape: " + strings.Join(r.Rules(), " ") + excerptOf(b.content, r.Findings[0].Offset),
			true, false
	}
	for _, f := range r.Findings {
		raw := b.content[f.Offset : f.Offset+f.Length]
		before := string(b.content[max(0, f.Offset-80):f.Offset])
		if wrong := s.judgeString(f.Rule, raw, before); wrong != "" {
			return wrong, true, false
		}
	}
	return "", true, false
}

// judgeString returns the fault of a finding in a body, if it has one. One that is a whole JSON string is
// opened: its rule found a part of it.
func (s *scanner) judgeString(rule string, raw []byte, before string) string {
	if isRight(rule, strings.Trim(string(raw), `"`), before) {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return fmt.Sprintf("%s: %.80q behind %q", rule, raw, before)
	}
	_, replaced, err := s.replaceText(text)
	if err != nil || len(replaced) == 0 {
		return fmt.Sprintf("%s: %.80q behind %q, found as a part of its document", rule, raw, before)
	}
	for _, p := range replaced {
		if within := lineBefore(text, p.value); !isRight(p.rule, p.value, within+before) {
			return fmt.Sprintf("%s: %.80q behind %q", p.rule, p.value, within)
		}
	}
	return ""
}

func excerptOf(content []byte, at int) string {
	return fmt.Sprintf(" %q", excerptAround(content, at, at+20, 160))
}

// lineBefore returns at most 80 bytes before a value in a text.
func lineBefore(text []byte, value string) string {
	at := bytes.Index(text, []byte(value))
	if at < 0 {
		return ""
	}
	return string(text[max(0, at-80):at])
}

// listFigures returns the figures of a set of bodies.
func (n *bodyCounts) listFigures(set string) []measure.Figure {
	if n.plain.wrong.Unused.Of+n.plain.wrong.Used.Of == 0 {
		return nil
	}
	return []measure.Figure{
		countFigure(set+": requests to models: wrongly changed", n.requests.wrong, n.requests.listOthers()),
		countFigure(set+": bodies as other traffic: wrongly changed", n.plain.wrong, n.plain.listOthers()),
	}
}

// listOthers returns the other counts of a way.
func (w wayCounts) listOthers() string {
	return fmt.Sprintf("of both halves %d were rightly changed, %d refused; wrong by: %s", w.right, w.refused,
		listCounts(w.causes))
}

// countFigure returns a figure that is a count of the unused half and should be 0.
func countFigure(name string, h measure.Halves, note string) measure.Figure {
	return measure.Figure{Name: name, Measured: float64(h.Unused.Holdfast), Unit: "changed", Halves: &h, Note: note,
		Target: "0", Met: h.Unused.Holdfast == 0}
}
