package config

import (
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/config/register"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
)

// RedactConfig is what is masked beside what its own form tells: in the
// ledger, the log, on pages and in notices alike. It is read at the start.
type RedactConfig struct {
	Register []register.Source `yaml:"register" doc:"where secrets are that are masked wherever they stand, in any encoding; no value stands here"`
	Detector *DetectorConfig   `yaml:"detector" doc:"a program that finds names and addresses in the texts of records (default: none)"`
	Probable []string          `yaml:"probable" enum:"secrets,phones,names,addresses" doc:"deprecated, and without effect: detector replaces it"`
}

// DetectorConfig is a program that is kept running and finds names and addresses (package detector). It sees the texts.
// The configuration of records, a row of the allowlist and a contract may name one.
type DetectorConfig struct {
	Command []string `yaml:"command" need:"yes" doc:"program and arguments: it reads {\"id\":1,\"text\":\"...\"} in each line and answers {\"id\":1,\"findings\":[{\"start\":0,\"end\":5,\"kind\":\"name\"}]}, in bytes of UTF-8"`
	Timeout Duration `yaml:"timeout" doc:"bounds one answer, 10ms to 30s (default 1s); without an answer the whole text of a record is masked, and traffic is refused"`
	At      string   `yaml:"-"`
}

// Start starts the program, or returns nil if c is nil. log gets no text.
func (c *DetectorConfig) Start(log *slog.Logger) (*detector.Detector, error) {
	if c == nil {
		return nil, nil
	}
	return detector.Start(detector.Options{Command: c.Command, Timeout: time.Duration(c.Timeout), Log: log})
}

// makeSpec returns the program as a row or a contract shares it with others.
func (c *DetectorConfig) makeSpec() detector.Spec {
	return detector.Spec{Command: c.Command, Timeout: time.Duration(c.Timeout)}
}

// specText returns the text of the spec, "" if c is nil.
func (c *DetectorConfig) specText() string {
	if c == nil {
		return ""
	}
	return c.makeSpec().Text()
}

// ListDetectors returns the programs that search the traffic of rows and contracts.
func (c *Config) ListDetectors() (list []detector.Spec) {
	for _, name := range slices.Sorted(maps.Keys(c.Egress.Domains)) {
		if d := c.Egress.Domains[name].Redact.Detector; d != nil {
			list = append(list, d.makeSpec())
		}
	}
	for _, b := range c.Boundaries {
		if b.Redact != nil && b.Redact.Detector != nil {
			list = append(list, b.Redact.Detector.makeSpec())
		}
	}
	return list
}

// checkDetector checks what names an external detector.
func (k *checker) checkDetector(c *DetectorConfig) {
	if c == nil {
		return
	}
	k.command(c.At, c.Command)
	if t := time.Duration(c.Timeout); t != 0 && (t < detector.MinTimeout || t > detector.MaxTimeout) {
		k.fail(c.At, "leave timeout out for "+detector.DefaultTimeout.String(),
			"redact.detector: invalid timeout: expected %s to %s",
			detector.MinTimeout, detector.MaxTimeout)
	}
}

func (k *checker) redact(c *Config) {
	k.checkDetector(c.Redact.Detector)
	if c.Redact.Probable != nil {
		k.noteDeprecated(k.at("redact.probable"), "redact: probable", "name a program under redact: detector")
	}
	for _, r := range c.Redact.Register {
		n := 0
		for _, given := range []bool{r.File != "", r.Env != "", r.Command != nil} {
			if given {
				n++
			}
		}
		switch {
		case n != 1:
			k.fail(r.At, "write {file: NAME}, {env: NAME} or {command: [PROGRAM, ARGS]}", "a source of secrets needs one of file, env and command")
		case r.Whole && r.File == "":
			k.fail(r.At, "", "whole belongs to a file")
		case r.Env != "" && !register.IsEnvName(r.Env):
			k.fail(r.At, "env names a variable and holds no value", "redact.register: that is no name of an environment variable")
		case r.Command != nil:
			k.command(r.At, r.Command)
		}
	}
	if len(c.Redact.Register) > register.MaxSources {
		k.fail(k.at("redact.register"), "", "at most %d sources of secrets can be registered", register.MaxSources)
	}
}

// registerFiles makes the names of files absolute, and looks at them: what they
// hold is read at the start, who could read it matters now.
func (r *reading) registerFiles(c *Config) {
	for i := range c.Redact.Register {
		from := &c.Redact.Register[i]
		if from.File == "" {
			continue
		}
		from.File = r.abs(from.File)
		f, err := guard.OpenRegular(from.File, guard.CheckPrivate(from.File))
		if err != nil {
			r.unreadable(from.At, from.File, err)
			continue
		}
		_ = f.Close() // nothing was written
	}
}

// redactChanges returns a sentence if now asks for another redaction engine than the one made of was, or "".
func redactChanges(was, now *Config) string {
	if !reflect.DeepEqual(withoutPlaces(now.Redact), withoutPlaces(was.Redact)) {
		return "the section redact of the configuration has changed: it takes effect when the daemon is started again"
	}
	if !slices.Equal(ownSources(now), ownSources(was)) {
		return "the configuration names other secrets of headers, of the webhook or of egress than at the start: the record, the log and the pages mask them by what they look like only, until the daemon is started again"
	}
	return ""
}

// withoutPlaces is c without the lines it stood in.
func withoutPlaces(c RedactConfig) RedactConfig {
	var out RedactConfig
	if d := c.Detector; d != nil {
		out.Detector = &DetectorConfig{Command: d.Command, Timeout: d.Timeout}
	}
	for _, r := range c.Register {
		r.At = ""
		out.Register = append(out.Register, r)
	}
	return out
}
