package modeltext

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
)

// Piece is a text of one event of a stream, or the end of one that came in events before.
type Piece struct {
	Text // Start and End are equal if the event only ends the text
	// Key is the same for all pieces of one text, in their order. The joined values of
	// these strings are the text; of Arguments and a Served tool input they are JSON.
	Key string
	// Ends reports that this is the last piece of the text.
	Ends bool
}

// PieceReader lists the pieces of an answer's texts, event by event. It has a state,
// because an event does not repeat whether its block calls a tool of the client or of
// the provider, and does not name the texts that it ends. It is for one goroutine.
type PieceReader struct {
	dialect dialect.Dialect
	open    map[string]openText
	blocks  map[int64]TextKind // by index: Plain, Signed or Served for all of a block
	wholes  int64              // texts that came whole so far
	key     []byte
}

// openText is a text that can have more pieces.
type openText struct {
	kind  TextKind
	path  string
	block int64 // the block, item or choice that it belongs to
}

// maxOpenTexts bounds the texts of a stream that are open at a time, and its blocks.
const maxOpenTexts = 1 << 12

// NewPieceReader returns a reader of the events of one answer.
func NewPieceReader(d dialect.Dialect) *PieceReader {
	return &PieceReader{dialect: d, open: map[string]openText{}, blocks: map[int64]TextKind{}}
}

// ListPieces returns the pieces in one event's data: first those with text, in the order
// of the data, then the ends of earlier texts. Texts that an event brings or repeats
// whole, as events named done and completed do, have separate keys and one piece.
// Kinds and errors are those of ListAnswerTexts.
//
// A text whose block began in no earlier event is Served. The data "[DONE]" ends all
// texts: a caller reads it at the end of a stream of any dialect that broke off.
func (r *PieceReader) ListPieces(data []byte) ([]Piece, error) {
	if r.dialect.Provider() == dialect.NoProvider {
		return nil, newUnknownFormat()
	}
	switch data = bytes.TrimSpace(data); string(data) {
	case "":
		return nil, nil
	case "[DONE]":
		return r.endAll(nil), nil
	}
	event := inEvent
	if r.dialect != dialect.Messages && r.dialect != dialect.Responses {
		event = inAnswer
	}
	l := newTextLister(r.dialect, data, true)
	err := l.readDocument(event)
	if err == nil && max(len(r.open), len(r.blocks)) > maxOpenTexts {
		err = newTooMany("texts at a time", maxOpenTexts)
	}
	if err != nil {
		return nil, newAnswerError(err)
	}
	switch r.dialect {
	case dialect.Messages:
		return r.listMessagePieces(l), nil
	case dialect.Responses:
		return r.listResponsePieces(l), nil
	}
	return r.listChatPieces(l), nil
}

// addPiece appends a piece of the text that has the name in the block, and in its part.
func (r *PieceReader) addPiece(out []Piece, t Text, name string, block, part int64) []Piece {
	kept := string(r.buildKey(name, block, part))
	if had := r.open[kept]; had.kind == Served || had.kind == Signed {
		t.Kind = had.kind
	}
	r.open[kept] = openText{t.Kind, t.Path, block}
	return append(out, Piece{Text: t, Key: kept})
}

func (r *PieceReader) buildKey(name string, block, part int64) []byte {
	r.key = append(append(r.key[:0], name...), '/')
	r.key = append(strconv.AppendInt(r.key, block, 10), '/')
	r.key = strconv.AppendInt(r.key, part, 10)
	return r.key
}

// addWhole appends a text that the event brings whole.
func (r *PieceReader) addWhole(out []Piece, t Text) []Piece {
	r.wholes++
	return append(out, Piece{Text: t, Key: "whole/" + strconv.FormatInt(r.wholes, 10), Ends: true})
}

