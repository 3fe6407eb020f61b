package modeltext

import (
	"strings"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
)

// textContext is where a value is, which decides what its strings are. Both providers'
// blocks, parts and items share one context: no name means text in one of them and
// structure in another, and servers that speak one dialect take shapes of the others.
type textContext uint8

const (
	inStructure   textContext = iota // nothing is listed
	inName                           // a structural string; other values are unknown data
	inBody                           // the request
	inAnswer                         // the answer, or the message or response in an event
	inEvent                          // one event of a stream
	inDelta                          // what an event of Messages adds to a block
	inManagement                     // what is done with the context: instructions are text
	inPrompt                         // a prompt's texts, or a stored prompt with variables
	inVariables                      // values of a stored prompt
	inChoice                         // one answer of several
	inBlock                          // content: a text, a message, item, block or part
	inCall                           // a block that is one call of a list
	inMedia                          // where a block's data is
	inAction                         // what a tool of the client does
	inEnvironment                    // where a shell call runs
	inCitation                       // what a text cites
	inPlain                          // a string
	inArguments                      // a string that holds JSON
	inFreeForm                       // free-form data
	inSigned                         // data that the provider signed or encrypted
	inServed                         // data of the provider's tools
	inLink                           // a URL, also of data
	inBinary                         // base64 data
	inFile                           // base64 data of a document
	inUnknown                        // data that the dialects do not define
)

// contextInside returns the context of an object whose value is in c.
func (c textContext) contextInside() textContext {
	switch c {
	case inPlain, inBinary, inFile, inName:
		return inUnknown
	case inArguments:
		return inFreeForm
	case inLink:
		return inBlock
	}
	return c
}

// hasPath reports whether the values of a list in c have a path of their own.
func (c textContext) hasPath() bool {
	switch c {
	case inFreeForm, inUnknown, inName, inServed, inAction, inCitation, inSigned:
		return false
	}
	return true
}

// contextOf returns the context of the member name of an object in c, and reports
// whether the dialects define the name.
func (l *textLister) contextOf(c textContext, name []byte) (next textContext, known bool) {
	switch c {
	case inBody:
		return l.bodyContextOf(name)
	case inAnswer:
		return answerContextOf(name)
	case inEvent:
		return l.eventContextOf(name)
	case inDelta:
		return deltaContextOf(name)
	case inChoice:
		return choiceContextOf(name)
	case inBlock, inCall, inMedia:
		return l.blockContextOf(name)
	case inManagement:
		if string(name) == "instructions" {
			return inPlain, true
		}
		return inManagement, string(name) == "edits"
	case inPrompt:
		switch string(name) {
		case "variables":
			return inVariables, true
		case "version":
			return inName, false
		}
	case inVariables:
		return inBlock, false
	case inAction:
		switch string(name) {
		case "env":
			return inFreeForm, false
		case "button":
			return inName, false
		}
		if next := unknownContextOf(name); next != inUnknown {
			return next, false
		}
		return inAction, false
	case inCitation:
		switch string(name) {
		case "url", "source":
			return inName, false
		}
		if next := unknownContextOf(name); next != inUnknown {
			return next, false
		}
		return inCitation, false
	case inFreeForm, inSigned:
		return c, false
	case inEnvironment:
		if string(name) == "type" {
			return inName, false
		}
		return inStructure, false
	case inServed:
		if next := unknownContextOf(name); next == inName {
			return next, false
		}
		return inServed, false
	}
	return unknownContextOf(name), false
}

// bodyContextOf is contextOf for requests. Members of all dialects share one table.
func (l *textLister) bodyContextOf(name []byte) (textContext, bool) {
	switch string(name) {
	case "system", "messages", "input", "instructions", "prediction":
		return inBlock, true
	case "prompt":
		return inPrompt, true
	case "suffix":
		return inPlain, true
	case "context_management":
		return inManagement, true
	case "text": // the format of the answer
		if l.dialect == dialect.Responses || l.dialect == dialect.InputTokens {
			return inStructure, true
		}
	case "model", "metadata", "stop", "stop_sequences", "service_tier", "inference_geo", "speed", "thinking",
		"output_config", "output_format", "anthropic_version", "anthropic_beta", "betas", "cache_control",
		"diagnostics",
		"fallback_credit_token", "container", "mcp_servers", "fallbacks", "compaction", "tools", "tool_choice",
		"functions", "function_call", "response_format", "reasoning", "reasoning_effort", "verbosity", "modalities",
		"audio", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options",
		"include", "previous_response_id", "conversation", "truncation", "stream_options", "moderation",
		"web_search_options", "logit_bias", "encoding_format", "multi_agent":
		return inStructure, true
	}
	return unknownContextOf(name), false
}

