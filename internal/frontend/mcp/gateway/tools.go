package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// Bounds of what a server may list.
const (
	maxTools  = 1000      // names in one session, those that it lists no more too
	maxSchema = 256 << 10 // bytes of each schema of a tool
	maxPages  = 64
	learnFor  = 30 * time.Second
)

// PermissionCall is what the caller of any tool must hold (K2).
const PermissionCall = "mcp:call"

// tool is what the gateway remembers of one listed tool.
type tool struct {
	// structured says that the tool declared an output schema.
	structured bool
	// headers bind its arguments to headers of the request.
	headers []header
}

// tools is what the server has listed and the kernel has seen.
type tools struct {
	mu    sync.Mutex
	known map[string]tool
	// whole says that known is all that the server lists; it falls with
	// every change that the server announces.
	whole bool
	turn  uint64 // announced changes so far
	// shown is every name that the kernel was ever told, since it may keep
	// them.
	shown map[string]bool
	// pages are the names, with their pins, in the pages that the client asked
	// for since it last asked for a first one.
	pages map[string]string
	// learning is held by the one who asks the server.
	learning chan struct{}
}

func newTools() tools {
	return tools{known: map[string]tool{}, shown: map[string]bool{}, learning: make(chan struct{}, 1)}
}

// changed is told when the server says that its tools are others now: what is
// known of any of them may be wrong.
func (t *tools) changed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn++
	t.whole = false
	t.known = map[string]tool{}
}

func (t *tools) epoch() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turn
}

// find returns a tool, and whether asking the server could say more.
func (t *tools) find(name string) (found tool, ok, ask bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok = t.known[name]
	return found, ok, !ok && !t.whole
}

// add takes what the server listed at an epoch. A list from before a change is
// not taken. With whole, nothing else is known any more.
func (t *tools) add(listed map[string]tool, epoch uint64, whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn != epoch {
		return
	}
	if whole {
		t.known, t.whole = map[string]tool{}, true
	}
	maps.Copy(t.known, listed)
}

// show asks whether the kernel may be told of these tools. The names of a list
// that is refused are not counted.
func (t *tools) show(page map[string]tool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := 0
	for name := range page {
		if !t.shown[name] {
			fresh++
		}
	}
	if len(t.shown)+fresh > maxTools {
		return tooManyTools()
	}
	for name := range page {
		t.shown[name] = true
	}
	return nil
}

// before returns what the pages before this one listed; a first page has none.
func (t *tools) before(first bool) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first || len(t.pages) > maxTools {
		t.pages = nil
	}
	return maps.Collect(maps.All(t.pages))
}

// paged keeps what the pages so far listed.
func (t *tools) paged(seen map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pages = seen
}

func tooManyTools() error {
	return &holdfast.Error{Kind: holdfast.KindValue, Why: fmt.Sprintf("the MCP server lists more than %d tools", maxTools)}
}

// listed takes an answer to the client's tools/list and returns the result
// without the tools that are PROHIBITED or not well formed.
func (s *session) listed(ctx context.Context, p params, result []byte, epoch uint64) ([]byte, error) {
	seen := s.tools.before(p.Get("cursor") == nil)
	page, cut, err := s.observe(ctx, result, seen)
	if err != nil {
		return nil, err
	}
	s.tools.paged(seen)
	whole := p.Get("cursor") == nil && mcp.NextCursor(result) == ""
	s.tools.add(page, epoch, whole)
	return cut, nil
}

// learn asks the server for all its tools, where the client calls one that is
// not known. One asks at a time; p is of the call.
func (s *session) learn(ctx context.Context, f *flight, name string, p params) (tool, bool, error) {
	found, ok, ask := s.tools.find(name)
	if !ask {
		return found, ok, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, learnFor, errors.New("the MCP server did not list its tools in time"))
	defer cancel()
	select {
	case s.tools.learning <- struct{}{}:
		defer func() { <-s.tools.learning }()
	case <-ctx.Done():
		return tool{}, false, context.Cause(ctx)
	}
	if found, ok, ask = s.tools.find(name); !ask {
		return found, ok, nil
	}
	all, err := s.sweep(ctx, f, p)
	if err != nil {
		return tool{}, false, err
	}
	found, ok = all[name]
	return found, ok, nil
}

