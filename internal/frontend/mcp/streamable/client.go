package streamable

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
)

// Bounds of what waits for the reader of one session's GET stream before it
// opens.
const (
	maxKept      = 64
	maxKeptBytes = 1 << 20
)

// httpClient is a Client whose messages come by many HTTP requests. It gives
// every request of its client an id of its own and gives the client's bytes
// back with the answer, so that requests which know nothing of each other meet
// in one core.
type httpClient struct {
	in   chan mcp.Message
	gone chan struct{} // closed by Close
	// session says that the client has one, and so a stream for what
	// belongs to no request.
	session bool
	meter   *meter
	load    *load // the group's; nil bounds nothing

	mu     sync.Mutex
	closed bool
	last   uint64
	asked  map[string]*asked // by the key of the id we gave
	ids    map[string]*asked // by the key of the client's id; sessions only
	loose  *exchange         // the open GET stream, or nil
	kept   [][]byte          // what waits for one
	bytes  int               // of kept
}

// asked is one request without an answer.
type asked struct {
	id, own []byte // the client's id, and ours
	key     string // of own
	theirs  string // the key of id
	method  string
	x       *exchange // nil once its reader has gone
}

func newHTTPClient(session bool, whole *meter) *httpClient {
	return &httpClient{in: make(chan mcp.Message), gone: make(chan struct{}), session: session,
		meter: &meter{most: maxClient, whole: whole},
		asked: map[string]*asked{}, ids: map[string]*asked{}}
}

// Load returns what the client's requests count for.
func (c *httpClient) Load() gateway.Load { return c.load }

// Next returns the next message of any HTTP request.
func (c *httpClient) Next() (mcp.Message, error) {
	select {
	case <-c.gone:
		return mcp.Message{}, io.EOF
	default:
	}
	select {
	case m := <-c.in:
		return m, nil
	case <-c.gone:
		return mcp.Message{}, io.EOF
	}
}

// Close ends every stream; what has no answer gets one that says so.
func (c *httpClient) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	close(c.gone)
	for _, a := range c.asked {
		if a.x != nil {
			a.x.abandon(a)
		}
	}
	if c.loose != nil {
		c.loose.finish()
	}
	c.asked, c.ids, c.kept = nil, nil, nil
	return nil
}

// errTwice says that an id is in flight already.
func errTwice(id []byte) error {
	return aboutID(bad(mcp.CodeInvalidRequest, "this id is already in flight", "give every request an id of its own"), id)
}

// errEnded is a client whose core has ended.
var errEnded = errors.New("the MCP session has ended")

// ask takes the requests among ms as asked by one exchange, and gives them our
// ids, in place; all of them or none.
func (c *httpClient) ask(x *exchange, ms []mcp.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errEnded
	}
	seen := map[string]bool{}
	for _, m := range ms {
		if !m.IsRequest() {
			continue
		}
		if c.session && (c.ids[m.Key()] != nil || seen[m.Key()]) {
			return errTwice(m.ID)
		}
		seen[m.Key()] = true
	}
	for i, m := range ms {
		if m.IsRequest() {
			ms[i].ID = c.add(x, m)
		}
	}
	return nil
}

// add gives a request its id. The caller holds mu.
func (c *httpClient) add(x *exchange, m mcp.Message) []byte {
	c.last++
	own := strconv.AppendUint(nil, c.last, 10)
	// The message's memory may be large; what is kept of it is not.
	a := &asked{id: bytes.Clone(m.ID), own: own, key: mcp.IDKey(own), theirs: m.Key(), method: m.Method, x: x}
	c.asked[a.key] = a
	if c.session {
		c.ids[a.theirs] = a
	}
	x.await()
	return own
}

// drop forgets a request. The caller holds mu.
func (c *httpClient) drop(a *asked) {
	delete(c.asked, a.key)
	if c.ids[a.theirs] == a {
		delete(c.ids, a.theirs)
	}
}

