package redaction

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// Prefix begins every text that tells a caller.
const Prefix = "[holdfast]"

// Names in the _meta of a result that is recorded; no client gets them.
const (
	MetaRedacted    = mcp.OwnPrefix + "redacted"
	MetaUninspected = mcp.OwnPrefix + "uninspected"
)

// findList returns the list of a result in which a text can tell the caller, and that text; "" for no list.
func findList(method, text string) (name string, item []byte) {
	said := mcp.Quote(text)
	switch method {
	case mcp.MethodCallTool:
		return "content", fmt.Appendf(nil, `{"type":"text","text":%s}`, said)
	case mcp.MethodReadResource:
		return "contents", fmt.Appendf(nil, `{"uri":"holdfast:redaction","mimeType":"text/plain","text":%s}`, said)
	case mcp.MethodGetPrompt:
		return "messages", fmt.Appendf(nil, `{"role":"user","content":{"type":"text","text":%s}}`, said)
	}
	return "", nil
}

// canTell reports whether a result of a method has room for a notice.
func canTell(method string) bool {
	name, _ := findList(method, "")
	return name != ""
}

// Notice returns the text about what was masked in the request, "" for nothing.
func (s *Search) Notice() string { return s.buildText(report{}) }

// buildText returns the notice for the caller, "" for nothing.
func (s *Search) buildText(result report) string {
	var all report
	all.addReport(s.request)
	all.addReport(result)
	if all.masked == 0 {
		return ""
	}
	lines := []string{Prefix + " " + all.formatLine()}
	say := func(what string, r report) {
		if r.masked > 0 {
			lines = append(lines, what+strings.Join(r.places, ", ")+r.sayMore())
		}
	}
	say("masked before the server got it: ", s.request)
	say("masked in this answer: ", result)
	return strings.Join(append(lines,
		"a mask, such as [email] or 0 for a number, is not the value: do not use it as one"), "\n")
}

// Result searches a result, and returns it as the client may see it, with what tells the caller. The error is an
// *holdfast.Error: the result is withheld. Pictures, sounds and other binary parts pass, as do the questions in a
// result that is not final, and the server's own state.
func (s *Search) Result(raw []byte) ([]byte, error) {
	out, found, uninspected, err := s.searchResult(raw)
	if err != nil {
		return nil, toWithheld(err)
	}
	tell := s.request.masked > 0 && !isQuestion(raw) // the result that follows a question tells
	if found.masked == 0 && !tell && (uninspected == 0 || s.kept) {
		return out, nil
	}
	if found.masked > 0 || tell {
		name, item := findList(s.method, s.buildText(found))
		if name == "" || found.masked > 0 && isQuestion(raw) {
			return nil, toWithheld(newRefusal(found.places, found.listKinds(), found.sayMore(),
				"nothing could tell the caller that it was masked"))
		}
		if out, err = appendItem(out, name, item); err != nil {
			return nil, toWithheld(newFailure("the result", err))
		}
	}
	if out, err = addRecord(out, found, s.request, uninspected); err != nil {
		return nil, toWithheld(newFailure("the result", err))
	}
	return out, nil
}

// Kept returns the search for a result that was kept: it tells already what was masked in the request.
func (s *Search) Kept() *Search {
	kept := *s
	kept.request, kept.kept = report{}, true
	return &kept
}

// searchResult returns a result masked, what was masked, and the number of parts that were not searched.
func (s *Search) searchResult(raw []byte) (out []byte, found report, uninspected int, err error) {
	if !s.SearchesResults() {
		return raw, report{}, 0, nil
	}
	var taken [][]byte
	hollow, err := eachPart(raw, func(b []byte, name string, binary bool) ([]byte, error) {
		v := mcp.Get(b, name)
		taken = append(taken, v)
		if binary {
			uninspected++
		}
		return mcp.Set(b, []byte(`""`), name)
	})
	if err != nil {
		return nil, found, 0, newFailure("the result", err)
	}
	out, found, err = s.applyPolicy(hollow, policyOf(s.rules.Response, s.rules.Personal), "result")
	if err != nil {
		return nil, found, 0, err
	}
	if found.masked == 0 {
		out, err = s.quoteForged(raw)
		return out, found, uninspected, err
	}
	n := 0
	out, err = eachPart(out, func(b []byte, name string, _ bool) ([]byte, error) {
		if n == len(taken) {
			return nil, errors.New("a part has become a binary one")
		}
		n++
		return mcp.Set(b, taken[n-1], name)
	})
	if err == nil && n != len(taken) {
		err = errors.New("a binary part has lost its name")
	}
	if err == nil {
		out, err = s.quoteForged(out)
	}
	if err != nil {
		return nil, found, 0, newFailure("the result", err)
	}
	return out, found, uninspected, nil
}

