package main

import (
	"bytes"
	"io"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/cli/filter"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/config/register"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
)

func redactCommand() command {
	return command{name: "redact", about: "mask secrets and personal data in a text", run: redactText, help: `
Mask secrets and personal data: addresses, cards, keys, tokens, passwords,
numbers that name a person. JSON stays JSON, and so does JSON in lines; anything
else is taken as text. A text of any size is written on while it comes, but for
what may be part of a secret; a JSON document has at most 64 MiB, and so has what
is compressed or in UTF-16.

    holdfast redact [flags] [FILE | -]

What the section redact of the configuration registers is masked too, and what
its detector finds; --verbose names the configuration. One that does not load,
a source of it that cannot be read, or a detector that does not start, is an
error, and nothing is shown. The flags add to it:

    --register SOURCE    also mask your own secrets, in any encoding; may be
                         given more than once. A SOURCE says where they are:
                         file:PATH has one in each line, whole:PATH is one,
                         env:NAME is a variable, cmd:COMMAND prints one in
                         each line
    --masks STYLE        ledger, the default; egress, the shorter masks of what
                         leaves; pseudonyms, the same for the same value, such
                         as <email:7f3a91c2>, which needs --key-file
    --key-file FILE      the key of pseudonyms: a file whose first line has at
                         least 16 random bytes
    --probable KINDS     deprecated, and without effect: name a program for
                         names and addresses under redact: detector
    --json               what was found, where, and the text, as JSON; the
                         first 1000 findings, and how many there are

    $ echo 'mail ann@example.com, password: hunter22' | holdfast redact
    mail [email hidden], password: [secret redacted]
`}
}

// repeated is a flag that may be given more than once.
type repeated []string

// String implements flag.Value.
func (r *repeated) String() string { return strings.Join(*r, " ") }

// Set implements flag.Value.
func (r *repeated) Set(s string) error { *r = append(*r, s); return nil }

// redactFlags are what the flags of redact say.
type redactFlags struct {
	register        repeated
	masks, key, may string
}

func redactText(a *app, args []string) error {
	var f redactFlags
	fs := a.flags("redact")
	fs.Var(&f.register, "register", "")
	fs.StringVar(&f.masks, "masks", "ledger", "")
	fs.StringVar(&f.key, "key-file", "", "")
	fs.StringVar(&f.may, "probable", "", "")
	rest, err := a.parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	if f.may != "" {
		a.say("--probable is deprecated and has no effect: name a program under redact: detector in the configuration")
	}
	e, stop, err := a.makeRedaction(f)
	if err != nil {
		return err
	}
	defer stop()
	r, done, err := a.opened(rest)
	if err != nil {
		return err
	}
	defer done()
	var kept bytes.Buffer
	work := filter.NewRedaction(e, r, a.out)
	if a.json {
		work = filter.NewRedaction(e, &atMost{r: r, left: maxFilter}, &kept)
	}
	if _, err := a.await(func() ([]byte, error) { return nil, work.Run(maxFilter) }); err != nil {
		return err
	}
	if !a.json {
		return nil
	}
	rules := work.Rules()
	return a.printJSON(map[string]any{"text": string(bytes.ToValidUTF8(kept.Bytes(), []byte("\uFFFD"))), "findings": append([]redact.Finding{}, work.Found()...),
		"counts": work.Counts(), "rules": append([]string{}, rules.Rules()...), "contains_pii": rules.PII()})
}

// opened is the file that args name, or standard input.
func (a *app) opened(args []string) (io.Reader, func(), error) {
	if len(args) == 0 || args[0] == "-" {
		return a.in, func() {}, nil
	}
	f, err := openRegular(args[0])
	if err != nil {
		return nil, nil, err
	}
	return f, func() { _ = f.Close() }, nil
}

// atMost fails where there is more than is left.
type atMost struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (m *atMost) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if m.left -= int64(n); m.left < 0 {
		return 0, &holdfast.Error{Kind: holdfast.KindPayloadTooLarge, Why: "--json holds the whole text, and this has more than " + bytesOf(maxFilter), Hint: "leave --json out, or give it in parts"}
	}
	return n, err
}

// makeRedaction makes the redaction that the configuration and the flags ask for. stop ends it.
func (a *app) makeRedaction(f redactFlags) (texts *detector.Records, stop func(), err error) {
	e, l, err := a.makeEngine(f)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range l.Deprecated {
		a.say("%s", w)
	}
	if l.Config.Redact.Detector == nil {
		return detector.NewRecords(e, nil), func() {}, nil
	}
	d, err := a.startDetector(l.Config.Redact.Detector)
	if err != nil {
		return nil, nil, err
	}
	return detector.NewRecords(e, d), d.Close, nil
}

// makeEngine makes the engine that the configuration and the flags ask for.
func (a *app) makeEngine(f redactFlags) (*redact.Engine, *config.Loaded, error) {
	o, err := f.options()
	if err != nil {
		return nil, nil, err
	}
	from, err := f.listSources()
	if err != nil {
		return nil, nil, err
	}
	path, l, err := a.loads()
	if err != nil {
		return nil, nil, err
	}
	given := l.Config.Redact
	var m redact.Memory
	if f.key != "" {
		keys, err := register.Read(a.ctx, &m, []register.Source{register.SharedFile(f.key)})
		if err != nil {
			return nil, nil, err
		}
		o.Key = keys[0]
	}
	if o.Literals, err = register.Read(a.ctx, &m, append(from, given.Register...)); err != nil {
		return nil, nil, err
	}
	e, err := redact.New(o)
	if err != nil {
		return nil, nil, err
	}
	if why := or(m.Trouble(), e.Trouble()); why != "" {
		a.say("%s", why)
	}
	if a.verbose {
		a.say("masking what %s registers (%s) and what the flags do (%s)", or(path,
			"no configuration"), counted(given.Register), counted(from))
	}
	return e, l, nil
}

// startDetector starts the detector of the configuration and waits until it is ready.
func (a *app) startDetector(c *config.DetectorConfig) (*detector.Detector, error) {
	d, err := c.Start(nil)
	if err != nil {
		return nil, err
	}
	_, err = a.await(func() ([]byte, error) { return nil, d.WaitReady(a.ctx) })
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func counted(from []register.Source) string {
	return story.Count(len(from), "source", "sources")
}

// options are the masks and the kinds that the flags name.
func (f *redactFlags) options() (o redact.Options, err error) {
	switch f.masks {
	case "ledger":
	case "egress":
		o.Masks = redact.Egress
	case "pseudonyms":
		o.Masks = redact.Pseudonyms
	default:
		return o, usage("take ledger, egress or pseudonyms", "there are no masks %q", f.masks)
	}
	if (f.key != "") != (o.Masks == redact.Pseudonyms) {
		return o, usage("make one with `openssl rand -hex 32 > FILE`", "--key-file and --masks pseudonyms belong together")
	}
	return o, nil
}

// listSources are where the flags say that secrets are.
func (f *redactFlags) listSources() ([]register.Source, error) {
	var from []register.Source
	for _, text := range f.register {
		r, err := register.Parse(text)
		if err != nil {
			return nil, err
		}
		from = append(from, r)
	}
	return from, nil
}
