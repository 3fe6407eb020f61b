package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// failure is an answer that is made here.
func failure(id []byte, code int, why string) []byte {
	e := append([]byte(`{"code":`), strconv.Itoa(code)...)
	e = append(e, `,"message":`...)
	e, _ = jsontext.AppendQuote(e, strings.ToValidUTF8(why, "?"))
	return mcp.Message{ID: id, Error: append(e, '}')}.Line()
}

// heard says how far a request came that was answered here.
type heard int

const (
	// maybe: the server may have carried it out.
	maybe heard = iota
	// never: it did not reach the server.
	never
)

// maxOwn is how many answers made here are remembered for Unanswered.
const maxOwn = 1024

// fail answers a request in the server's place.
func (c *Conn) fail(f *flight, code int, how heard, why string) {
	if f.ctx.Err() != nil {
		return
	}
	err := errors.New(why)
	if how == never {
		err = fmt.Errorf("%s: %w", why, holdfast.ErrNotStarted)
	}
	c.mu.Lock()
	if len(c.order) >= maxOwn {
		delete(c.own, c.order[0])
		c.order = c.order[1:]
	}
	c.own[f.key], c.order = err, append(c.order, f.key)
	c.mu.Unlock()
	c.forget(f)
	c.emit(f.ctx, failure(f.ID, code, why))
}

// Unanswered returns why the answer that was read under id is the connection's
// own, and nil where it is the server's. holdfast.ErrNotStarted is in its chain
// where the server has provably not been asked. It tells once.
func (c *Conn) Unanswered(id []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := mcp.IDKey(id)
	err := c.own[key]
	delete(c.own, key)
	return err
}

// statusText says what a status means to whoever asked.
func statusText(status int) string {
	name := fmt.Sprintf("HTTP %d %s", status, http.StatusText(status))
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "did not accept the credential (" + strings.TrimSpace(name) + ")"
	case status >= 300 && status < 400:
		return "redirects to elsewhere, which is not followed (" + strings.TrimSpace(name) + ")"
	}
	return "answered " + strings.TrimSpace(name)
}