// sweep reads every page of the server's list.
func (s *session) sweep(ctx context.Context, f *flight, p params) (map[string]tool, error) {
	epoch, all, seen, next := s.tools.epoch(), map[string]tool{}, map[string]string{}, ""
	for range maxPages {
		page, err := s.listParams(p, next)
		if err != nil {
			return nil, err
		}
		r, err := s.ask(ctx, f, mcp.Message{Method: "tools/list", Params: page})
		if err != nil {
			return nil, err
		}
		if r.Error != nil {
			return nil, &holdfast.Error{Kind: holdfast.KindOperation, Why: "the MCP server answered tools/list with an error", Hint: "ask tools/list to see it"}
		}
		got, _, err := s.observe(ctx, r.Result, seen)
		if err != nil {
			return nil, err
		}
		s.letGo(f)
		maps.Copy(all, got)
		if next = mcp.NextCursor(r.Result); next == "" {
			s.tools.add(all, epoch, true)
			return all, nil
		}
	}
	return nil, &holdfast.Error{Kind: holdfast.KindValue, Why: fmt.Sprintf("the MCP server lists more than %d pages of tools", maxPages)}
}

// listParams makes the params of our own tools/list. Where the protocol has no
// handshake, they carry what the client's call says of itself.
func (s *session) listParams(call params, cursor string) ([]byte, error) {
	var out mcp.Builder
	if cursor != "" {
		out.Add("cursor", mcp.Quote(cursor))
	}
	if call.stateless {
		meta, err := s.handshake(call)
		if err != nil {
			return nil, err
		}
		out.Add("_meta", meta)
	}
	return out.Bytes(), nil
}

// observe reads one page, tells the kernel, and returns the tools that may be
// called and the page without the others. seen holds the names of the pages
// before with their pins: the second tool of one name is never taken, and the
// kernel hears of one that differs from the first, which has changed then.
func (s *session) observe(ctx context.Context, result []byte, seen map[string]string) (map[string]tool, []byte, error) {
	list := mcp.Get(result, "tools")
	items, err := mcp.Elements(list)
	if err != nil {
		return nil, nil, &holdfast.Error{Kind: holdfast.KindValue, Why: "the MCP server's answer to tools/list has no array of tools"}
	}
	if len(items) > maxTools {
		return nil, nil, tooManyTools()
	}
	names := make([]string, len(items))
	page := map[string]tool{}
	var contracts, again []holdfast.Contract
	for i, item := range items {
		name, c, err := contract(s.Server, item, s.TrustedHints)
		var bound []header
		if err == nil {
			bound, err = headers(c.Schema)
		}
		if was, twice := seen[name]; err == nil && twice {
			if was != c.Pin {
				again = append(again, c)
			}
			err = errors.New("a tool of that name is listed already")
		}
		if err != nil {
			s.odd("a tool of the MCP server was left out", "tool", name[:min(len(name), maxName)], "why", err.Error())
			continue
		}
		seen[name], names[i] = c.Pin, name
		page[name] = tool{structured: c.OutputSchema != nil, headers: bound}
		contracts = append(contracts, c)
	}
	if err := s.tools.show(page); err != nil {
		return nil, nil, err
	}
	hidden, err := s.prohibited(ctx, append(contracts, again...))
	if err != nil {
		return nil, nil, err
	}
	keep := func(i int) bool { return names[i] != "" && !hidden[Boundary(s.Server, names[i])] }
	cut, err := hide(result, list, keep)
	return page, cut, err
}

// prohibited asks the kernel which of the tools an agent must not even see.
func (s *session) prohibited(ctx context.Context, contracts []holdfast.Contract) (map[string]bool, error) {
	hidden := make(map[string]bool, len(contracts))
	for _, c := range contracts {
		hidden[c.Boundary] = true
	}
	if len(contracts) == 0 {
		return hidden, nil
	}
	effective, err := s.Kernel.Observe(ctx, contracts)
	if err != nil {
		return nil, fmt.Errorf("observe the MCP server's tools: %w", err)
	}
	for _, c := range effective {
		if _, ours := hidden[c.Boundary]; ours {
			hidden[c.Boundary] = c.Risk == holdfast.Prohibited
		}
	}
	return hidden, nil
}