// Error searches a server's JSON-RPC error, and returns it with what tells the caller. The addresses that it wants
// a client to open are not searched.
func (s *Search) Error(raw []byte) ([]byte, error) {
	if !s.SearchesResults() && s.request.masked == 0 {
		return raw, nil
	}
	addresses := mcp.Get(raw, "data", "elicitations")
	out, found, err := raw, report{}, error(nil)
	if s.SearchesResults() {
		if addresses != nil {
			if out, err = mcp.Set(raw, []byte("[]"), "data", "elicitations"); err != nil {
				return nil, toWithheld(newFailure("the error", err))
			}
		}
		out, found, err = s.applyPolicy(out, policyOf(s.rules.Response, s.rules.Personal), "error")
		if err != nil {
			return nil, toWithheld(err)
		}
	}
	if found.masked == 0 {
		out = raw
	} else if addresses != nil {
		if out, err = mcp.Set(out, addresses, "data", "elicitations"); err != nil {
			return nil, toWithheld(newFailure("the error", err))
		}
	}
	said := s.buildText(found)
	if said == "" {
		return out, nil
	}
	message, _ := mcp.Text(mcp.Get(out, "message"))
	message = strings.ReplaceAll(message, Prefix, "(holdfast)")
	if out, err = mcp.Set(out, mcp.Quote(message+"\n"+said), "message"); err != nil {
		return nil, toWithheld(newFailure("the error", err))
	}
	return out, nil
}

// toWithheld returns err as the reason why a result is not given.
func toWithheld(err error) error {
	e, ok := errors.AsType[*holdfast.Error](err)
	if !ok || e.Rule != Rule {
		return err
	}
	at := *e
	at.Kind, at.Gate = holdfast.KindEvalFailure, holdfast.K8
	at.Hint = "the call was made, and only its result is withheld; " +
		"by `redact:` of the contract a person decides what is shown"
	return &at
}

// isQuestion reports whether a result asks the client for something first.
func isQuestion(raw []byte) bool {
	f := mcp.Fields(raw)
	kind, _ := mcp.Text(f["resultType"])
	return kind == "input_required" || f["inputRequests"] != nil
}

// addRecord puts what was masked before everything else of a result, for the record, which keeps its beginning.
func addRecord(raw []byte, found, request report, uninspected int) ([]byte, error) {
	ms, err := mcp.Members(raw)
	if err != nil {
		return nil, err
	}
	found.addReport(request)
	var meta, out mcp.Builder
	if found.masked > 0 {
		meta.Add(MetaRedacted, mcp.Quote(found.formatLine()))
	}
	if uninspected > 0 {
		meta.Add(MetaUninspected, fmt.Append(nil, uninspected))
	}
	given, _ := mcp.Members(mcp.Get(raw, "_meta"))
	for _, m := range given {
		if m.Name != MetaRedacted && m.Name != MetaUninspected {
			meta.Add(m.Name, m.Value(mcp.Get(raw, "_meta")))
		}
	}
	out.Add("_meta", meta.Bytes())
	for _, m := range ms {
		if m.Name != "_meta" {
			out.Add(m.Name, m.Value(raw))
		}
	}
	return out.Bytes(), nil
}

// appendItem appends an item to the list of that name.
func appendItem(raw []byte, name string, item []byte) ([]byte, error) {
	had, err := mcp.Elements(mcp.Get(raw, name))
	if err != nil {
		had = nil // the result has no such list
	}
	return mcp.Set(raw, joinItems(append(had, item)), name)
}

