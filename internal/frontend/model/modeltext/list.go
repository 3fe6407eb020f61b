// Package modeltext finds the texts of model requests and answers: of bodies, of answers
// in one document and of streamed events, in the dialects of package dialect. The egress
// proxy replaces values in them and restores values (D13a). Structure is never listed.
//
// It is pure, and bounded in size, depth and number of texts.
package modeltext

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
)

// TextKind tells how a text of a request or an answer may be changed.
type TextKind uint8

// The kinds of texts.
const (
	// Plain is a JSON string that a person, a tool or the model wrote or reads. It is
	// searched, replaced and restored.
	Plain TextKind = iota
	// Arguments is a JSON string that holds a JSON document: the arguments of OpenAI's
	// function calls, and in streams the pieces of a tool's input. A model can write a
	// document that is incomplete or invalid.
	Arguments
	// Data is free-form JSON that is no string, such as a tool's input. It is searched with
	// the names of its members, replaced and restored as a document of its own.
	Data
	// Signed is data that the provider signed or encrypted. It passes byte for byte, or
	// the request is refused.
	Signed
	// Binary is base64 data of a picture, a document or sound, alone or in a data: URL.
	Binary
	// Served is input or output of the provider's own tools, and in answers also every
	// text of unknown purpose. It is searched and replaced in requests and never
	// restored in answers.
	Served
)

var textKinds = [...]string{"plain", "arguments", "data", "signed", "binary", "served"}

// String returns the kind's name.
func (k TextKind) String() string {
	if int(k) < len(textKinds) {
		return textKinds[k]
	}
	return "unknown"
}

// Text is one text of a document.
type Text struct {
	// Start and End are the text's JSON value in the document, with its quotes.
	Start, End int
	Kind       TextKind
	// Media is the media type of a Binary, such as "image/png"; "" if the document does
	// not name it.
	Media string
	// Path is the text's place, such as "messages[2].content[0].text"; at most 128
	// bytes. It contains only names that the dialects define, never a client's own: a
	// text inside free-form data has the path of that data.
	Path string
	// Document reports that a Binary is a document such as a PDF, not a picture or sound.
	Document bool
	// Thought reports that the model wrote the text as its reasoning.
	Thought bool
}

const (
	maxTexts    = 1 << 16 // of one document
	maxTextPath = 128     // bytes
	maxMediaURL = 256     // bytes of a data: URL before its data
)

// ListTexts returns the non-empty texts of a request's body in the order of the body.
// Structure is not listed: roles, types, IDs, tool definitions, schemas, model names,
// cache marks, metadata, stop sequences and citations' URLs. Every string of a member
// or a content block that the dialect does not define is a text, except under
// structural names.
//
// Errors are *holdfast.Error as for Parse: KindValidation for malformed JSON, a name
// twice in an object, invalid UTF-8 or trailing data, and KindPayloadTooLarge for more
// than 65,536 texts or 128 levels. Otherwise ListTexts accepts every shape, also those
// that Parse rejects. The body is not copied.
func ListTexts(d dialect.Dialect, body []byte) ([]Text, error) {
	if d == dialect.Models && len(body) == 0 {
		return nil, nil
	}
	if d.Provider() == dialect.NoProvider {
		return nil, newUnknownFormat()
	}
	l := newTextLister(d, body, false)
	if err := l.readDocument(inBody); err != nil {
		return nil, err
	}
	return l.takeTexts(), nil
}

// ListAnswerTexts returns the texts of an answer that is one document, as ListTexts
// does for requests. An error's message is left out, because it is never restored:
// clients branch on its words. Citations are left out too. Text of unknown purpose is
// Served.
func ListAnswerTexts(d dialect.Dialect, doc []byte) ([]Text, error) {
	if d.Provider() == dialect.NoProvider {
		return nil, newUnknownFormat()
	}
	l := newTextLister(d, doc, true)
	if err := l.readDocument(inAnswer); err != nil {
		return nil, newAnswerError(err)
	}
	return l.takeTexts(), nil
}

// textLister reads one document and collects its texts.
type textLister struct {
	documentReader
	doc     []byte
	dialect dialect.Dialect
	answer  bool
	texts   []Text
	notes   []textNote // one for each text
	places  []byte     // the paths of all texts
	path    []byte     // of the value being read
	scratch []byte     // an unquoted name
	choices []int64    // indices of the choices that finished

	environment  []byte     // the kind of the last environment of a shell call
	event, block textObject // of an event: its own object, and the last block in it
	outer, inner int64      // of an event: the indices of its item and part
}