// hide returns the result with only the tools that keep accepts.
func hide(result, list []byte, keep func(int) bool) ([]byte, error) {
	kept, err := mcp.KeepElements(list, keep)
	if err != nil || len(kept) == len(list) {
		return result, err
	}
	return mcp.Set(result, kept, "tools")
}

// contract reads one tool as the contract of its boundary. The contract shares
// no memory with item, which is a whole line of the server's.
func contract(server string, item []byte, trusted bool) (string, holdfast.Contract, error) {
	f := mcp.Fields(item)
	name, _ := mcp.Text(f["name"])
	if !nameable(name) {
		return "", holdfast.Contract{}, fmt.Errorf("its name is not 1 to %d bytes", maxName)
	}
	in, out := f["inputSchema"], f["outputSchema"]
	if jsontext.Value(in).Kind() != '{' {
		return name, holdfast.Contract{}, errors.New("its inputSchema is not an object")
	}
	switch jsontext.Value(out).Kind() {
	case '{':
	case 'n', 0:
		out = nil
	default:
		return name, holdfast.Contract{}, errors.New("its outputSchema is not an object")
	}
	if len(in) > maxSchema || len(out) > maxSchema {
		return name, holdfast.Contract{}, fmt.Errorf("one of its schemas has more than %d bytes", maxSchema)
	}
	whole, err := pin(item)
	if err != nil {
		return name, holdfast.Contract{}, err
	}
	before, err := pin(f["description"], in, out, f["annotations"])
	if err != nil {
		return name, holdfast.Contract{}, err
	}
	return name, holdfast.Contract{
		Boundary: Boundary(server, name), Schema: bytes.Clone(in), OutputSchema: bytes.Clone(out),
		Permissions: []string{PermissionCall}, Risk: risk(f["annotations"], trusted),
		Pin: whole, PinBefore: before, About: ownWords(item, f["description"], f["annotations"]), Source: "mcp/" + Segment(server),
	}, nil
}

// ownWords is what people are shown of a tool that has changed.
func ownWords(item, description, hints []byte) []byte {
	rest, err := mcp.Keep(item, func(name string) bool {
		return name != "name" && name != "description" && name != "annotations" && name != "inputSchema" && name != "outputSchema"
	})
	for _, part := range []*[]byte{&description, &hints} {
		if len(*part) == 0 {
			*part = []byte("null")
		}
	}
	out := fmt.Appendf(nil, `{"description":%s,"hints":%s`, description, hints)
	if err == nil && len(mcp.Fields(rest)) > 0 {
		out = fmt.Appendf(out, `,"rest":%s`, rest)
	}
	return append(out, '}')
}

// pin hashes what a tool says of itself (D37): the whole item, since the client
// is shown all of it. Hints are part of it, since a tool that turned from
// destructive to harmless is another tool. Members are sorted and white space
// is dropped; numbers keep their text, so that no two of them meet.
func pin(parts ...[]byte) (string, error) {
	var b []byte
	for _, part := range parts {
		if part == nil {
			part = []byte("null")
		}
		v := jsontext.Value(part).Clone()
		if err := v.Format(jsontext.ReorderRawObjects(true), jsontext.SpaceAfterColon(false)); err != nil {
			return "", fmt.Errorf("hash the tool's description: %w", err)
		}
		b = append(append(b, v...), '\n')
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// risk reads the hints as D37 says. They are the server's own word: only true
// and false count, and a tool that claims both to be read-only and to be
// destructive is taken for the worse.
func risk(hints []byte, trusted bool) holdfast.Risk {
	f := mcp.Fields(hints)
	readOnly, destructive := string(f["readOnlyHint"]) == "true", string(f["destructiveHint"])
	switch {
	case destructive == "true":
		return holdfast.High
	case readOnly && trusted:
		return holdfast.Low
	case readOnly || destructive == "false":
		return holdfast.Medium
	}
	return holdfast.High
}
