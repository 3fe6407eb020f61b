package domain

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Bounds of what is looked up for a hint: a denial must cost no more than a
// permission, whatever name was asked for.
const (
	mostNear     = 1000 // names
	mostNearName = 64   // bytes
)

// nearby finds a listed name close to one that is not.
type nearby struct {
	// kin is a listed name for each name above one, down to what its owner
	// registered: api.example.com for example.com.
	kin map[string]string
	// typo is a listed name for each way to write one without one byte. Two
	// names that share such a form differ by a slip.
	typo map[string]string
}

// nearest indexes the table's first names.
func nearest(t *Table) nearby {
	n := nearby{kin: map[string]string{}, typo: map[string]string{}}
	for _, d := range t.rows[:min(len(t.rows), mostNear)] {
		name := strings.TrimPrefix(d.Name, "*.")
		name, _, _ = strings.Cut(name, ":")
		if h, err := parseHost(name); err != nil || h.IsAddr() || len(name) > mostNearName {
			continue
		}
		n.add(name, d.Name)
	}
	return n
}

// add leaves what is there: the first row that is close is the one to name.
func (n nearby) add(name, row string) {
	put := func(m map[string]string, key string) {
		if _, taken := m[key]; !taken {
			m[key] = row
		}
	}
	put(n.typo, name)
	for i := range len(name) {
		put(n.typo, name[:i]+name[i+1:])
	}
	suffix, _ := publicsuffix.PublicSuffix(name)
	for base, ok := name, true; ok && len(base) > len(suffix); _, base, ok = strings.Cut(base, ".") {
		put(n.kin, base)
	}
}

// hint says what to do about a name that is not listed.
func (n nearby) hint(t *Table, h Host) string {
	switch {
	case h.IsAddr():
		return "ask for the host by its name; an address must be listed itself"
	case t.wild[h.name] != nil:
		return "*." + h.name + " covers the names under " + h.name + " and not itself: list " + h.name + " too"
	}
	if strings.Contains(h.name, "xn--") {
		return "the name is in another script, and may only look like a listed one; list it in its ASCII form if it is meant"
	}
	if near := n.find(h.name); near != "" {
		return "did you mean " + near + "? If not, list " + h.name + " among the egress domains of the configuration"
	}
	return "list " + h.name + " among the egress domains of the configuration"
}

// find is the row closest to name, "" for none.
func (n nearby) find(name string) string {
	if len(name) > mostNearName {
		return ""
	}
	if row := n.slip(name); row != "" {
		return row
	}
	for base, ok := name, true; ok; _, base, ok = strings.Cut(base, ".") {
		if row := n.kin[base]; row != "" {
			return row
		}
	}
	return ""
}

// slip looks for a name that differs by one byte more, less or other, or by two
// that changed places.
func (n nearby) slip(name string) string {
	if row := n.typo[name]; row != "" {
		return row
	}
	var room [mostNearName]byte
	for i := range len(name) {
		less := append(append(room[:0], name[:i]...), name[i+1:]...)
		if row := n.typo[string(less)]; row != "" {
			return row
		}
	}
	return ""
}
