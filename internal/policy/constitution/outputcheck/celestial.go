package outputcheck

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// element is one object of an output that asks for something to be done: it
// names a boundary or a tool.
type element struct {
	path  string
	o     map[string]any
	steps []step
	// inside is how many other elements enclose this one.
	inside int
}

// celestial is one run of celestial_constraint_check. The levels are the five
// of spec 003 section 1.9, settled by D12.
type celestial struct {
	ctx      context.Context
	output   any
	level    holdfast.Level // of the agent
	pc       Context
	elements []element
}

// CheckCelestial asks the levels in their order over the whole output and
// reports the first that fails:
//
//	L0 every boundary or tool that is named is one this agent may cross
//	L1 nothing that is to be done touches Holdfast itself
//	L2 no personal data is in what leaves the boundary
//	L3 what is marked as not to be undone has a snapshot or a review
//	L4 trust level, depth and budget suffice
//
// An output is any JSON tree. Every object with a member "boundary" or "tool"
// is an element, wherever it stands; its other members that count are
// "undo" (false) and "irreversible" (true), "level" (a trust level's word),
// "consumes" (whole numbers by resource), "id" and "parent" (for depth).
// Everything else is the element's arguments or nothing. Text is never read as
// an instruction or searched for words: a string that holds JSON is a string.
func CheckCelestial(ctx context.Context, output any, level holdfast.Level, pc Context) (bool, string, error) {
	c := &celestial{ctx: ctx, output: output, level: level, pc: pc}
	var around []element // the elements that enclose the walker's place
	w := &walker{ctx: ctx}
	w.object = func(o map[string]any) string {
		if !isElement(o) {
			return ""
		}
		for len(around) > 0 && !w.within(around[len(around)-1].steps) {
			around = around[:len(around)-1]
		}
		e := element{w.at(), o, slices.Clone(w.steps), len(around)}
		around = append(around, e)
		c.elements = append(c.elements, e)
		return ""
	}
	if _, err := w.walk(output); err != nil {
		return false, "", err
	}
	levels := []func() (string, error){c.authorization, c.integrity, c.privacy, c.recovery, c.autonomy}
	for i, level := range levels {
		why, err := level()
		if err == nil && ctx.Err() != nil {
			err = &failure.Failure{Kind: failure.ErrTimeout, Text: "", Cause: ctx.Err()}
		}
		if err != nil {
			return false, "", err
		}
		if why != "" {
			return false, fmt.Sprintf("L%d: %s", i, why), nil
		}
	}
	return true, "", nil
}

func isElement(o map[string]any) bool {
	_, boundary, _ := member(o, "boundary")
	_, tool, _ := member(o, "tool")
	return boundary || tool
}

// authorization is L0.
func (c *celestial) authorization() (string, error) {
	for _, e := range c.elements {
		if c.pc.May == nil {
			return "", &failure.Failure{Kind: failure.ErrEval, Text: "it is not known what this agent may cross"}
		}
		for _, kind := range []string{"boundary", "tool"} {
			v, there, ok := member(e.o, kind)
			if !there {
				continue
			}
			name, text := v.(string)
			if !ok || !text || !plainName(name) {
				return fmt.Sprintf("the %s at %s is not a plain name", kind, e.path), nil
			}
			if !c.pc.May(name) {
				return fmt.Sprintf("the %s named at %s is not one this agent may cross", kind, e.path), nil
			}
		}
	}
	return "", nil
}