// ownID returns our id of a request in flight by the client's, nil for none.
func (c *httpClient) ownID(id []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.ids[mcp.IDKey(id)]; a != nil {
		return a.own
	}
	return nil
}

// push hands the core a message. It waits until the core takes it, which is
// soon, since a core never waits for anybody before it reads on.
func (c *httpClient) push(m mcp.Message) error {
	select {
	case c.in <- m:
		return nil
	case <-c.gone:
		return errEnded
	}
}

// leave says that an exchange's reader has gone, and returns the ids of what
// it still waits for.
func (c *httpClient) leave(x *exchange) [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loose == x {
		c.loose = nil
	}
	var left [][]byte
	for _, a := range c.asked {
		if a.x == x {
			a.x = nil
			left = append(left, a.own)
		}
	}
	return left
}

// hear makes an exchange the one stream for what belongs to no request. The
// newest wins: the one before may be of a connection that is long dead.
func (c *httpClient) hear(x *exchange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errEnded
	}
	if c.loose != nil {
		c.loose.finish()
	}
	c.loose = x
	for _, line := range c.kept {
		x.put(event{line: line})
	}
	c.kept, c.bytes = nil, 0
	return nil
}

// Write gives a line to whom it belongs. It never waits.
func (c *httpClient) Write(to string, line []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return gateway.ErrPeerGone
	}
	// In an event stream, and only there, a line end is no white space.
	line = mcp.ReplaceLineEnds(line)
	a := c.asked[to]
	if a == nil {
		c.spare(line)
		return nil
	}
	body, final := a.restore(line)
	if !final {
		if a.x == nil {
			c.spare(body)
		} else {
			a.x.put(event{line: body})
		}
		return nil
	}
	c.drop(a)
	if a.x != nil {
		a.x.put(event{line: body, final: true})
	}
	return nil
}

// spare gives a line that belongs to no open exchange to the GET stream, or
// keeps it for one; the oldest goes first. The caller holds mu.
func (c *httpClient) spare(line []byte) {
	switch {
	case c.loose != nil:
		c.loose.put(event{line: line})
	case !c.session || len(line) > maxKeptBytes || isAnswer(line):
		// There is no stream for it.
	default:
		c.kept = append(c.kept, line)
		c.bytes += len(line)
		for len(c.kept) > maxKept || c.bytes > maxKeptBytes {
			c.bytes -= len(c.kept[0])
			c.kept = c.kept[1:]
		}
	}
}

// isAnswer says whether a line answers a request, which the client that has
// gone does not wait for.
func isAnswer(line []byte) bool {
	m, err := mcp.Parse(line)
	return err != nil || m.IsResponse()
}

// envelopeHead is how every line of a core begins that has an id.
const envelopeHead = `{"jsonrpc":"2.0","id":`

// restore puts the client's own id into a line that belongs to a request, and
// says whether it is the answer.
func (a *asked) restore(line []byte) (restored []byte, final bool) {
	if rest, ok := bytes.CutPrefix(line, []byte(envelopeHead)); ok {
		rest, ok = bytes.CutPrefix(rest, a.own)
		if ok && (bytes.HasPrefix(rest, []byte(`,"result":`)) || bytes.HasPrefix(rest, []byte(`,"error":`))) {
			line = bytes.Join([][]byte{[]byte(envelopeHead), a.id, rest}, nil)
			return a.subscribed(line, "result"), true
		}
	}
	if m, err := mcp.Parse(line); err == nil && m.IsResponse() && m.Key() == a.key {
		m.ID = a.id
		return a.subscribed(m.Line(), "result"), true
	}
	return a.subscribed(line, "params"), false
}

// subscribed puts the client's id in the place where a message names its
// subscription. Only messages of subscriptions are looked into.
func (a *asked) subscribed(line []byte, within string) []byte {
	if a.method != "subscriptions/listen" || mcp.Get(line, within, "_meta", mcp.MetaSubscription) == nil {
		return line
	}
	out, err := mcp.Set(line, a.id, within, "_meta", mcp.MetaSubscription)
	if err != nil {
		return line
	}
	return out
}