// textNote is what is known of a text until its document ends.
type textNote struct {
	from, to     int   // its path in places
	choice, call int64 // the index members around it in a stream of Chat
}

func newTextLister(d dialect.Dialect, doc []byte, answer bool) *textLister {
	return &textLister{documentReader: newDocumentReader(doc), doc: doc, dialect: d, answer: answer}
}

// readDocument reads the document, which must be one object.
func (l *textLister) readDocument(c textContext) error {
	if err := l.readObject(c); err != nil {
		return err
	}
	return l.readEnd()
}

// takeTexts returns the texts with their paths.
func (l *textLister) takeTexts() []Text {
	all := string(l.places)
	for i, n := range l.notes {
		l.texts[i].Path = all[n.from:n.to]
	}
	return l.texts
}

// readValue reads one value in its context.
func (l *textLister) readValue(c textContext) error {
	if c == inStructure {
		return l.skipValue()
	}
	switch l.d.PeekKind() {
	case jsontext.KindString:
		v, err := l.readScalar()
		if err != nil {
			return err
		}
		return l.addString(v, c)
	case jsontext.KindBeginObject:
		if c.contextInside() == inFreeForm {
			return l.readData()
		}
		return l.readObject(c.contextInside())
	case jsontext.KindBeginArray:
		if c == inFreeForm {
			return l.readData()
		}
		return l.readList(c)
	case jsontext.KindNumber:
		v, err := l.readScalar()
		if err != nil || c != inFreeForm {
			return err
		}
		return l.addText(v, Data)
	}
	return l.skipValue()
}

// readData lists free-form data as one text.
func (l *textLister) readData() error {
	depth := l.d.StackDepth()
	if err := l.readToken(); err != nil {
		return err
	}
	start := l.d.InputOffset() - 1
	for l.d.StackDepth() > depth {
		if err := l.readToken(); err != nil {
			return err
		}
		if l.d.StackDepth() > maxDepth {
			return newTooDeep()
		}
	}
	if v := l.doc[start:l.d.InputOffset()]; len(v) > 2 {
		return l.addText(v, Data)
	}
	return nil
}

func (l *textLister) readList(c textContext) error {
	if err := l.openContainer(jsontext.KindBeginArray); err != nil {
		return err
	}
	base := len(l.path)
	for i := int64(0); l.d.PeekKind() != jsontext.KindEndArray; i++ {
		if c.hasPath() {
			l.path = append(strconv.AppendInt(append(l.path[:base], '['), i, 10), ']')
		}
		if err := l.readValue(c); err != nil {
			return err
		}
	}
	l.path = l.path[:base]
	return l.readToken()
}

// readObject reads one object. It does not reject names that resemble a member in
// other letters, as Parse does: they are unknown members, whose texts are listed.
func (l *textLister) readObject(c textContext) error {
	if err := l.openContainer(jsontext.KindBeginObject); err != nil {
		return err
	}
	o := textObject{context: c, from: len(l.texts), data: -1, index: -1}
	base := len(l.path)
	for l.d.PeekKind() == jsontext.KindString {
		v, err := l.readScalar()
		if err != nil {
			return err
		}
		if err := l.readMember(&o, l.unquoteString(v)); err != nil {
			return err
		}
		l.path = l.path[:base]
	}
	if err := l.readToken(); err != nil {
		return err
	}
	l.settleKinds(&o)
	return nil
}

// readMember reads the value of one member.
func (l *textLister) readMember(o *textObject, name []byte) error {
	next, known := l.contextOf(o.context, name)
	if known && len(l.path) < maxTextPath {
		if len(l.path) > 0 {
			l.path = append(l.path, '.')
		}
		l.path = append(l.path, name...)
	}
	if next == inName {
		switch string(name) { // name is invalid after the next read
		case "type":
			return l.readWord(&o.kind)
		case "media_type", "mime_type", "mimeType":
			return l.readWord(&o.media)
		case "format", "output_format":
			return l.readWord(&o.format)
		case "execution":
			return l.readWord(&o.execution)
		case "finish_reason":
			return l.readWord(&o.finish)
		case "index":
			return l.readIndex(&o.index)
		case "output_index":
			return l.readIndex(&l.outer)
		case "content_index", "summary_index", "command_index":
			return l.readIndex(&l.inner)
		}
		return l.readValue(next)
	}
	before := len(l.texts)
	isData, isSignature := string(name) == "data" || string(name) == "result", string(name) == "signature"
	isThought := o.context == inBlock && isThoughtName(name)
	err := l.readValue(next)
	if isThought {
		l.markThoughts(before)
	}
	switch {
	case next == inEnvironment:
		o.environment, l.environment = l.environment, nil
	case isSignature:
		o.signed = len(l.texts) > before
	case isData && len(l.texts) == before+1:
		o.data = before
	}
	return err
}

