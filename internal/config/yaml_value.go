package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/config/register"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/suggest"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"go.yaml.in/yaml/v4"
)

// value fills v from n. path is for people, tag is the field's.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	switch t := v.Addr().Interface().(type) {
	case *notYet:
		d.problem(n.Line, "remove it", "%q is not available in this version", path)
		return
	case *JSON:
		d.json(n, t)
		return
	case *ruleText:
		d.ruleText(n, t)
		return
	case *HeaderConfig:
		if n.Kind == yaml.ScalarNode {
			d.problem(n.Line, "write {file: NAME} or {env: NAME}", "%s: no value stands in this file", path)
			return
		}
	case *register.Source:
		if n.Kind == yaml.ScalarNode {
			d.problem(n.Line, "write {file: NAME}, {env: NAME} or {command: [PROGRAM, ARGS]}", "%s: no value stands in this file", path)
			return
		}
	case encoding.TextUnmarshaler:
		d.word(n, t, path)
		return
	}
	if n.ShortTag() == tagNull && (v.Kind() == reflect.Struct || v.Kind() == reflect.Map || v.Kind() == reflect.Slice) {
		return // a key whose lines are all commented out
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path, tag)
	case reflect.Slice:
		d.sequence(n, v, path, tag)
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.value(n, p.Elem(), path, tag)
		v.Set(p)
	default:
		d.scalar(n, v, path, tag)
	}
}

func (d *decoder) want(n *yaml.Node, path, what string) {
	hint := ""
	if what == "a text" && n.Kind == yaml.ScalarNode && n.ShortTag() != tagNull {
		hint = "put it in quotes"
	}
	if what == "a list" && n.Kind == yaml.ScalarNode {
		hint = "put it in brackets: [A], or [A, B] for several"
	}
	if path == "" {
		path = "the file"
	}
	d.problem(n.Line, hint, "%s must be %s, not %s", path, what, kindOf(n))
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case tagNull:
		return "nothing"
	case tagInt, tagFloat:
		return "a number"
	case tagBool:
		return "true or false"
	case tagTime:
		return "a date"
	}
	return "a text"
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.want(n, path, "a mapping")
		return
	}
	if at := v.FieldByName("At"); at.IsValid() {
		at.SetString(place(d.file, n.Line))
	}
	known, given := map[string]reflect.StructField{}, map[string]bool{}
	var names []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		if key := f.Tag.Get("yaml"); key != "" && key != "-" {
			known[key] = f
			names = append(names, key)
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		f, ok := known[k.Value]
		if !ok {
			hint := "the keys here are " + strings.Join(names, ", ")
			if k.Value == "contracts" {
				hint = "contracts stand under \"boundaries\""
			} else if near := suggestWord(k.Value, names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			d.problem(k.Line, hint, "unknown key %q", excerpt.Word(k.Value))
			continue
		}
		given[k.Value] = true
		at := join(path, k.Value)
		d.lines[at] = k.Line
		d.value(n.Content[i+1], v.FieldByIndex(f.Index), at, f.Tag)
	}
	for _, key := range names {
		if known[key].Tag.Get("need") != "" && !given[key] {
			d.problem(n.Line, known[key].Tag.Get("doc"), "%q is missing", key)
		}
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.MappingNode {
		d.want(n, path, "a mapping")
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Content)/2))
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.ShortTag() != tagString {
			d.want(k, "a name in "+path, "a text")
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		at := join(path, k.Value)
		d.lines[at] = k.Line
		d.value(n.Content[i+1], e, at, tag)
		v.SetMapIndex(reflect.ValueOf(k.Value).Convert(v.Type().Key()), e)
	}
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.SequenceNode {
		d.want(n, path, "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, c := range n.Content {
		if v.Type().Elem().Kind() == reflect.Struct && c.ShortTag() == tagNull {
			d.want(c, index(path, i), "a mapping")
			continue
		}
		d.lines[index(path, i)] = c.Line
		d.value(c, v.Index(i), index(path, i), tag)
	}
}

func (d *decoder) word(n *yaml.Node, into encoding.TextUnmarshaler, path string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == tagNull {
		d.want(n, path, "a text")
		return
	}
	if err := into.UnmarshalText([]byte(n.Value)); err != nil {
		why, hint := usage.Explain(err)
		d.problem(n.Line, hint, "%s: %s", path, why)
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	switch v.Kind() {
	case reflect.String:
		if n.Kind != yaml.ScalarNode || n.ShortTag() != tagString {
			d.want(n, path, "a text")
			return
		}
		if words := tag.Get("enum"); words != "" && !oneOf(words, n.Value) {
			d.problem(n.Line, "", "%s must be one of %s, not %q", path, strings.ReplaceAll(words, ",", ", "),
				excerpt.Word(n.Value))
			return
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.ShortTag() != tagBool {
			d.want(n, path, "true or false")
			return
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int, reflect.Int64:
		d.integer(n, v, path, tag)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || (tag != tagInt && tag != tagFloat) || err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			d.want(n, path, "a number")
			return
		}
		if d.inRange(n, f, path, tag) {
			v.SetFloat(f)
		}
	default:
		d.problem(n.Line, "", "%s cannot be configured", path)
	}
}

// integer takes decimal digits only: 010 is eight to one reader and ten to
// another.
func (d *decoder) integer(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tagInt {
		d.want(n, path, "a whole number")
		return
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || v.OverflowInt(i) || strconv.FormatInt(i, 10) != n.Value {
		d.problem(n.Line, "write it in decimal digits", "%s must be a whole number below 2^63, not %q", path,
			excerpt.Word(n.Value))
		return
	}
	if d.inRange(n, float64(i), path, tag) {
		v.SetInt(i)
	}
}

func (d *decoder) inRange(n *yaml.Node, f float64, path string, tag reflect.StructTag) bool {
	if s, ok := tag.Lookup("min"); ok {
		if least, _ := strconv.ParseFloat(s, 64); f < least {
			d.problem(n.Line, "", "%s must be at least %s, not %s", path, s, excerpt.Word(n.Value))
			return false
		}
	}
	if s, ok := tag.Lookup("max"); ok {
		if most, _ := strconv.ParseFloat(s, 64); f > most {
			d.problem(n.Line, "", "%s must be at most %s, not %s", path, s, excerpt.Word(n.Value))
			return false
		}
	}
	return true
}

func oneOf(words, word string) bool {
	for w := range strings.SplitSeq(words, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// suggestWord returns the known word that a typing error most likely meant, or "".
func suggestWord(word string, known []string) string {
	return suggest.FindNearest(word, known, len(word)/3+1)
}
