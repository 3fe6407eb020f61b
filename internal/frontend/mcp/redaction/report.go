package redaction

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// Bounds of a notice: places, bytes of a member's name, and bytes of a place.
const (
	maxPlaces = 8
	maxMember = 64
	maxPlace  = 256
)

// report is what was found, without a word of it.
type report struct {
	places  []string // in their order, each once, at most maxPlaces
	left    int      // places that are not in the list
	last    string
	masked  int
	counted map[string]int // by kind
}

// addFinding counts a finding.
func (r *report) addFinding(place string, f redact.Finding) {
	r.masked++
	if r.counted == nil {
		r.counted = map[string]int{}
	}
	r.counted[mapping.KindOf(f.Rule)]++
	switch {
	case slices.Contains(r.places, place) || place == r.last:
	case len(r.places) == maxPlaces:
		r.left++
	default:
		r.places = append(r.places, place)
	}
	r.last = place
}

// addReport counts what another has.
func (r *report) addReport(o report) {
	r.masked += o.masked
	r.left += o.left
	if r.counted == nil {
		r.counted = map[string]int{}
	}
	for kind, n := range o.counted {
		r.counted[kind] += n
	}
	room := min(maxPlaces-len(r.places), len(o.places))
	r.left += len(o.places) - room
	r.places = append(r.places, o.places[:room]...)
}

// listKinds returns the kinds, such as "card,email".
func (r *report) listKinds() string { return strings.Join(slices.Sorted(maps.Keys(r.counted)), ",") }

// sayMore returns what follows the places.
func (r *report) sayMore() string {
	if r.left == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", r.left)
}

// formatLine returns "masked=2; kinds=card,email".
func (r *report) formatLine() string {
	return fmt.Sprintf("masked=%d; kinds=%s", r.masked, r.listKinds())
}

// locateFindings returns the place of each finding in doc, which is strict JSON.
func (s *Search) locateFindings(doc []byte, root string, found []redact.Finding) []string {
	places := make([]string, len(found))
	for i := range places {
		places[i] = root
	}
	d := jsontext.NewDecoder(bytes.NewReader(doc))
	for i := 0; i < len(found); {
		switch d.PeekKind() {
		case 0:
			return places
		case '{', '}', '[', ']':
			if _, err := d.ReadToken(); err != nil {
				return places
			}
			continue
		}
		inside, n := d.StackIndex(d.StackDepth())
		v, err := d.ReadValue()
		if err != nil {
			return places
		}
		end := int(d.InputOffset())
		place := ""
		for ; i < len(found) && found[i].Offset < end; i++ {
			if found[i].Offset < end-len(v) {
				continue // it is of the whole document
			}
			if place == "" {
				place = s.placeOf(d, root, inside == '{' && n%2 == 0)
			}
			places[i] = place
		}
	}
	return places
}

// placeOf names the value that d has read, or its object if it is the name of a member: "arguments.to[0]".
func (s *Search) placeOf(d *jsontext.Decoder, root string, isName bool) string {
	place, depth := root, 0
	tokens := slices.Collect(d.StackPointer().Tokens())
	if isName {
		tokens = tokens[:len(tokens)-1]
	}
	for _, t := range tokens {
		depth++
		if inside, _ := d.StackIndex(depth); inside == '[' {
			place += "[" + t + "]"
			continue
		}
		place += s.formatMember(t)
		if len(place) > maxPlace {
			place += "..."
			break
		}
	}
	if isName {
		return "the name of a member of " + place
	}
	return place
}

// formatMember returns ".name", or ["a name"], without what may not be shown of it.
func (s *Search) formatMember(name string) string {
	r, err := s.engine.JSON(mcp.Quote(name))
	shown, ok := mcp.Text(r.Out)
	if err != nil || !ok {
		return ".?"
	}
	if len(shown) > maxMember {
		shown = strings.ToValidUTF8(shown[:maxMember], "") + "..."
	}
	for _, c := range shown {
		if c != '_' && c != '-' && c != '$' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return "[" + strconv.QuoteToGraphic(shown) + "]"
		}
	}
	if shown == "" {
		return `[""]`
	}
	return "." + shown
}