// readWord reads a structural string. Any other value is read as unknown data.
func (l *textLister) readWord(into *[]byte) error {
	if l.d.PeekKind() != jsontext.KindString {
		return l.readValue(inName)
	}
	v, err := l.readScalar()
	if err == nil {
		end := int(l.d.InputOffset())
		if *into = l.doc[end-len(v)+1 : end-1]; bytes.IndexByte(v, '\\') >= 0 {
			*into = bytes.Clone(l.unquoteString(v))
		}
	}
	return err
}

func (l *textLister) readIndex(into *int64) error {
	if l.d.PeekKind() != jsontext.KindNumber {
		return l.readValue(inName)
	}
	v, err := l.readScalar()
	if err != nil {
		return err
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && n >= 0 {
		*into = n
	}
	return nil
}

// unquoteString returns the content of a valid string, until the next call.
func (l *textLister) unquoteString(v []byte) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	l.scratch, _ = jsontext.AppendUnquote(l.scratch[:0], v)
	return l.scratch
}

func (l *textLister) addString(v []byte, c textContext) error {
	switch c {
	case inName, inManagement, inChoice, inEnvironment:
		return nil
	case inArguments:
		return l.addText(v, Arguments)
	case inSigned:
		return l.addText(v, Signed)
	case inServed, inCitation:
		return l.addText(v, Served)
	case inBinary, inFile, inLink, inMedia, inUnknown:
		media, isData := parseDataURL(v)
		if isData || c == inBinary || c == inFile {
			return l.addBinary(v, media, c == inFile)
		}
		if c == inUnknown && l.answer {
			return l.addText(v, Served)
		}
	}
	return l.addText(v, Plain)
}

func (l *textLister) addBinary(v []byte, media string, file bool) error {
	before := len(l.texts)
	err := l.addText(v, Binary)
	if len(l.texts) > before {
		t := &l.texts[before]
		t.Media, t.Document = media, isDocument(media) || file && media == ""
	}
	return err
}

// addText lists the value that was just read. Empty strings are no texts.
func (l *textLister) addText(v []byte, k TextKind) error {
	if len(v) == 2 && v[0] == '"' {
		return nil
	}
	if len(l.texts) == maxTexts {
		return newTooMany("texts", maxTexts)
	}
	path := l.path[:min(len(l.path), maxTextPath)]
	n := textNote{len(l.places), len(l.places) + len(path), 0, 0}
	if last := len(l.notes) - 1; last >= 0 && string(l.places[l.notes[last].from:l.notes[last].to]) == string(path) {
		n.from, n.to = l.notes[last].from, l.notes[last].to
	} else {
		l.places = append(l.places, path...)
	}
	end := int(l.d.InputOffset())
	l.texts = append(l.texts, Text{Start: end - len(v), End: end, Kind: k})
	l.notes = append(l.notes, n)
	return nil
}

// parseDataURL returns the media type of a data: URL in base64, and reports whether v, which
// has its quotes, is one.
func parseDataURL(v []byte) (media string, is bool) {
	const scheme = `"data:`
	if len(v) < len(scheme) || !strings.EqualFold(string(v[:len(scheme)]), scheme) {
		return "", false
	}
	head, _, found := bytes.Cut(v[len(scheme):min(len(v), maxMediaURL)], []byte(","))
	if !found || !bytes.HasSuffix(bytes.ToLower(head), []byte(";base64")) {
		return "", false
	}
	head, _, _ = bytes.Cut(head, []byte(";"))
	return string(bytes.ReplaceAll(head, []byte(`\/`), []byte("/"))), true
}

// isDocument reports whether a media type is known and neither of a picture nor of sound.
func isDocument(media string) bool {
	major, _, _ := strings.Cut(strings.ToLower(media), "/")
	switch major {
	case "", "image", "audio", "video":
		return false
	}
	return true
}

// textObject is what decides the kinds of an object's texts, which may follow them.
type textObject struct {
	context textContext
	from    int // its first text
	data    int // the text of the member data or result, or -1
	index   int64
	signed  bool // it has a signature
	// The values of structural members.
	kind, media, format, execution, environment, finish []byte
}