// endTexts ends the open texts that match: on their last piece in out, or by one more.
func (r *PieceReader) endTexts(out []Piece, matches func(key string, t openText) bool) []Piece {
	ended := map[string]openText{}
	for key, t := range r.open {
		if matches(key, t) {
			ended[key] = t
			delete(r.open, key)
		}
	}
	for i := len(out) - 1; i >= 0 && len(ended) > 0; i-- {
		if _, is := ended[out[i].Key]; is {
			out[i].Ends = true
			delete(ended, out[i].Key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(ended)) {
		t := ended[key]
		out = append(out, Piece{Text: Text{Kind: t.kind, Path: t.path}, Key: key, Ends: true})
	}
	return out
}

func (r *PieceReader) endBlock(out []Piece, block int64) []Piece {
	delete(r.blocks, block)
	return r.endTexts(out, func(_ string, t openText) bool { return t.block == block })
}

func (r *PieceReader) endAll(out []Piece) []Piece {
	return r.endTexts(out, func(string, openText) bool { return true })
}

// beginBlock keeps what the texts of a block are that comes in pieces. Of two blocks in
// one place clients take the one or the other: their texts are Served if they differ.
func (r *PieceReader) beginBlock(index int64, o *textObject) {
	kind := Plain
	switch {
	case o.isSigned(true):
		kind = Signed
	case o.isServed() || !o.isKnown():
		kind = Served
	}
	if had, began := r.blocks[index]; began && had != kind {
		kind = Served
	}
	r.blocks[index] = kind
}

// kindIn returns what a text of a block is that would have the kind k if the client
// reads or runs the block.
func (r *PieceReader) kindIn(block int64, k TextKind) TextKind {
	if of, began := r.blocks[block]; !began {
		return Served
	} else if of != Plain {
		return of
	}
	return k
}

func (r *PieceReader) listMessagePieces(l *textLister) (out []Piece) {
	e := &l.event
	kind := string(e.kind)
	if kind == "content_block_start" {
		r.beginBlock(e.index, &l.block)
	}
	for _, t := range l.takeTexts() {
		within, name, _ := strings.Cut(t.Path, ".")
		switch {
		case within == "delta" && kind == "content_block_delta":
			switch name {
			case "text":
				t.Kind = r.kindIn(e.index, Plain)
			case "partial_json":
				t.Kind = r.kindIn(e.index, Arguments)
			case "":
				out = r.addWhole(out, t)
				continue
			}
			out = r.addPiece(out, t, name, e.index, 0)
		case within == "content_block" && kind == "content_block_start" && isDeltaName(name):
			out = r.addPiece(out, t, name, e.index, 0)
		default:
			out = r.addWhole(out, t)
		}
	}
	switch kind {
	case "content_block_stop":
		out = r.endBlock(out, e.index)
	case "message_stop", "error":
		out = r.endAll(out)
	}
	return out
}

// isDeltaName reports whether a member of a block that begins can have more in deltas.
func isDeltaName(name string) bool {
	switch name {
	case "text", "thinking", "signature", "content", "encrypted_content":
		return true
	}
	return false
}

func (r *PieceReader) listChatPieces(l *textLister) (out []Piece) {
	for i, t := range l.takeTexts() {
		_, name, _ := strings.Cut(t.Path, "].")
		name, isDelta := strings.CutPrefix(name, "delta.")
		if !isDelta && name != "text" {
			out = r.addWhole(out, t)
			continue
		}
		if strings.HasPrefix(name, "tool_calls[") {
			_, name, _ = strings.Cut(name, "].")
		}
		out = r.addPiece(out, t, name, l.notes[i].choice, l.notes[i].call)
	}
	if len(l.choices) == 0 {
		return out
	}
	finished := map[int64]bool{}
	for _, choice := range l.choices {
		finished[choice] = true
	}
	return r.endTexts(out, func(_ string, t openText) bool { return finished[t.block] })
}

// responsePieces are the kinds of texts that events of Responses bring in pieces, by the
// events' names without their ends. Served are those of the provider's own tools.
var responsePieces = map[string]TextKind{
	"response.output_text":                     Plain,
	"response.refusal":                         Plain,
	"response.reasoning_text":                  Plain,
	"response.reasoning_summary_text":          Plain,
	"response.custom_tool_call_input":          Plain,
	"response.apply_patch_call_operation_diff": Plain,
	"response.shell_call_command":              Plain,
	"response.audio.transcript":                Plain,
	"response.function_call_arguments":         Arguments,
	"response.mcp_call_arguments":              Served,
	"response.code_interpreter_call_code":      Served,
	"response.audio":                           Binary,
}

func (r *PieceReader) listResponsePieces(l *textLister) (out []Piece) {
	e := &l.event
	kind := string(e.kind)
	switch kind {
	case "response.output_item.added":
		r.beginBlock(l.outer, &l.block)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "error":
		defer func() { out = r.endAll(out) }()
	case "response.output_item.done":
		defer func() { out = r.endBlock(out, l.outer) }()
	}
	dot := max(0, strings.LastIndexByte(kind, '.'))
	base, step := kind[:dot], kind[dot:]
	text, known := responsePieces[base]
	if base == "response.shell_call_command" || r.blocks[l.outer] == Served {
		text = r.kindIn(l.outer, text)
	}
	for _, t := range l.takeTexts() {
		if isPart := strings.ContainsAny(t.Path, ".["); !isPart && t.Kind != Binary {
			switch t.Path {
			case "item", "part", "response", "logprobs":
			default:
				if t.Kind = text; !known {
					t.Kind = Served
				}
			}
		}
		if t.Path == "delta" && step == ".delta" && known {
			out = r.addPiece(out, t, base, l.outer, l.inner)
		} else {
			out = r.addWhole(out, t)
		}
	}
	if step == ".done" {
		key := string(r.buildKey(base, l.outer, l.inner))
		out = r.endTexts(out, func(k string, _ openText) bool { return k == key })
	}
	return out
}
