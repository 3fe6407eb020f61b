package schema

import (
	"slices"
	"strconv"
)

// here puts v to a subschema at the same place and keeps what it evaluated
// only if it said yes.
func (w *walk) here(n *node, v any, own *seen) bool {
	if own == nil {
		return w.check(n, v, nil)
	}
	fresh := &seen{}
	if !w.check(n, v, fresh) {
		return false
	}
	w.spend(4 * (len(fresh.names) + len(fresh.items)))
	own.merge(fresh)
	return true
}

func (w *walk) quietHere(n *node, v any, own *seen) bool {
	was := w.report
	w.report = false
	ok := w.here(n, v, own)
	w.report = was
	return ok
}

func (w *walk) combined(n *node, v any, own *seen) bool {
	ok := true
	each := [...]*node{n.ref, w.recursive(n), w.dynamic(n)}
	for _, to := range each {
		if to != nil && !w.here(to, v, own) {
			if ok = false; w.full() {
				return false
			}
		}
	}
	for _, to := range n.all {
		if !w.here(to, v, own) {
			if ok = false; w.full() {
				return false
			}
		}
	}
	if n.any != nil {
		ok = w.anyOf(n, v, own) && ok
	}
	if n.one != nil && (ok || !w.full()) {
		ok = w.oneOf(n, v, own) && ok
	}
	if n.not != nil && (ok || !w.full()) && w.quiet(n.not, v, nil) {
		ok = w.fail(n, "not", "%s is what the schema forbids", kindOf(v))
	}
	if n.cond != nil && (ok || !w.full()) {
		to := n.other
		if w.quietHere(n.cond, v, own) {
			to = n.then
		}
		ok = (to == nil || w.here(to, v, own)) && ok
	}
	if m, is := v.(map[string]any); is && n.needs != nil && (ok || !w.full()) {
		ok = w.dependent(n, m, own) && ok
	}
	return ok
}

// anyOf asks every alternative where what they evaluate matters.
func (w *walk) anyOf(n *node, v any, own *seen) bool {
	matched := false
	for _, to := range n.any {
		if w.quietHere(to, v, own) {
			if matched = true; own == nil {
				break
			}
		}
	}
	return matched || w.none(n, n.any, "anyOf", v)
}

func (w *walk) oneOf(n *node, v any, own *seen) bool {
	first := -1
	var kept *seen
	for i, to := range n.one {
		var fresh *seen
		if own != nil {
			fresh = &seen{}
		}
		if !w.quiet(to, v, fresh) {
			continue
		}
		if first >= 0 {
			return w.fail(n, "oneOf", "alternatives %d and %d both match, want one", first, i)
		}
		first, kept = i, fresh
	}
	if first < 0 {
		return w.none(n, n.one, "oneOf", v)
	}
	if own != nil {
		own.merge(kept)
	}
	return true
}

// none reports that no alternative fits and, where only one takes the value's
// type at all, what was wrong with that one.
func (w *walk) none(n *node, alternatives []*node, keyword string, v any) bool {
	w.fail(n, keyword, "%s matches none of %d alternatives", kindOf(v), len(alternatives))
	if !w.report {
		return false
	}
	var close *node
	for _, to := range alternatives {
		types := to.types
		if w.showNames && to.ref != nil && types == 0 {
			types = to.ref.types // so that a schema's error names the deepest place
		}
		if to.always == nil && (types == 0 || types.has(v)) {
			if close != nil {
				return false
			}
			close = to
		}
	}
	if close != nil {
		w.check(close, v, nil)
	}
	return false
}

func (w *walk) dependent(n *node, m map[string]any, own *seen) bool {
	ok := true
	for _, d := range n.needs {
		if _, there := m[d.name]; !there {
			continue
		}
		if missing := w.missing(m, d.required); missing != nil {
			ok = w.fail(n, d.keyword, "missing %s, which %s asks for", shownNames(missing), strconv.Quote(shownName(d.name)))
		}
		if d.fit != nil && !w.here(d.fit, m, own) {
			ok = false
		}
		if !ok && w.full() {
			return false
		}
	}
	return ok
}

// recursive and dynamic resolve the references that depend on the resources
// the walk came through: the outermost that has the anchor wins.
func (w *walk) recursive(n *node) *node {
	if n.recursive == nil || n.recursive.scope == nil || !n.recursive.scope.recursive || n.recursive != n.recursive.scope.root {
		return n.recursive
	}
	for _, s := range w.scopes {
		if s.recursive {
			return s.root
		}
	}
	return n.recursive
}

func (w *walk) dynamic(n *node) *node {
	if n.dynamicRef == nil || n.anchor == "" || n.dynamicRef.ownAnchor != n.anchor {
		return n.dynamicRef
	}
	for _, s := range w.scopes {
		if to, ok := s.anchors[n.anchor]; ok {
			return to
		}
	}
	return n.dynamicRef
}

func (w *walk) unevaluated(n *node, v any, own *seen) bool {
	ok := true
	if m, is := v.(map[string]any); is && n.unevalProps != nil {
		w.spend(len(m))
		names := sortedNames(m)
		for _, name := range slices.DeleteFunc(names, own.hasName) {
			if !w.member(n.unevalProps, name, m[name]) {
				if ok = false; w.full() {
					return false
				}
			}
			own.addName(name)
		}
	}
	if list, is := v.([]any); is && n.unevalItems != nil {
		w.spend(len(list))
		for i, e := range list {
			if own.hasItem(i) {
				continue
			}
			if !w.element(n.unevalItems, i, e) {
				if ok = false; w.full() {
					return false
				}
			}
			own.addItem(i)
		}
	}
	return ok
}