// settleKinds corrects the kinds of an object's texts when all its members are known.
func (l *textLister) settleKinds(o *textObject) {
	if o.data >= 0 {
		l.settleData(o)
	}
	switch o.context {
	case inChoice:
		index := max(0, o.index)
		for i := o.from; i < len(l.notes); i++ {
			l.notes[i].choice = index
		}
		if len(o.finish) > 0 {
			l.choices = append(l.choices, index)
		}
	case inCall:
		for i := o.from; i < len(l.notes); i++ {
			l.notes[i].call = max(0, o.index)
		}
	case inEnvironment:
		l.environment = o.kind
	case inEvent:
		l.event = *o
	case inBlock:
		l.block = *o
	}
	if o.context != inBlock && o.context != inCall && o.context != inUnknown {
		return
	}
	if o.isThought() {
		l.markThoughts(o.from)
	}
	switch {
	case o.isSigned(l.answer):
		l.markTexts(o.from, Signed)
	case o.isServed() || l.answer && o.context != inUnknown && !o.isKnown():
		l.markTexts(o.from, Served)
	case string(o.kind) == "document" || string(o.kind) == "file" || string(o.kind) == "input_file":
		for i := range l.texts[o.from:] {
			t := &l.texts[o.from+i]
			t.Document = t.Document || t.Kind == Binary && t.Media == ""
		}
	}
}

// settleData decides what the member data or result holds.
func (l *textLister) settleData(o *textObject) {
	t, kind := &l.texts[o.data], string(o.kind)
	drawn := kind == "image_generation_call"
	switch media := string(o.media); {
	case kind == "text", t.Kind == Binary: // Binary is a data: URL
	case o.context == inMedia || drawn || media != "" && !strings.HasPrefix(media, "text/") || kind == "base64":
		if major := "audio/"; media == "" && len(o.format) > 0 {
			if drawn {
				major = "image/"
			}
			media = major + string(o.format)
		}
		t.Kind, t.Media, t.Document = Binary, media, isDocument(media)
	}
}

// markTexts makes texts Signed or Served, from the text with that number on. Signed data and
// Binary stay what they are.
func (l *textLister) markTexts(from int, k TextKind) {
	for i := from; i < len(l.texts); i++ {
		switch t := &l.texts[i]; t.Kind {
		case Plain, Arguments, Data, Served:
			t.Kind = k
		}
	}
}

// markThoughts marks texts as thoughts, from the text with that number on.
func (l *textLister) markThoughts(from int) {
	for i := from; i < len(l.texts); i++ {
		l.texts[i].Thought = true
	}
}

// isThoughtName reports whether a member of a message or block holds what the model thought.
func isThoughtName(name []byte) bool {
	switch string(name) {
	case "thinking", "thinking_blocks", "reasoning", "reasoning_content", "reasoning_details":
		return true
	}
	return false
}

// isThought reports whether the object as a whole is what the model thought.
func (o *textObject) isThought() bool {
	kind := string(o.kind)
	return kind == "thinking" || kind == "reasoning" || strings.HasPrefix(kind, "reasoning.")
}

// isSigned reports whether the object as a whole is data that the provider verifies.
// A thinking block of an answer is signed even if its signature is sent later; in a
// request some servers leave it unsigned.
func (o *textObject) isSigned(answer bool) bool {
	switch kind := string(o.kind); kind {
	case "redacted_thinking", "compaction":
		return true
	case "thinking":
		return o.signed || answer
	default:
		return (o.signed || answer) && strings.HasPrefix(kind, "reasoning.")
	}
}

// isServed reports whether the provider runs what the object asks, or returned it.
func (o *textObject) isServed() bool {
	kind := string(o.kind)
	switch kind {
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
		"mcp_call", "mcp_list_tools", "mcp_approval_request", "program", "program_output":
		return true
	case "tool_search_call":
		return string(o.execution) != "client"
	case "shell_call":
		return len(o.environment) > 0 && string(o.environment) != "local"
	}
	return strings.HasSuffix(kind, "_tool_use") || strings.HasSuffix(kind, "_tool_result")
}

// isKnown reports whether an answer has such an object for the client to read or to run.
func (o *textObject) isKnown() bool {
	switch string(o.kind) {
	case "", "message", "text", "output_text", "refusal", "reasoning", "summary_text", "reasoning_text",
		"tool_use", "function", "custom", "function_call", "custom_tool_call",
		"local_shell_call", "shell_call", "apply_patch_call", "computer_call", "tool_search_call":
		return true
	}
	return false
}
