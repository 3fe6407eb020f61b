// Package credential reads what Holdfast adds to requests, from files, variables and commands.
package credential

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

const (
	// CommandTimeout bounds a command that prints a credential, and
	// credentialFor is how long what it printed is used.
	CommandTimeout = 5 * time.Second
	credentialFor  = time.Minute
	// maxCredential bounds a value, in bytes.
	maxCredential = 16 << 10
)

// Source is where one credential is: a file, an environment variable, or a command that prints it.
type Source struct {
	File    string
	Env     string
	Command []string
}

// Text returns the source as a row of the allowlist carries it: enough to read the
// value by, so that an exchange that began before a reload still can.
func (s Source) Text() string {
	switch {
	case s.File != "":
		return "file:" + s.File
	case s.Env != "":
		return "env:" + s.Env
	}
	b, err := json.Marshal(s.Command)
	if err != nil {
		return ""
	}
	return "command:" + string(b)
}

// DescribeSource is what messages call a source: the command's words may be
// secrets.
func DescribeSource(source string) string {
	kind, what, _ := strings.Cut(source, ":")
	switch kind {
	case "file":
		return "the file " + what
	case "env":
		return "the variable " + what
	}
	return "the command"
}

// Reader are the values that Holdfast adds to requests (D23). They are read
// again at each use; what a command printed is used for a minute. The zero value
// knows none.
type Reader struct {
	mu      sync.Mutex
	printed map[string]*printing         // guarded by mu; by source
	known   map[string][]holdfast.Secret // guarded by mu; the newest values of each source
	seen    map[string]bool              // guarded by mu; sources that were read
	all     []holdfast.Secret            // guarded by mu; those of known and what may be told of them, each once; never written to
	changes int                          // guarded by mu; how often known changed
}

// printing is one run of a command, shared by all that want its value.
type printing struct {
	done  chan struct{}
	at    time.Time
	value holdfast.Secret
	err   error
}

// Read is the credential of a row. The error names the place and never the
// value.
func (c *Reader) Read(ctx context.Context, d *domain.Domain) (holdfast.Secret, error) {
	if d.Credential == nil {
		return holdfast.Secret{}, usage.Errorf("%s has no credential", d.Name)
	}
	source := d.Credential.Source
	value, err := c.Value(ctx, source)
	if err != nil {
		why, hint := usage.Explain(err)
		return holdfast.Secret{}, usage.HintErrorf(hint, "the credential of %s: %s", d.Name, why)
	}
	c.Keep(source, value)
	return value, nil
}

// Value reads the value of one source.
func (c *Reader) Value(ctx context.Context, source string) (holdfast.Secret, error) {
	kind, what, _ := strings.Cut(source, ":")
	switch kind {
	case "env":
		text, ok := os.LookupEnv(what)
		if !ok {
			return holdfast.Secret{}, usage.HintErrorf("set it where the daemon is started", "%s is not set",
				DescribeSource(source))
		}
		return oneLine(source, []byte(text))
	case "file":
		b, err := guard.ReadRegular(what, maxCredential, guard.CheckPrivate(what))
		if err != nil {
			return holdfast.Secret{}, guard.ExplainReadError(what, err)
		}
		return oneLine(source, b)
	case "command":
		var argv []string
		if err := json.Unmarshal([]byte(what), &argv); err != nil || len(argv) == 0 {
			return holdfast.Secret{}, errors.New("its source is no command")
		}
		return c.print(ctx, source, argv)
	}
	return holdfast.Secret{}, errors.New("its source is not known")
}

// oneLine is the first line of what a source holds.
func oneLine(source string, b []byte) (holdfast.Secret, error) {
	first, _, _ := strings.Cut(string(b), "\n")
	text := strings.TrimSuffix(first, "\r")
	if text == "" || len(text) > maxCredential || !HeaderValue().MatchString(text) {
		return holdfast.Secret{}, usage.HintErrorf(
			"put the value there, in one line", "%s does not hold a header's value", DescribeSource(source),
		)
	}
	return holdfast.NewSecret(text), nil
}