// plainName says whether a name can only be read in one way: visible ASCII in
// non-empty segments, none of them "." or "..", nothing percent-encoded.
func plainName(name string) bool {
	if name == "" || len(name) > 256 {
		return false
	}
	for i := 0; i < len(name); i++ {
		if name[i] <= ' ' || name[i] > '~' || name[i] == '\\' || name[i] == '%' || name[i] == '*' {
			return false
		}
	}
	for _, segment := range strings.Split(name, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// integrity is L1. Paths are compared component by component (D46).
func (c *celestial) integrity() (string, error) {
	if len(c.elements) > 0 && c.pc.Own == nil {
		return "", &failure.Failure{Kind: failure.ErrEval, Text: "it is not known what is Holdfast's own"}
	}
	walked := map[uintptr]bool{}
	for _, e := range c.elements {
		for _, kind := range []string{"boundary", "tool"} {
			v, _, _ := member(e.o, kind)
			if name, text := v.(string); text && ownName(name) {
				return fmt.Sprintf("the %s named at %s is Holdfast itself", kind, e.path), nil
			}
		}
		if walked[identity(e.o)] {
			continue
		}
		w := &walker{ctx: c.ctx, steps: e.steps}
		w.object = func(o map[string]any) string {
			walked[identity(o)] = true
			return ""
		}
		w.value = func(v any) string {
			if s, text := v.(string); text && touches(s, c.pc.Own) {
				return w.at() + " names a path of Holdfast itself"
			}
			return ""
		}
		if why, err := w.walk(e.o); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// identity tells one object of a tree from another. An element within an
// element was walked with it.
func identity(o map[string]any) uintptr { return reflect.ValueOf(o).Pointer() }

// ownName says whether a boundary's name has "holdfast" for its first segment,
// or for an MCP server's.
func ownName(name string) bool {
	segments := strings.Split(strings.ToLower(name), "/")
	if segments[0] == "mcp" && len(segments) > 1 {
		segments = segments[1:]
	}
	return segments[0] == "holdfast"
}

// touches says whether a text is, or holds as one of its words, a path that is
// one of own or under it. A path that only a shell could work out (a variable, a
// glob, a relative path) is not seen here; the sandbox's walls and the file
// modes are what stands against those.
func touches(s string, own []string) bool {
	if len(own) == 0 {
		return false
	}
	words := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`=,;:|&<>(){}[]", r) })
	for _, word := range append(words, s) {
		if decoded, err := url.PathUnescape(word); err == nil {
			word = decoded
		}
		// A shell and a JSON text within a text both read \/ as /.
		word = strings.ReplaceAll(word, `\`, "")
		i := strings.IndexByte(word, '/')
		if i < 0 {
			continue
		}
		word = path.Clean("/" + strings.TrimLeft(word[i:], "/"))
		for _, o := range own {
			if under(word, path.Clean(o)) {
				return true
			}
		}
	}
	return false
}

// under says whether p is root or below it.
func under(p, root string) bool {
	return root != "/" && root != "." && (p == root || strings.HasPrefix(p, root+"/"))
}

// privacy is L2. It reads the whole output, keys and numbers included.
func (c *celestial) privacy() (string, error) {
	known := c.pc.PersonalData != nil
	blind := false
	w := &walker{ctx: c.ctx}
	w.value = func(v any) string {
		text := ""
		switch v := v.(type) {
		case string:
			text = v
		case json.Number:
			text = string(v)
		}
		switch {
		case text == "":
		case !known:
			blind = true
		case c.pc.PersonalData(text):
			return "personal data at " + w.at()
		}
		return ""
	}
	why, err := w.walk(c.output)
	if err == nil && blind {
		err = &failure.Failure{Kind: failure.ErrEval, Text: "nothing here can tell personal data"}
	}
	return why, err
}

// recovery is L3. A mark that is neither true nor false counts as the worse of
// the two.
func (c *celestial) recovery() (string, error) {
	if c.pc.HasSnapshot || c.pc.HasReview {
		return "", nil
	}
	for _, e := range c.elements {
		undo, there, ok := member(e.o, "undo")
		final, marked, sure := member(e.o, "irreversible")
		if there && (!ok || undo != true) || marked && (!sure || final != false) {
			return fmt.Sprintf("what %s asks for cannot be undone, and there is neither a snapshot nor a review", e.path), nil
		}
	}
	return "", nil
}

// autonomy is L4.
func (c *celestial) autonomy() (string, error) {
	for _, e := range c.elements {
		v, there, ok := member(e.o, "level")
		if !there {
			continue
		}
		var level holdfast.Level
		word, text := v.(string)
		if !ok || !text || level.UnmarshalText([]byte(word)) != nil {
			return fmt.Sprintf("the trust level at %s is not one of baseline, medium, high, highest", e.path), nil
		}
		if level > c.level {
			return fmt.Sprintf("%s needs trust level %s and the agent has %s", e.path, level, c.level), nil
		}
	}
	if why, err := c.depth(); why != "" || err != nil {
		return why, err
	}
	return c.budget(), nil
}

// depth counts, for each element, the elements that enclose it and its chain
// of parents. Every object with an id is a step of that chain, because the
// inner goals of a tree name no boundary.
func (c *celestial) depth() (string, error) {
	if len(c.elements) == 0 {
		return "", nil
	}
	parent, why, err := c.parents()
	if why != "" || err != nil {
		return why, err
	}
	for _, e := range c.elements {
		if c.ctx.Err() != nil {
			return "", &failure.Failure{Kind: failure.ErrTimeout, Text: "", Cause: c.ctx.Err()}
		}
		up, plain := reference(e.o, "parent")
		if !plain {
			return "the parent at " + e.path + " is not one text", nil
		}
		deep := c.pc.Depth + e.inside
		for steps := 0; up != "" && deep <= c.pc.MaxDepth; steps++ {
			if steps > len(parent) {
				return e.path + " is its own ancestor", nil
			}
			deep++
			up = parent[up]
		}
		if deep > c.pc.MaxDepth {
			return fmt.Sprintf("%s is deeper than %d", e.path, c.pc.MaxDepth), nil
		}
	}
	return "", nil
}

// parents reads who is whose parent. An id with two parents could hide how
// deep it is, and so could a parent that is written as no text.
func (c *celestial) parents() (parent map[string]string, why string, err error) {
	parent = map[string]string{}
	w := &walker{ctx: c.ctx}
	w.object = func(o map[string]any) string {
		id, plain := reference(o, "id")
		if id == "" && (plain || !isElement(o)) {
			return ""
		}
		up, text := reference(o, "parent")
		if !text || !plain {
			return "the id or parent at " + w.at() + " is not one text"
		}
		if other, there := parent[id]; there && other != up {
			return "the id at " + w.at() + " has two parents"
		}
		parent[id] = up
		return ""
	}
	why, err = w.walk(c.output)
	return parent, why, err
}

// reference reads a member that names another object. An absent one and null
// are "" and plain; one that is no text, or is spelled in two ways, is not.
func reference(o map[string]any, name string) (id string, plain bool) {
	v, there, ok := member(o, name)
	if !there || ok && v == nil {
		return "", true
	}
	s, text := v.(string)
	return s, ok && text && s != ""
}

// budget adds up what the elements say they consume.
func (c *celestial) budget() string {
	total := map[holdfast.Resource]int64{}
	for _, e := range c.elements {
		v, there, ok := member(e.o, "consumes")
		if !there {
			continue
		}
		amounts, object := v.(map[string]any)
		if !ok || !object {
			return fmt.Sprintf("what %s consumes is not an object", e.path)
		}
		for _, name := range sortedKeys(amounts) {
			resource := holdfast.Resource(name)
			n, err := strconv.ParseInt(fmt.Sprint(amounts[name]), 10, 64)
			if _, number := amounts[name].(json.Number); !number || err != nil || n < 0 {
				return fmt.Sprintf("what %s consumes is not in whole numbers", e.path)
			}
			if total[resource] > math.MaxInt64-n {
				return fmt.Sprintf("what %s consumes is more than there is", e.path)
			}
			total[resource] += n
			if left, known := c.pc.BudgetLeft[resource]; !known || total[resource] > left {
				return fmt.Sprintf("%s and what stands before it consume more than the budget has left", e.path)
			}
		}
	}
	return ""
}
