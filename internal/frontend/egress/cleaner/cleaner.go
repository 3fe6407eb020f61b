// Package cleaner applies a row's redaction to headers, URLs and bodies: the findings of its engine are masked or
// refused, and the credential that was sent is masked in what comes back.
package cleaner

import (
	"crypto/sha256"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
)

// Cleaner redacts what belongs to one domain: by the domain's engine, and where
// that one does not know the credential that was sent by one that does, so that
// an upstream cannot tell it to the agent (D23).
type Cleaner struct {
	e    *redact.Engine
	echo *redact.Engine // nil where e knows it, or none was sent
	// finder searches bodies and queries for names and addresses; nil for none.
	finder detector.Finder
}

// New returns one that redacts by e.
func New(e *redact.Engine) Cleaner { return Cleaner{e: e} }

// Body redacts a whole body.
func (c Cleaner) Body(contentType string, raw []byte) (redact.Result, error) {
	r, err := c.e.Body(contentType, raw)
	if err != nil || c.echo == nil {
		return r, err
	}
	more, err := c.echo.Body(contentType, r.Out)
	more.Findings = append(r.Findings, more.Findings...)
	return more, err
}

// Text redacts text.
func (c Cleaner) Text(raw []byte) redact.Result {
	r := c.e.Text(raw)
	if c.echo == nil {
		return r
	}
	more := c.echo.Text(r.Out)
	more.Findings = append(r.Findings, more.Findings...)
	return more
}

// Header redacts the fields of a header, and returns a new one.
func (c Cleaner) Header(h http.Header) (http.Header, []redact.Finding) {
	m, found := c.e.Header(h)
	if c.echo != nil {
		var more []redact.Finding
		m, more = c.echo.Header(m)
		found = append(found, more...)
	}
	return maps.Clone(m), found
}

// Stream is text that comes in pieces, through all engines.
type Stream struct {
	parts []*redact.Stream // the first is written to
}

// Stream returns a stream that writes redacted text to w.
func (c Cleaner) Stream(w io.Writer) *Stream {
	if c.echo == nil {
		return &Stream{[]*redact.Stream{c.e.Stream(w)}}
	}
	last := c.echo.Stream(w)
	return &Stream{[]*redact.Stream{c.e.Stream(last), last}}
}

// Write takes more of the text.
func (s *Stream) Write(p []byte) (int, error) { return s.parts[0].Write(p) }

// Close writes what is held.
func (s *Stream) Close() error {
	for _, part := range s.parts {
		if err := part.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Held is how much of what was written may still come out, about.
func (s *Stream) Held() int {
	n := 0
	for _, part := range s.parts {
		n += part.Held()
	}
	return n
}

// Yield lets out what is held, if nothing of it looks like the beginning of
// something to mask.
func (s *Stream) Yield() error {
	for _, part := range s.parts {
		if done, err := part.Yield(); err != nil || !done {
			return err
		}
	}
	return nil
}

// Findings are those of all engines.
func (s *Stream) Findings() []redact.Finding {
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

// findEngine returns one that masks credential and what may be told of it, nil where
// e does it, as of registered secrets, or it is too short to be told from
// ordinary text.
func (s *echoes) findEngine(e *redact.Engine, credential string) *redact.Engine {
	literals := CredentialParts(credential)
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
