package schema

import (
	"strconv"
)

func (w *walk) object(n *node, m map[string]any, own *seen) bool {
	ok := w.counted(n, m)
	if !ok && w.full() {
		return false
	}
	w.spend(len(n.order) + len(n.needs))
	for _, name := range n.order {
		v, there := m[name]
		if !there {
			continue
		}
		own.addName(name)
		if !w.member(n.props[name], name, v) {
			if ok = false; w.full() {
				return false
			}
		}
	}
	if len(n.patterned) > 0 || n.additional != nil || n.names != nil {
		ok = w.members(n, m, own) && ok
	}
	return ok
}

func (w *walk) counted(n *node, m map[string]any) bool {
	ok := true
	if n.minProps != nil && len(m) < *n.minProps {
		ok = w.fail(n, "minProperties", "object of %d members, want at least %d", len(m), *n.minProps)
	}
	if n.maxProps != nil && len(m) > *n.maxProps {
		ok = w.fail(n, "maxProperties", "object of %d members, want at most %d", len(m), *n.maxProps)
	}
	if missing := w.missing(m, n.required); missing != nil {
		ok = w.fail(n, "required", "missing %s", shownNames(missing))
	}
	return ok
}

func (w *walk) missing(m map[string]any, names []string) []string {
	w.spend(len(names))
	var out []string
	for _, name := range names {
		if _, ok := m[name]; !ok {
			out = append(out, name)
		}
	}
	return out
}

// members looks at every member there is, in order where that can be seen.
func (w *walk) members(n *node, m map[string]any, own *seen) bool {
	w.spend(len(m))
	if !w.report {
		for name, v := range m {
			if ok, _ := w.other(n, name, v, own); !ok {
				return false
			}
		}
		return true
	}
	ok, extra := true, []string(nil)
	for _, name := range sortedNames(m) {
		fits, forbidden := w.other(n, name, m[name], own)
		ok = ok && fits
		if forbidden {
			extra = append(extra, name)
		}
	}
	if extra != nil {
		ok = w.fail(n, "additionalProperties", "%s not allowed", shownNames(extra))
	}
	return ok
}

// other judges one member by its name: patterns, what is not declared, and the
// name itself. Forbidden says that additionalProperties is simply false; those
// are reported together.
func (w *walk) other(n *node, name string, v any, own *seen) (ok, forbidden bool) {
	_, known := n.props[name]
	ok = true
	for _, p := range n.patterned {
		if w.match(p.re, name) {
			known = true
			own.addName(name)
			ok = w.member(p.to, name, v) && ok
		}
	}
	if !known && n.additional != nil {
		own.addName(name)
		if n.additional.always != nil && !*n.additional.always {
			return false, true
		}
		ok = w.member(n.additional, name, v) && ok
	}
	if n.names != nil && !w.quiet(n.names, name, nil) {
		ok = w.fail(n, "propertyNames", "the name %s is not allowed", strconv.Quote(w.showName(name)))
	}
	return ok, false
}

func (w *walk) array(n *node, list []any, own *seen) bool {
	ok := true
	if n.minItems != nil && len(list) < *n.minItems {
		ok = w.fail(n, "minItems", "array of %d, want at least %d", len(list), *n.minItems)
	}
	if n.maxItems != nil && len(list) > *n.maxItems {
		ok = w.fail(n, "maxItems", "array of %d, want at most %d", len(list), *n.maxItems)
	}
	if !ok && w.full() {
		return false
	}
	if n.unique {
		ok = w.distinct(n, list) && ok
	}
	for i, v := range list {
		to := n.rest
		if i < len(n.prefix) {
			to = n.prefix[i]
		}
		if to == nil {
			break
		}
		own.addItemsBelow(i + 1)
		if !w.element(to, i, v) {
			if ok = false; w.full() {
				return false
			}
		}
	}
	if n.contains != nil {
		ok = w.containing(n, list, own) && ok
	}
	return ok
}

// distinct compares by canonical text, so that it is linear whatever the
// elements are.
func (w *walk) distinct(n *node, list []any) bool {
	at := make(map[string]int, len(list))
	for i, v := range list {
		c := canon(v)
		w.spend(1 + len(c)/4)
		if first, ok := at[c]; ok {
			return w.fail(n, "uniqueItems", "elements %d and %d are equal", first, i)
		}
		at[c] = i
	}
	return true
}

func (w *walk) containing(n *node, list []any, own *seen) bool {
	matched := 0
	for i, v := range list {
		if w.quiet(n.contains, v, nil) {
			matched++
			if n.modern {
				own.addItem(i)
			}
		}
	}
	least := 1
	if n.minContains != nil {
		least = *n.minContains
	}
	ok := true
	if matched < least {
		ok = w.fail(n, "contains", "%d elements match, want at least %d", matched, least)
	}
	if n.maxContains != nil && matched > *n.maxContains {
		ok = w.fail(n, "maxContains", "%d elements match, want at most %d", matched, *n.maxContains)
	}
	return ok
}
