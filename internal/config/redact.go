package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// RedactConfig is what is masked beside what its own form tells: in the
// ledger, the log, on pages and in notices alike. It is read at the start.
type RedactConfig struct {
	Register []RegisterConfig `yaml:"register" doc:"where secrets are that are masked wherever they stand, in any encoding; no value stands here"`
	Probable []string         `yaml:"probable" enum:"secrets,phones,names,addresses" doc:"what is masked although only its surroundings tell; nothing if absent"`
}

// Kinds is what Probable names, as a set.
func (c RedactConfig) Kinds() redact.Probable {
	var p redact.Probable
	for _, name := range c.Probable {
		p |= probableKinds()[name]
	}
	return p
}

func probableKinds() map[string]redact.Probable {
	return map[string]redact.Probable{"secrets": redact.Secrets, "phones": redact.Phones, "names": redact.Names, "addresses": redact.Addresses}
}

// ParseProbable reads a list such as "secrets,phones", "all" or "none". The
// error is a UsageError.
func ParseProbable(text string) (redact.Probable, error) {
	switch text {
	case "all":
		return redact.Everything, nil
	case "none", "":
		return 0, nil
	}
	var p redact.Probable
	for word := range strings.SplitSeq(text, ",") {
		k, ok := probableKinds()[word]
		if !ok {
			return 0, usage.HintErrorf("take secrets, phones, names, addresses, all or none", "nothing that can be masked is called %q", excerpt.Word(word))
		}
		p |= k
	}
	return p, nil
}

func (k *checker) redact(c *Config) {
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
		case r.Env != "" && !envName().MatchString(r.Env):
			k.fail(r.At, "env names a variable and holds no value", "redact.register: that is no name of an environment variable")
		case r.Command != nil:
			k.command(r.At, r.Command)
		}
	}
	if len(c.Redact.Register) > maxSources {
		k.fail(k.at("redact.register"), "", "at most %d sources of secrets can be registered", maxSources)
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
	out := RedactConfig{Probable: c.Probable}
	for _, r := range c.Register {
		r.At = ""
		out.Register = append(out.Register, r)
	}
	return out
}