// mediaType is a response's content type without its parameters.
func mediaType(h http.Header) string {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// trimLine makes one line of a JSON text, without a byte order mark.
func trimLine(raw []byte) []byte {
	return bytes.TrimPrefix(mcp.ReplaceLineEnds(raw), []byte("\xEF\xBB\xBF"))
}

// bareError returns the JSON-RPC error of an answer that has no id, as servers
// give where they could not read one, or nil.
func bareError(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '{' || !jsontext.Value(raw).IsValid() {
		return nil
	}
	fs := mcp.Fields(raw)
	if id := fs["id"]; id != nil && string(id) != "null" {
		return nil
	}
	e := fs["error"]
	if _, ok := mcp.Text(mcp.Get(e, "message")); !ok {
		return nil
	}
	if _, err := strconv.Atoi(string(mcp.Get(e, "code"))); err != nil {
		return nil
	}
	// The whole is judged as any answer is: its depth, above all.
	if _, err := mcp.Parse(mcp.Message{ID: []byte("0"), Error: e}.Line()); err != nil {
		return nil
	}
	return e
}

// room is one stream's leave to hold a message above smallMessage.
type room struct {
	c    *Conn
	ctx  context.Context
	held bool
}

func (c *Conn) room(ctx context.Context) *room { return &room{c: c, ctx: ctx} }

// need waits until n bytes may be held.
func (r *room) need(n int) error {
	if n <= smallMessage || r.held {
		return nil
	}
	select {
	case r.c.big <- struct{}{}:
		r.held = true
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

func (r *room) free() {
	if r.held {
		r.held = false
		<-r.c.big
	}
}

// readBody reads at most one message.
func readBody(r io.Reader, need func(int) error) ([]byte, error) {
	buf := make([]byte, 0, 4<<10)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		if err := need(cap(buf)); err != nil {
			return nil, err
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > mcp.MaxLine:
			return nil, errLong
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}

// minSecret is how long a header's value must be to be looked for; shorter
// ones stand in too much that is none.
const minSecret = 8

// secretsOf returns what must not come back: each value, and what follows its
// scheme ("Bearer").
func secretsOf(h map[string]holdfast.Secret) []string {
	var found []string
	for _, s := range h {
		whole := s.Reveal()
		_, bare, _ := strings.Cut(whole, " ")
		for _, v := range []string{whole, strings.TrimSpace(bare)} {
			if len(v) >= minSecret {
				found = append(found, v)
			}
		}
	}
	return found
}

// inJSON returns secrets as they would stand in a JSON string.
func inJSON(secrets []string) [][]byte {
	var found [][]byte
	for _, s := range secrets {
		if q, err := jsontext.AppendQuote(nil, s); err == nil {
			found = append(found, q[1:len(q)-1])
		}
	}
	return found
}

// inText returns what takes secrets out of a text for people: as they are, in
// JSON, in a JSON pointer, and in both.
func inText(secrets []string) *strings.Replacer {
	pointer := strings.NewReplacer("~", "~0", "/", "~1")
	var pairs []string
	for _, s := range secrets {
		for _, form := range []string{s, pointer.Replace(s)} {
			pairs = append(pairs, form, masked)
			for _, q := range inJSON([]string{form}) {
				pairs = append(pairs, string(q), masked)
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

const masked = "REDACTED"

// clean returns a message of the server's as the reader gets it: without the
// credentials that it was sent, and its errors as Mask leaves them. A server
// that means to give them away finds other ways; one that repeats what it
// could not use does not hand them to an agent. The line may share m's memory.
func (c *Conn) clean(m mcp.Message) []byte {
	if m.Error != nil && c.Mask != nil {
		m.Error = c.maskError(m.Error)
		m.Raw = nil
	}
	line := m.Raw
	if line == nil {
		line = m.Line()
	}
	for _, s := range c.secrets {
		if bytes.Contains(line, s) {
			line = scrub(line, s)
		}
	}
	return line
}

// scrub takes a secret out of the strings of a JSON text.
func scrub(line, secret []byte) []byte {
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); {
		if line[i] != '"' {
			out = append(out, line[i])
			i++
			continue
		}
		end := i + 1
		for end < len(line) && line[end] != '"' {
			if line[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(line))
		out = append(out, bytes.ReplaceAll(line[i:end], secret, []byte(masked))...)
		i = end
	}
	return out
}

// maskError masks the texts of an error: its message, and its data where that
// is still JSON after.
func (c *Conn) maskError(e []byte) []byte {
	if s, ok := mcp.Text(mcp.Get(e, "message")); ok {
		e = c.replace(e, "message", []byte(s), true)
	}
	switch data := mcp.Get(e, "data"); {
	case data == nil:
	case data[0] == '"':
		s, _ := mcp.Text(data)
		e = c.replace(e, "data", []byte(s), true)
	default:
		e = c.replace(e, "data", data, false)
	}
	return e
}

// replace sets one member of an error to its masked text.
func (c *Conn) replace(e []byte, name string, was []byte, quote bool) []byte {
	now := c.Mask(bytes.Clone(was))
	if bytes.Equal(now, was) {
		return e
	}
	if quote || !jsontext.Value(now).IsValid() {
		if !quote {
			now = []byte(masked)
		}
		now, _ = jsontext.AppendQuote(nil, bytes.ToValidUTF8(now, []byte("?")))
	}
	out, err := mcp.Set(e, trimLine(now), name)
	if err != nil {
		return fmt.Appendf(nil, `{"code":%d,"message":%q}`, errorcode.Refused, masked)
	}
	return out
}

// said is a text for people in which the server, or the way to it, had a word:
// without a credential, and bounded.
func (c *Conn) said(s string) string {
	s = c.hidden.Replace(s)
	if c.Mask != nil {
		s = string(c.Mask([]byte(s)))
	}
	if len(s) > 256 {
		s = s[:256]
	}
	return strings.ToValidUTF8(s, "?")
}

// clip is said on one line, for the log.
func (c *Conn) clip(s string) string { return strconv.QuoteToGraphic(c.said(s)) }