// print runs the command, unless it ran within the last minute or runs now. Its
// failure is not kept: the next request tries again.
func (c *Reader) print(ctx context.Context, source string, argv []string) (holdfast.Secret, error) {
	c.mu.Lock()
	p := c.printed[source]
	if p == nil || p.old() {
		p = &printing{done: make(chan struct{})}
		if c.printed == nil {
			c.printed = map[string]*printing{}
		}
		c.printed[source] = p
		go p.run(context.WithoutCancel(ctx), source, argv)
	}
	c.mu.Unlock()
	select {
	case <-p.done:
		return p.value, p.err
	case <-ctx.Done():
		return holdfast.Secret{}, ctx.Err()
	}
}

// old says that the command has ended, and failed or printed too long ago.
func (p *printing) old() bool {
	select {
	case <-p.done:
		return p.err != nil || time.Since(p.at) > credentialFor
	default:
		return false
	}
}

func (p *printing) run(ctx context.Context, source string, argv []string) {
	defer close(p.done)
	p.at = time.Now()
	buf := make([]byte, maxCredential+1)
	defer clear(buf)
	n, err := ReadOutput(ctx, argv, buf, CommandTimeout)
	switch {
	case err != nil:
		why, hint := usage.Explain(err)
		p.err = usage.HintErrorf(hint, "%s %s", DescribeSource(source), why)
	case n > maxCredential:
		p.err = usage.Errorf("%s printed more than %d bytes", DescribeSource(source), maxCredential)
	default:
		p.value, p.err = oneLine(source, buf[:n])
	}
}

// keptValues is how many values of one source are masked: an answer may show one
// that has been replaced.
const keptValues = 4

// Keep registers a value, so that no answer shows it. One that is too short to be
// told from ordinary text is not registered.
func (c *Reader) Keep(source string, value holdfast.Secret) {
	text := StripScheme(value.Reveal())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[source] = true
	if len(text) < MinSecret {
		return
	}
	was := c.known[source]
	if slices.ContainsFunc(was, func(s holdfast.Secret) bool { return s.Reveal() == text }) {
		return
	}
	if c.known == nil {
		c.known = map[string][]holdfast.Secret{}
	}
	now := append(slices.Clone(was), holdfast.NewSecret(text))
	c.known[source] = now[max(0, len(now)-keptValues):]
	var lists [][]holdfast.Secret
	for _, source := range slices.Sorted(maps.Keys(c.known)) {
		for _, v := range c.known[source] {
			lists = append(lists, cleaner.CredentialParts(v.Reveal()))
		}
	}
	c.all = Deduplicate(lists...)
	c.changes++
}

// HasRead says whether a value of the source was read once.
func (c *Reader) HasRead(source string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[source]
}

// ListSecrets are the values known so far, each once, and a number that changes
// with them. It is asked for each request: the slice is made when they change,
// and is nobody's to write to.
func (c *Reader) ListSecrets() ([]holdfast.Secret, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all, c.changes
}

// Deduplicate is all of them, each once.
func Deduplicate(lists ...[]holdfast.Secret) []holdfast.Secret {
	var out []holdfast.Secret
	seen := map[string]bool{}
	for _, list := range lists {
		for _, v := range list {
			if !seen[v.Reveal()] {
				seen[v.Reveal()], out = true, append(out, v)
			}
		}
	}
	return out
}

// MinSecret is the shortest value of a header that is registered by itself, in
// bytes: a shorter one is a version or a name rather than a secret.
const MinSecret = 8

// StripScheme is a header's value without the scheme before it (RFC 9110 section
// 11.4).
func StripScheme(value string) string {
	scheme, rest, ok := strings.Cut(value, " ")
	switch strings.ToLower(scheme) {
	case "bearer", "basic", "token", "apikey", "negotiate", "key":
		if ok {
			return strings.TrimSpace(rest)
		}
	}
	return value
}

// HeaderValue matches the value of a header.
func HeaderValue() *regexp.Regexp {
	return regexp.MustCompile(`^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$`)
}
