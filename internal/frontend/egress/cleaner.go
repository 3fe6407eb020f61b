package egress

import (
	"crypto/sha256"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// cleaner redacts what belongs to one domain: by the domain's engine, and where
// that one does not know the credential that was sent by one that does, so that
// an upstream cannot tell it to the agent (D23).
type cleaner struct {
	e    *redact.Engine
	echo *redact.Engine // nil where e knows it, or none was sent
}

// newCleaner returns one that redacts by e.
func newCleaner(e *redact.Engine) cleaner { return cleaner{e: e} }

// cover returns c for the answer to a request in which credential stood.
func (s *echoes) cover(c cleaner, credential string) cleaner {
	c.echo = s.engine(c.e, credential)
	return c
}

func (c cleaner) body(contentType string, raw []byte) (redact.Result, error) {
	r, err := c.e.Body(contentType, raw)
	if err != nil || c.echo == nil {
		return r, err
	}
	more, err := c.echo.Body(contentType, r.Out)
	more.Findings = append(r.Findings, more.Findings...)
	return more, err
}

func (c cleaner) text(raw []byte) redact.Result {
	r := c.e.Text(raw)
	if c.echo == nil {
		return r
	}
	more := c.echo.Text(r.Out)
	more.Findings = append(r.Findings, more.Findings...)
	return more
}

func (c cleaner) header(h http.Header) (http.Header, []redact.Finding) {
	m, found := c.e.Header(h)
	if c.echo != nil {
		var more []redact.Finding
		m, more = c.echo.Header(m)
		found = append(found, more...)
	}
	return maps.Clone(m), found
}

// stream is text that comes in pieces, through all engines.
type stream struct {
	parts []*redact.Stream // the first is written to
}

func (c cleaner) stream(w io.Writer) *stream {
	if c.echo == nil {
		return &stream{[]*redact.Stream{c.e.Stream(w)}}
	}
	last := c.echo.Stream(w)
	return &stream{[]*redact.Stream{c.e.Stream(last), last}}
}

func (s *stream) Write(p []byte) (int, error) { return s.parts[0].Write(p) }

// Close writes what is held.
func (s *stream) Close() error {
	for _, part := range s.parts {
		if err := part.Close(); err != nil {
			return err
		}
	}
	return nil
}

// held is how much of what was written may still come out, about.
func (s *stream) held() int {
	n := 0
	for _, part := range s.parts {
		n += part.Held()
	}
	return n
}

// yield lets out what is held, if nothing of it looks like the beginning of
// something to mask.
func (s *stream) yield() error {
	for _, part := range s.parts {
		if done, err := part.Yield(); err != nil || !done {
			return err
		}
	}
	return nil
}

// findings are those of all engines.
func (s *stream) findings() []redact.Finding {
	var list []redact.Finding
	for _, part := range s.parts {
		list = append(list, part.Findings().First...)
	}
	return list
}

// maxEchoes bounds how many credentials have an engine of their own.
const maxEchoes = 64

// echoes keeps engines that know one credential each, by its hash.
type echoes struct {
	mu   sync.Mutex
	list map[[32]byte]*redact.Engine // guarded by mu
}

// engine returns one that masks credential and what may be told of it, nil where
// e does it, as of registered secrets, or it is too short to be told from
// ordinary text.
func (s *echoes) engine(e *redact.Engine, credential string) *redact.Engine {
	literals := Told(credential)
	if !slices.ContainsFunc(literals, func(v holdfast.Secret) bool { return !masksWhole(e, v.Reveal()) }) {
		return nil
	}
	key := sha256.Sum256([]byte(credential))
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.list[key]; ok {
		return have
	}
	made, err := redact.New(redact.Options{Literals: literals, Masks: redact.Egress})
	if err != nil {
		made = nil
	}
	if s.list == nil || len(s.list) >= maxEchoes {
		s.list = map[[32]byte]*redact.Engine{}
	}
	s.list[key] = made
	return made
}

// masksWhole says whether e masks all of text as a registered secret.
func masksWhole(e *redact.Engine, text string) bool {
	return slices.ContainsFunc(e.Text([]byte(text)).Findings, func(f redact.Finding) bool {
		return f.Rule == "secret.literal" && f.Length == len(text)
	})
}