// answerContextOf is contextOf for answers. What they repeat of the request is not text.
func answerContextOf(name []byte) (textContext, bool) {
	switch string(name) {
	case "content", "output":
		return inBlock, true
	case "choices":
		return inChoice, true
	}
	return inStructure, true
}

// eventContextOf is contextOf for events of Messages and Responses.
func (l *textLister) eventContextOf(name []byte) (textContext, bool) {
	switch string(name) {
	case "type", "index", "output_index", "content_index", "summary_index", "command_index":
		return inName, false
	case "message", "response":
		return inAnswer, true
	case "content_block", "item", "part":
		return inBlock, true
	case "delta":
		if l.dialect == dialect.Messages {
			return inDelta, true
		}
		return inPlain, true
	case "text", "refusal", "arguments", "input", "code", "command", "diff", "transcript":
		return inPlain, true
	case "partial_image_b64":
		return inBinary, true
	case "output":
		return inUnknown, true
	case "logprobs":
		return inServed, true
	}
	return inStructure, false
}

func deltaContextOf(name []byte) (textContext, bool) {
	switch string(name) {
	case "text":
		return inPlain, true
	case "partial_json":
		return inArguments, true
	case "thinking", "content", "signature", "encrypted_content":
		return inSigned, true
	case "stop_reason", "stop_sequence", "container", "citation":
		return inStructure, true
	}
	return unknownContextOf(name), false
}

func choiceContextOf(name []byte) (textContext, bool) {
	switch string(name) {
	case "message", "delta":
		return inBlock, true
	case "text":
		return inPlain, true
	case "logprobs":
		return inServed, true
	}
	return unknownContextOf(name), false
}

// blockContextOf is contextOf for content.
func (l *textLister) blockContextOf(name []byte) (textContext, bool) {
	switch string(name) {
	case "type", "role", "id", "name", "status", "model", "phase", "detail", "format",
		"media_type", "mime_type", "mimeType", "tool_name", "server_name", "server_label",
		"namespace", "execution", "stop_reason", "finish_reason", "error_code", "file_type", "retrieved_at",
		"page_age", "output_format", "quality", "size", "background":
		return inName, true
	case "tools", "tool", "tool_references", "caller", "pending_safety_checks", "acknowledged_safety_checks",
		"cache_control", "prompt_cache_breakpoint", "outcome":
		return inStructure, true
	case "content", "output", "summary", "function", "custom", "function_call", "file",
		"results", "outputs", "thinking_blocks", "reasoning_details":
		return inBlock, true
	case "tool_calls":
		return inCall, true
	case "source", "audio", "input_audio", "inline_data":
		return inMedia, true
	case "text", "thinking", "refusal", "title", "context", "reasoning", "reasoning_content",
		"transcript", "filename", "code", "data", "result", "error", "reason",
		"stdout", "stderr", "logs", "revised_prompt":
		return inPlain, true
	case "input", "attributes":
		return inFreeForm, true
	case "arguments":
		return inArguments, true
	case "action", "actions", "operation":
		return inAction, true
	case "environment":
		return inEnvironment, true
	case "image_url", "url", "file_url", "document_url", "current_url":
		return inLink, true
	case "file_data":
		return inFile, true
	case "blob", "b64_json":
		return inBinary, true
	case "citations", "annotations":
		if l.answer {
			return inStructure, true
		}
		return inCitation, true
	case "logprobs":
		return inServed, true
	}
	if next := unknownContextOf(name); next == inSigned {
		return next, true
	}
	return unknownContextOf(name), false
}

// unknownContextOf is contextOf for data that the dialects do not define. Names that
// mean structure in every other place mean it here too.
func unknownContextOf(name []byte) textContext {
	switch string(name) {
	case "type", "id", "role", "name", "status", "media_type", "mime_type", "mimeType", "model", "index", "object",
		"tool_name", "server_name", "server_label", "finish_reason", "native_finish_reason", "stop_reason":
		return inName
	case "cache_control":
		return inStructure
	case "signature", "thought_signature", "fingerprint":
		return inSigned
	case "blob":
		return inBinary
	}
	s := string(name)
	switch {
	case strings.HasSuffix(s, "_id"), strings.HasSuffix(s, "_ids"):
		return inName
	case strings.HasPrefix(s, "encrypted_"):
		return inSigned
	}
	return inUnknown
}
