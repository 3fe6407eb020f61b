package dialect

import (
	"strconv"

	"github.com/holdfast-dev/holdfast"
)

// Answer is what was understood of an answer so far.
type Answer struct {
	// Model is the one that the provider says has answered; "" for nothing said.
	Model string
	// Usage is what the provider says was used, as State says it.
	Usage Usage
	State State
	// Calls are the tools that the model calls, in the order in which they begin.
	Calls []ToolCall
	// Stop is why the model ended, in the provider's word; "" where it has not. Of
	// several choices it is the first one's.
	Stop string
	// Failure is what the provider says went wrong; nil for nothing.
	Failure *Failure
	// Said is how much of output was seen, in bytes of text; Began says that some of
	// it was, or that the provider says it has begun.
	Said  int64
	Began bool
	// Unread says that part of the answer could not be read, or was more than is
	// kept: there may be calls that are not in Calls, or not whole.
	Unread bool
}

// Usage is what a provider says was used.
type Usage struct {
	holdfast.Tokens
}

// State says how much of an answer's usage is known. The zero value is none of it.
type State uint8

// The states.
const (
	Missing  State = iota // the provider said nothing
	Partial               // input is known, and not all output
	Complete              // the provider said it at the end
	Absurd                // what it said cannot be: below zero, not whole, falling, far above the bound
)

// String is the state as records name it.
func (s State) String() string {
	switch s {
	case Partial:
		return "partial"
	case Complete:
		return holdfast.UsageComplete
	case Absurd:
		return "absurd"
	}
	return "missing"
}

// ToolCall is a tool that the model calls.
type ToolCall struct {
	// ID is the call's in the provider's terms, Name the tool's.
	ID, Name string
	// Arguments are as the model wrote them: JSON, but for tools that take a plain
	// text. They are whole where Complete says so.
	Arguments string
	Complete  bool
	// Server says that the provider runs it itself.
	Server bool
}

// Failure is an error as a provider tells it.
type Failure struct {
	// Type and Code are its words for it, such as "overloaded_error"; Message is for
	// people, at most 256 bytes of it.
	Type, Code, Message string
}

// Event is what one event of a stream is.
type Event uint8

// The kinds of events.
const (
	Other   Event = iota // says nothing that is used by tools: a ping, a beginning, an end
	Text                 // a piece of text
	Call                 // begins a call of a tool, goes on with it, or tells all of it
	Unasked              // brings the usage that Amend asked for, and nothing else
	Failed               // says that the answer broke off
	Unread               // could not be read: it may be anything
)

// What is kept of an answer.
const (
	maxEvent    = 8 << 20
	maxDocument = 16 << 20
	maxCallList = 256
	maxArgs     = 1 << 20 // bytes, of all calls
	maxMessage  = 256
)

// count is an amount of tokens as a provider wrote it.
type count struct {
	n     int64
	there bool
	odd   bool // it is no whole number of at least 0
}

// UnmarshalJSON reads any value: what is no amount is odd.
func (c *count) UnmarshalJSON(b []byte) error {
	*c = count{}
	if string(b) == "null" {
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	c.there, c.odd = true, err != nil || n < 0 || n > maxTokens
	if !c.odd {
		c.n = n
	}
	return nil
}

// used is what a provider said of its usage, over one answer.
type used struct {
	input, read, write, long, output, reasoning int64

	uses  map[string]int64  // of tools that the provider runs, by its word
	words map[string]string // for terms of the price

	there bool // anything was said
	odd   bool
}

// rise takes an amount that can only grow.
func (u *used) rise(into *int64, c count) {
	if !c.there {
		return
	}
	u.there = true
	if c.odd || c.n < *into {
		u.odd = true
		return
	}
	*into = c.n
}