func joinItems(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

// eachPart replaces each object of a result that has a part to leave alone by what visit makes of it: the object, the
// name of the part, and whether it is a binary one.
func eachPart(raw []byte, visit func(b []byte, name string, binary bool) ([]byte, error)) ([]byte, error) {
	for _, name := range []string{"requestState", "inputRequests"} {
		if mcp.Get(raw, name) == nil {
			continue
		}
		out, err := visit(raw, name, false)
		if err != nil {
			return nil, err
		}
		raw = out
	}
	return eachBlock(raw, func(b []byte) ([]byte, error) {
		if name := binaryMember(b); name != "" {
			return visit(b, name, true)
		}
		return b, nil
	})
}

// binaryMember returns the name of the member that holds base64 in a block of a result, "" for none.
func binaryMember(b []byte) string {
	f := mcp.Fields(b)
	kind, _ := mcp.Text(f["type"])
	switch {
	case (kind == "image" || kind == "audio") && jsontext.Value(f["data"]).Kind() == '"':
		return "data"
	case jsontext.Value(f["blob"]).Kind() == '"' && f["uri"] != nil:
		return "blob"
	}
	return ""
}

// eachBlock replaces the blocks of a result by what visit makes of them: those of a tool's content and of a prompt's
// messages, the resources in them, and the contents of a resource. Where visit changes nothing it is raw itself.
func eachBlock(raw []byte, visit func([]byte) ([]byte, error)) ([]byte, error) {
	block := func(b []byte) ([]byte, error) {
		b, err := visit(b)
		if err != nil {
			return nil, err
		}
		return eachMember(b, "resource", visit)
	}
	blocks := func(b []byte) ([]byte, error) { return eachValue(b, block) }
	raw, err := eachMember(raw, "content", blocks)
	if err == nil {
		raw, err = eachMember(raw, "contents", blocks)
	}
	if err == nil {
		raw, err = eachMember(raw, "messages", func(b []byte) ([]byte, error) {
			return eachValue(b, func(b []byte) ([]byte, error) { return eachMember(b, "content", blocks) })
		})
	}
	return raw, err
}

// eachMember replaces the member of that name, if there is one.
func eachMember(b []byte, name string, visit func([]byte) ([]byte, error)) ([]byte, error) {
	if jsontext.Value(b).Kind() != '{' {
		return b, nil
	}
	o, err := mcp.ReadObject(b)
	v := o.Get(name)
	if err != nil || v == nil {
		return b, err
	}
	out, err := visit(v)
	if err != nil || bytes.Equal(out, v) {
		return b, err
	}
	return o.With(name, out)
}

// eachValue replaces the objects of a list, or the one object that v is.
func eachValue(v []byte, visit func([]byte) ([]byte, error)) ([]byte, error) {
	switch jsontext.Value(v).Kind() {
	case '{':
		return visit(v)
	case '[':
	default:
		return v, nil
	}
	items, err := mcp.Elements(v)
	if err != nil {
		return nil, err
	}
	changed := false
	for i, item := range items {
		if jsontext.Value(item).Kind() != '{' {
			continue
		}
		out, err := visit(item)
		if err != nil {
			return nil, err
		}
		changed = changed || !bytes.Equal(out, item)
		items[i] = out
	}
	if !changed {
		return v, nil
	}
	return joinItems(items), nil
}

// quoteForged marks the texts of a server that begin as only Holdfast's do. A kept result has one of Holdfast's.
func (s *Search) quoteForged(raw []byte) ([]byte, error) {
	if s.kept {
		return raw, nil
	}
	return eachBlock(raw, func(b []byte) ([]byte, error) {
		text, ok := mcp.Text(mcp.Get(b, "text"))
		begins := strings.TrimLeft(text, " \t\r\n\u200b\ufeff")
		if !ok || len(begins) < len(Prefix) || !strings.EqualFold(begins[:len(Prefix)], Prefix) {
			return b, nil
		}
		return mcp.Set(b, mcp.Quote("the server says: "+text), "text")
	})
}
